//! The steps of a scenario in their order: names are unique, and each step finds the mount that
//! it works on.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use lab_proto::step::Step;

use super::nearest::suggestion;
use super::reader::Table;
use super::scenario::NamedStep;

/// A mount that a step made.
struct Mount {
    /// Whether a server of the case is behind it.
    served: bool,
    /// Step that ended it.
    ended_by: Option<String>,
}

/// Checks all steps. One that could not be read is `None`: what it mounts is not known, so
/// unknown paths after it are let pass.
pub(super) fn check(steps: &[(&Table<'_>, &Option<NamedStep>)], case_limit: Duration) {
    let mut names: BTreeMap<&str, ()> = BTreeMap::new();
    let mut mounts: BTreeMap<String, Mount> = BTreeMap::new();
    let mut gap = false;
    for (table, step) in steps {
        let Some(step) = step else {
            gap = true;
            continue;
        };
        if names.insert(&step.name, ()).is_some() {
            table.sink().hint(
                if table.has("name") { table.span_of("name") } else { table.span() },
                format!("a second step named `{}`", step.name),
                "give it its own `name`",
            );
        }
        if step.limit.is_some_and(|limit| limit > case_limit) {
            table.sink().add(table.span_of("limit"), "`limit` is above that of the whole case");
        }
        apply(table, step, &mut mounts, gap);
    }
}

fn apply(table: &Table<'_>, step: &NamedStep, mounts: &mut BTreeMap<String, Mount>, gap: bool) {
    match &step.step {
        Step::Serve(spec) => mount(table, &spec.mount_point, true, mounts),
        Step::Tmpfs { mount_point } => mount(table, mount_point, false, mounts),
        Step::Unmount { mount_point } => {
            if find(table, "mount-point", mount_point, mounts, gap).is_some() {
                end(mount_point, step, mounts);
            }
        }
        Step::Tree { path } => {
            find(table, "path", path, mounts, gap);
        }
        Step::Place { path, .. } => served(table, path, mounts, gap),
        // However it ends: the step itself unmounts what is left.
        Step::Teardown { path, .. } => {
            served(table, path, mounts, gap);
            end(path, step, mounts);
        }
        Step::Fio { path, .. } => {
            find(table, "path", path, mounts, gap);
        }
        Step::Sabotage { .. } => {}
    }
}

fn mount(table: &Table<'_>, point: &str, served: bool, mounts: &mut BTreeMap<String, Mount>) {
    let at = table.span_of("mount-point");
    let system = ["/proc", "/sys", "/dev"];
    if system.iter().any(|s| point == *s || point.starts_with(&format!("{s}/"))) {
        table.sink().add(at, format!("`{point}` belongs to the guest's system"));
    } else if mounts.get(point).is_some_and(|mount| mount.ended_by.is_none()) {
        table.sink().hint(at, format!("`{point}` is mounted already"), "unmount it first");
    } else {
        mounts.insert(point.into(), Mount { served, ended_by: None });
    }
}

fn end(point: &str, step: &NamedStep, mounts: &mut BTreeMap<String, Mount>) {
    if let Some(mount) = mounts.get_mut(point) {
        mount.ended_by = Some(step.name.clone());
    }
}

/// The mount at a path, or a problem.
fn find<'m>(
    table: &Table<'_>,
    key: &str,
    point: &str,
    mounts: &'m BTreeMap<String, Mount>,
    gap: bool,
) -> Option<&'m Mount> {
    let at: Range<usize> = table.span_of(key);
    match mounts.get(point) {
        Some(Mount { ended_by: Some(step), .. }) => {
            table.sink().add(at, format!("`{point}` is gone: step `{step}` ended it"));
            None
        }
        Some(mount) => Some(mount),
        None if gap => None,
        None => {
            table.sink().hint(
                at,
                format!("no step before mounts `{point}`"),
                match mounts.is_empty() {
                    true => "mount it with a `serve` or `tmpfs` step first".into(),
                    false => suggestion(point, mounts.keys().map(String::as_str)),
                },
            );
            None
        }
    }
}

fn served(table: &Table<'_>, path: &str, mounts: &BTreeMap<String, Mount>, gap: bool) {
    if find(table, "path", path, mounts, gap).is_some_and(|mount| !mount.served) {
        table
            .sink()
            .add(table.span_of("path"), format!("`{path}` has no server of the case behind it"));
    }
}
