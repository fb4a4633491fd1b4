//! Kernels as given on the command line to entries.

use std::sync::Arc;

use super::flavour;
use super::select::Selection;
use crate::config::kernel::{KernelEntry, KernelSource};
use crate::config::load::Project;

/// The kernel that is tested where none is given.
const DEFAULT: &str = "stock";

/// Entries in the order given, each once. What has a `/` or begins with `.` is a path; it is
/// named after its last part. Whether it exists is for the caller to see.
pub(super) fn resolve(
    project: &Project,
    given: &[String],
    problems: &mut Vec<String>,
) -> Vec<Arc<KernelEntry>> {
    let default = [DEFAULT.to_string()];
    let given = if given.is_empty() { &default[..] } else { given };
    let mut entries: Vec<Arc<KernelEntry>> = Vec::new();
    for text in given {
        if text.contains('/') || text.starts_with('.') {
            let entry = Arc::new(from_path(text, project, &entries));
            if !entries.iter().any(|e| e.source == entry.source) {
                entries.push(entry);
            }
            continue;
        }
        match flavour::find(project, text) {
            Ok(entry) if entries.contains(&entry) => {}
            Ok(entry) => entries.push(entry),
            Err(problem) => problems.push(problem),
        }
    }
    entries
}

/// The entry that a name or path stands for, as `--kernel` takes it.
///
/// # Errors
///
/// For people, with the nearest name.
pub fn kernel(project: &Project, text: &str) -> Result<Arc<KernelEntry>, String> {
    let mut problems = Vec::new();
    let found = resolve(project, &[text.to_owned()], &mut problems).pop();
    found.ok_or_else(|| problems.join("; "))
}

fn from_path(text: &str, project: &Project, earlier: &[Arc<KernelEntry>]) -> KernelEntry {
    let base = slug(text);
    let taken = |name: &str| {
        project.kernels.contains_key(name) || earlier.iter().any(|entry| entry.name == name)
    };
    let mut name = base.clone();
    let mut number = 2;
    while taken(&name) {
        name = format!("{base}-{number}");
        number += 1;
    }
    KernelEntry {
        name,
        summary: format!("from {text}"),
        source: KernelSource::Path(text.into()),
        vmlinux: None,
        cmdline: Vec::new(),
        queue_policy: None,
        offers: Vec::new(),
    }
}

/// The kernel to compare with, which must be none of those under test.
pub(super) fn base(
    project: &Project,
    selection: &Selection,
    tested: &[Arc<KernelEntry>],
    problems: &mut Vec<String>,
) -> Option<Arc<KernelEntry>> {
    let text = selection.base.as_ref()?;
    let mut given = selection.kernels.clone();
    if given.is_empty() {
        given.push(DEFAULT.into());
    }
    given.push(text.clone());
    let mut all = Vec::new();
    let with_base = resolve(project, &given, &mut all);
    if all.len() > problems.len() {
        problems.extend(all.pop());
        return None;
    }
    let base = with_base.get(tested.len()).cloned();
    let same = |b: &Arc<KernelEntry>| {
        tested.iter().any(|t| t.source == b.source && t.cmdline == b.cmdline)
    };
    if base.as_ref().is_none_or(same) {
        problems.push(format!("the base `{text}` is a kernel under test, too; name another one"));
        return None;
    }
    base
}

/// The last part of a path that says something, in the form of a name.
fn slug(text: &str) -> String {
    let last = text.rsplit('/').find(|part| !matches!(*part, "" | "." | "..")).unwrap_or("kernel");
    let plain: String = last
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .take(60)
        .collect();
    match plain.trim_matches('-') {
        "" => "kernel".into(),
        name => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_get_names_of_their_own() {
        let mut problems = Vec::new();
        let given = ["../linux/", "/b/linux", "./Foo_Bar.img", "/b/linux", ".."].map(String::from);
        let entries = resolve(&Project::default(), &given, &mut problems);
        let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["linux", "linux-2", "foo-bar-img", "kernel"]);
        assert!(problems.is_empty());
    }
}
