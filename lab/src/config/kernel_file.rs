//! Files of `kernels/`: read and checked.
//!
//! Keys: `summary`; one of `[debian]` (a prebuilt kernel: `suites`, `flavour`, `requires`), `path`
//! (a bzImage, a vmlinux or a source tree, relative to the project), `[source]` and `base`. The
//! last two are built: `[source]` has one of `debian` (with `suites`), `git` (with `revision`),
//! `directory`, `tarball` (with `sha256`); `base` names another entry that is built and adds to
//! it. Both take `series` (a directory of patches or an mbox, `lore:MESSAGE-ID`, or a table with
//! `git` and `range`), `patches` (so many of it) and `config` (names of fragments). All take
//! `kernel-args`, `queue-policy`, `offers` (such as `fewer-queues`) and `vmlinux` (debug info, relative to the project).

use std::ops::Range;

use super::kernel::{KernelEntry, KernelSource, SeriesPlace, SeriesSpec};
use super::problem::{FileProblems, SourceFile};
use super::reader::{Sink, Table, read_file};
use super::value::{At, KernelName, Name};
use crate::kernel::recipe::Source;

/// Most patches of a series.
const MAX_PATCHES: usize = 1000;

/// An entry before its base and its fragments are looked up.
#[derive(Debug, Clone)]
pub(super) struct RawKernel {
    pub(super) entry: KernelEntry,
    /// What it is built from, if it is.
    pub(super) build: Option<RawBuild>,
}

/// What one file says about a build.
#[derive(Debug, Clone)]
pub(super) struct RawBuild {
    pub(super) root: Root,
    pub(super) series: Option<SeriesSpec>,
    /// Names of fragments, and where they stand in the file.
    pub(super) fragments: Vec<(String, Range<usize>)>,
}

/// What a build begins with.
#[derive(Debug, Clone)]
pub(super) enum Root {
    Source(Source),
    /// Name of another entry, and where it stands in the file.
    Base(String, Range<usize>),
}

/// Reads a kernel entry called `name`.
pub(super) fn read(name: &str, file: &SourceFile) -> Result<RawKernel, FileProblems> {
    read_file(file, |root| entry(name, root))
}

fn entry(name: &str, root: &Table<'_>) -> Option<RawKernel> {
    let summary = root.required("summary");
    let cmdline = kernel_args(root);
    let queue_policy = root.optional("queue-policy").map(|policy: Name| policy.0);
    let offers = names(root, "offers");
    let vmlinux: Option<String> = root.optional("vmlinux");
    let given: Vec<&str> =
        ["path", "debian", "source", "base"].into_iter().filter(|key| root.has(key)).collect();
    if let [first, second, ..] = given[..] {
        let shown = |key| match key {
            "debian" | "source" => format!("[{key}]"),
            key => format!("`{key}`"),
        };
        let message = format!("{} and {} exclude each other", shown(first), shown(second));
        root.sink().add(root.span_of(first), message);
    }
    let path: Option<String> = root.optional("path");
    let prebuilt = root.table("debian").map(|table| debian(&table));
    let sources = root.table("source").map(|table| source(&table));
    let base: Option<At<KernelName>> = root.optional("base");
    let build = build(root);
    let none = KernelSource::Path("".into());
    let (source, build) = match (path, prebuilt, sources, base) {
        (Some(path), ..) => (KernelSource::Path(path.into()), None),
        (_, Some(debian), ..) => (debian?, None),
        (_, _, Some(source), _) => (none, Some(RawBuild { root: Root::Source(source?), ..build? })),
        (.., Some(base)) => {
            let root = Root::Base(base.value.0, base.span);
            (none, Some(RawBuild { root, ..build? }))
        }
        _ => {
            if given.is_empty() {
                root.sink().hint(
                    root.span(),
                    "no source of the kernel",
                    "add `path = \"...\"`, `base = \"...\"`, or a table [debian] or [source]",
                );
            }
            return None;
        }
    };
    if build.is_none() {
        for key in ["series", "patches", "config"].into_iter().filter(|key| root.has(key)) {
            let message = format!("`{key}` is for kernels that are built, from [source] or `base`");
            root.sink().add(root.span_of(key), message);
        }
    }
    let vmlinux = vmlinux.map(Into::into);
    let name = name.into();
    let entry =
        KernelEntry { name, summary: summary?, source, vmlinux, cmdline, queue_policy, offers };
    Some(RawKernel { entry, build })
}

/// Series and fragments; the root is the caller's to fill in.
fn build(root: &Table<'_>) -> Option<RawBuild> {
    let patches = root.optional_number("patches", 1..=MAX_PATCHES);
    let series = match root.is_text("series") {
        true => root.optional("series").map(|text: String| series_place(&text)),
        false => root.table("series").and_then(|table| git_range(&table)),
    };
    if patches.is_some() && series.is_none() && !root.has("series") {
        root.sink().add(root.span_of("patches"), "`patches` counts those of a `series`");
    }
    let fragments: Vec<At<Name>> = root.optional("config").unwrap_or_default();
    Some(RawBuild {
        root: Root::Base(String::new(), 0..0),
        series: series.map(|place| SeriesSpec { place, patches }),
        fragments: fragments.into_iter().map(|name| (name.value.0, name.span)).collect(),
    })
}

/// The place of a series that is written as one word.
pub fn series_place(text: &str) -> SeriesPlace {
    match text.strip_prefix("lore:") {
        Some(id) => SeriesPlace::Lore(id.trim_matches(['<', '>']).into()),
        None => SeriesPlace::Path(text.into()),
    }
}

fn git_range(table: &Table<'_>) -> Option<SeriesPlace> {
    let dir: Option<String> = table.required("git");
    let range: Option<String> = table.required("range");
    table.finish();
    let range = range?;
    if !range.contains("..") || range.starts_with('-') {
        table.sink().add(table.span_of("range"), "`range` is two commits, as in `v7.3..topic`");
        return None;
    }
    Some(SeriesPlace::Git { dir: dir?.into(), range })
}

fn source(table: &Table<'_>) -> Option<Source> {
    const KINDS: [&str; 4] = ["debian", "git", "directory", "tarball"];
    let given: Vec<&str> = KINDS.into_iter().filter(|key| table.has(key)).collect();
    let found = match given[..] {
        ["debian"] => {
            let package: Option<KernelName> = table.required("debian");
            let suites = suites(table);
            package.and_then(|p| Some(Source::Debian { package: p.0, suites: suites? }))
        }
        ["git"] => {
            let dir: Option<String> = table.required("git");
            let revision: Option<String> = table.required("revision");
            dir.and_then(|dir| Some(Source::Git { dir: dir.into(), revision: revision? }))
        }
        ["directory"] => {
            table.required("directory").map(|dir: String| Source::Directory(dir.into()))
        }
        ["tarball"] => {
            let path: Option<String> = table.required("tarball");
            let sha256 = digest(table);
            path.and_then(|path| Some(Source::Tarball { path: path.into(), sha256: sha256? }))
        }
        _ => {
            table.sink().hint(
                table.span(),
                "a source has exactly one place",
                "one of `debian`, `git`, `directory`, `tarball`",
            );
            None
        }
    };
    table.finish();
    found
}

fn digest(table: &Table<'_>) -> Option<String> {
    let text: String = table.required("sha256")?;
    let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    if text.len() == 64 && text.bytes().all(is_hex) {
        return Some(text);
    }
    table.sink().add(table.span_of("sha256"), "`sha256` must be 64 digits of 0-9 and a-f");
    None
}

fn debian(table: &Table<'_>) -> Option<KernelSource> {
    let suites = suites(table);
    let flavour: Option<Name> = table.required("flavour");
    let requires = config_options(table, "requires");
    table.finish();
    Some(KernelSource::Debian { suites: suites?, flavour: flavour?.0, requires })
}

fn suites(table: &Table<'_>) -> Option<Vec<String>> {
    let suites: Vec<At<String>> = table.required("suites")?;
    if suites.is_empty() {
        table.sink().add(table.span_of("suites"), "`suites` must name at least one suite");
    }
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-./".contains(&b);
    for suite in suites.iter().filter(|s| !s.value.bytes().all(plain) || s.value.starts_with('-')) {
        table.sink().add(suite.span.clone(), format!("`{}` is no suite name", suite.value));
    }
    Some(suites.into_iter().map(|suite| suite.value).collect())
}

/// Arguments of a kernel command line, each without spaces.
pub(super) fn kernel_args(table: &Table<'_>) -> Vec<String> {
    let args: Vec<At<String>> = table.optional("kernel-args").unwrap_or_default();
    for arg in args.iter().filter(|a| a.value.contains(|c: char| c.is_whitespace() || c == '"')) {
        table.sink().add(arg.span.clone(), "an argument has no spaces or quotes");
    }
    if args.iter().map(|arg| arg.value.len() + 1).sum::<usize>() > 1024 {
        table.sink().add(table.span_of("kernel-args"), "arguments of more than 1024 bytes");
    }
    args.into_iter().map(|arg| arg.value).collect()
}

/// Names, empty where the key is missing.
pub(super) fn names(table: &Table<'_>, key: &'static str) -> Vec<String> {
    let names: Vec<Name> = table.optional(key).unwrap_or_default();
    names.into_iter().map(|name| name.0).collect()
}

/// Kconfig names without their prefix.
pub(super) fn config_options(table: &Table<'_>, key: &'static str) -> Vec<String> {
    let names: Vec<At<String>> = table.optional(key).unwrap_or_default();
    for name in &names {
        check_option(table.sink(), name);
    }
    names.into_iter().map(|name| name.value).collect()
}

fn check_option(sink: &Sink, name: &At<String>) {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if let Some(bare) = name.value.strip_prefix("CONFIG_") {
        sink.hint(name.span.clone(), "options are written without CONFIG_", format!("`{bare}`"));
    } else if !name.value.bytes().all(plain) {
        sink.add(name.span.clone(), format!("`{}` is no kernel option", name.value));
    }
}

#[cfg(test)]
#[path = "kernel_tests.rs"]
mod tests;
