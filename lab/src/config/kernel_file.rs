//! Files of `kernels/`: read and checked.
//!
//! Keys: `summary`; either `[debian]` with `suites`, `flavour` and `requires` (options that must
//! be `y`, without `CONFIG_`), or `path` (a bzImage, a vmlinux or a built source tree, relative
//! to the project); `vmlinux` (debug info of it, relative to the project); `kernel-args`; `queue-policy`.

use super::kernel::{KernelEntry, KernelSource};
use super::problem::{FileProblems, SourceFile};
use super::reader::{Sink, Table, read_file};
use super::value::{At, Name};

/// Reads a kernel entry called `name`.
pub fn read(name: &str, file: &SourceFile) -> Result<KernelEntry, FileProblems> {
    read_file(file, |root| entry(name, root))
}

fn entry(name: &str, root: &Table<'_>) -> Option<KernelEntry> {
    let summary = root.required("summary");
    let cmdline = kernel_args(root);
    let queue_policy = root.optional("queue-policy").map(|policy: Name| policy.0);
    let vmlinux: Option<String> = root.optional("vmlinux");
    let path: Option<String> = root.optional("path");
    let debian = root.table("debian").map(|table| debian(&table));
    let source = match (path, debian) {
        (Some(path), None) => Some(KernelSource::Path(path.into())),
        (None, Some(debian)) => debian,
        (Some(_), Some(_)) => {
            root.sink().add(root.span_of("path"), "`path` and [debian] exclude each other");
            None
        }
        (None, None) if root.has("path") || root.has("debian") => None,
        (None, None) => {
            root.sink().hint(
                root.span(),
                "no source of the kernel",
                "add `path = \"...\"` or a table [debian]",
            );
            None
        }
    };
    Some(KernelEntry {
        name: name.into(),
        summary: summary?,
        source: source?,
        vmlinux: vmlinux.map(Into::into),
        cmdline,
        queue_policy,
    })
}

fn debian(table: &Table<'_>) -> Option<KernelSource> {
    let suites: Option<Vec<At<String>>> = table.required("suites");
    let flavour: Option<Name> = table.required("flavour");
    let requires = config_options(table, "requires");
    table.finish();
    let suites = suites?;
    if suites.is_empty() {
        table.sink().add(table.span_of("suites"), "`suites` must name at least one suite");
    }
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-./".contains(&b);
    for suite in suites.iter().filter(|s| !s.value.bytes().all(plain) || s.value.starts_with('-')) {
        table.sink().add(suite.span.clone(), format!("`{}` is no suite name", suite.value));
    }
    let suites = suites.into_iter().map(|suite| suite.value).collect();
    Some(KernelSource::Debian { suites, flavour: flavour?.0, requires })
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
