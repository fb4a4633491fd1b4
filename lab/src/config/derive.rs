//! Entries that are built: their bases and fragments looked up, each once; pure.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::kernel::{BuildSpec, Flavour, KernelEntry, KernelSource};
use super::kernel_file::{RawBuild, RawKernel, Root};
use super::nearest::suggestion;
use super::problem::{FileProblems, Problem, SourceFile};
use crate::kernel::recipe::Fragment;

/// Longest chain of bases.
const MAX_DEPTH: usize = 16;

/// Kernels as their files say, with the files.
pub(super) type Raw = BTreeMap<String, (RawKernel, SourceFile)>;

/// Checks and completes every entry. Every problem of every file is in the error.
pub(super) fn derive(
    raw: &Raw,
    flavours: &BTreeMap<String, Flavour>,
) -> Result<BTreeMap<String, Arc<KernelEntry>>, Vec<FileProblems>> {
    let (mut kernels, mut wrong) = (BTreeMap::new(), Vec::new());
    for (name, (kernel, file)) in raw {
        let mut problems = Vec::new();
        let complete = complete(kernel, raw, flavours, &mut problems);
        match complete {
            Some(entry) if problems.is_empty() => {
                kernels.insert(name.clone(), Arc::new(entry));
            }
            _ => {
                problems.sort_by_key(|problem: &Problem| problem.span.start);
                wrong.push(FileProblems { file: file.clone(), problems });
            }
        }
    }
    if wrong.is_empty() { Ok(kernels) } else { Err(wrong) }
}

fn complete(
    kernel: &RawKernel,
    raw: &Raw,
    flavours: &BTreeMap<String, Flavour>,
    problems: &mut Vec<Problem>,
) -> Option<KernelEntry> {
    let mut entry = kernel.entry.clone();
    let Some(build) = &kernel.build else { return Some(entry) };
    let chain = chain(&kernel.entry.name, build, raw, problems)?;
    for name in &build.fragments {
        if !flavours.contains_key(&name.0) {
            let known = flavours.keys().map(String::as_str);
            let message = format!("no fragment kernels/fragments/{}.config", name.0);
            add(problems, &name.1, message, suggestion(&name.0, known));
        }
    }
    let Root::Source(source) = &chain.first()?.1.root else { return None };
    let mut fragments: Vec<Fragment> = Vec::new();
    let mut cmdline = Vec::new();
    for (base, part) in &chain {
        for (name, _) in &part.fragments {
            // One that is missing in a base is told at the base.
            if let Some(flavour) = flavours.get(name) {
                take(&mut fragments, &mut cmdline, flavour);
            }
        }
        cmdline.extend(base.cmdline.iter().cloned());
    }
    if fragments.is_empty() && problems.is_empty() {
        let hint = "such as `config = [\"lean\"]`".to_owned();
        add(problems, &(0..0), "a kernel that is built needs `config`".into(), hint);
    }
    for (base, _) in &chain {
        let more = base.offers.iter().filter(|offer| !entry.offers.contains(offer));
        let more: Vec<String> = more.cloned().collect();
        entry.offers.extend(more);
    }
    let series = chain.iter().filter_map(|(_, part)| part.series.clone()).collect();
    entry.cmdline = cmdline;
    entry.source = KernelSource::Built(BuildSpec { source: source.clone(), series, fragments });
    Some(entry)
}

/// Adds a fragment; where it is there already its place is the last one.
pub(super) fn take(fragments: &mut Vec<Fragment>, cmdline: &mut Vec<String>, flavour: &Flavour) {
    fragments.retain(|fragment| fragment.name != flavour.fragment.name);
    fragments.push(flavour.fragment.clone());
    cmdline.extend(flavour.cmdline.iter().cloned());
}

/// The entry and its bases, the one with the source first.
fn chain<'a>(
    name: &str,
    build: &'a RawBuild,
    raw: &'a Raw,
    problems: &mut Vec<Problem>,
) -> Option<Vec<(&'a KernelEntry, &'a RawBuild)>> {
    let mut names = vec![name];
    let mut chain = vec![(&raw.get(name)?.0.entry, build)];
    let own = match &build.root {
        Root::Source(_) => return Some(chain),
        Root::Base(_, span) => span,
    };
    let mut part = build;
    while let Root::Base(base, _) = &part.root {
        if names.len() == MAX_DEPTH {
            let message = format!("more than {MAX_DEPTH} bases, one on the other");
            add(
                problems,
                own,
                message,
                "begin with a [source], or with a base nearer to it".into(),
            );
            return None;
        }
        if names.contains(&base.as_str()) {
            let path = names.join("` -> `");
            let message = format!("bases go in a circle: `{path}` -> `{base}`");
            add(problems, own, message, "one of them needs a [source]".into());
            return None;
        }
        let Some((kernel, _)) = raw.get(base) else {
            let hint = suggestion(base, raw.keys().map(String::as_str));
            add(problems, own, format!("no kernel is named `{base}`"), hint);
            return None;
        };
        let Some(next) = &kernel.build else {
            let message = format!("`{base}` is prebuilt, nothing can be built on it");
            add(problems, own, message, "name an entry with a [source], such as v7.3".into());
            return None;
        };
        names.push(base);
        chain.push((&kernel.entry, next));
        part = next;
    }
    chain.reverse();
    Some(chain)
}

fn add(problems: &mut Vec<Problem>, span: &Range<usize>, message: String, hint: String) {
    problems.push(Problem { span: span.clone(), message, hint: Some(hint) });
}

#[cfg(test)]
mod tests {
    use crate::config::kernel::{KernelSource, SeriesPlace};
    use crate::config::load::{Project, load};
    use crate::config::problem::SourceFile;

    const SOURCE: &str = "summary = 's'\nconfig = ['lean']\nkernel-args = ['a=1']\n\
        queue-policy = 'submitting-cpu'\n[source]\ndirectory = '../linux'\n";

    fn project(entries: &[(&str, &str)]) -> Result<Project, String> {
        let mut files: Vec<SourceFile> = [
            ("kernels/fragments/lean.config", "CONFIG_A=y\n"),
            ("kernels/fragments/kasan.config", "# kernel-args: multi x\nCONFIG_KASAN=y\n"),
            ("kernels/base.toml", SOURCE),
        ]
        .iter()
        .chain(entries)
        .map(|(path, text)| SourceFile { path: (*path).into(), text: (*text).into() })
        .collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        load(&files).map_err(|errors| errors.to_string())
    }

    #[test]
    fn an_entry_adds_to_its_base() {
        let four = "summary = 's'\nbase = 'base'\nseries = 'series/v4'\npatches = 4\n";
        let more = "summary = 's'\nbase = 'four'\nseries = 'lore:<a@b>'\nconfig = ['kasan']\n\
                    kernel-args = ['b=2']\nqueue-policy = 'next-cpu'\n";
        let project = project(&[("kernels/four.toml", four), ("kernels/v7.3.toml", more)]).unwrap();
        let entry = &project.kernels["v7.3"];
        assert_eq!(entry.cmdline, ["a=1", "multi", "x", "b=2"]);
        let KernelSource::Built(build) = &entry.source else { panic!("{entry:?}") };
        let names: Vec<&str> = build.fragments.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["lean", "kasan"]);
        assert_eq!(build.series[0].patches, Some(4));
        assert_eq!(build.series[1].place, SeriesPlace::Lore("a@b".into()));
        // What a patched kernel claims is its own to say.
        assert_eq!(project.kernels["four"].queue_policy, None);
    }

    #[test]
    fn too_many_bases_are_not_called_a_circle() {
        let names: Vec<String> = (1..=17).map(|n| format!("kernels/k{n}.toml")).collect();
        let base = |n: usize| match n {
            17 => "summary = 's'\nbase = 'base'\n".to_owned(),
            n => format!("summary = 's'\nbase = 'k{}'\n", n + 1),
        };
        let texts: Vec<String> = (1..=17).map(base).collect();
        let all = |from: usize| -> Vec<(&str, &str)> {
            (from..17).map(|i| (names[i].as_str(), texts[i].as_str())).collect()
        };
        let text = project(&all(0)).unwrap_err();
        assert!(text.contains("kernels/k1.toml:2:8: more than 16 bases"), "{text}");
        assert!(!text.contains("circle"), "{text}");
        project(&all(2)).unwrap();
    }

    #[test]
    fn every_wrong_base_and_fragment_is_told_with_its_place() {
        let text = project(&[
            ("kernels/a.toml", "summary = 's'\nbase = 'b'\n"),
            ("kernels/b.toml", "summary = 's'\nbase = 'a'\n"),
            ("kernels/c.toml", "summary = 's'\nbase = 'bose'\n"),
            ("kernels/d.toml", "summary = 's'\nbase = 'stock'\n"),
            ("kernels/e.toml", "summary = 's'\nbase = 'base'\nconfig = ['keen', 'lean']\n"),
            ("kernels/stock.toml", "summary = 's'\npath = '/x'\n"),
        ])
        .unwrap_err();
        for part in [
            "kernels/a.toml:2:8: bases go in a circle: `a` -> `b` -> `a`",
            "kernels/c.toml:2:8: no kernel is named `bose`",
            "kernels/d.toml:2:8: `stock` is prebuilt",
            "kernels/e.toml:3:11: no fragment kernels/fragments/keen.config",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
