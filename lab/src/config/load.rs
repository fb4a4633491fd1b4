//! A project from the texts of its files.
//!
//! Entries are named by their paths: `kernels/NAME.toml`, `kernels/fragments/NAME.config`,
//! `scenarios/topologies/NAME.toml`, and `scenarios/DIRECTORY/.../NAME.toml` for scenarios.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::derive::{Raw, derive};
use super::kernel::{Flavour, KernelEntry};
use super::problem::{ConfigErrors, FileProblems, Problem, SourceFile};
use super::scenario::Scenario;
use super::topology::Topology;
use super::value::{KERNEL_NAME_FORM, NAME_FORM, is_kernel_name, is_name};
use super::{kernel_file, scenario_file, topology_file};

/// Everything that can be chosen from, by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Project {
    /// Kernels.
    pub kernels: BTreeMap<String, Arc<KernelEntry>>,
    /// Fragments of kernel configurations, each also a flavour.
    pub flavours: BTreeMap<String, Flavour>,
    /// Topologies.
    pub topologies: BTreeMap<String, Arc<Topology>>,
    /// Scenarios.
    pub scenarios: BTreeMap<String, Arc<Scenario>>,
}

/// Most directories between `scenarios/` and a scenario.
const MAX_DIRECTORIES: usize = 4;

/// Which kind of entry a path is.
#[derive(Debug, PartialEq, Eq)]
enum Entry<'a> {
    Kernel(&'a str),
    Fragment(&'a str),
    Topology(&'a str),
    Scenario(&'a str),
}

/// Reads all files. Every problem of every file is in the error.
pub fn load(files: &[SourceFile]) -> Result<Project, ConfigErrors> {
    let mut project = Project::default();
    let (mut raw, mut wrong) = (Raw::new(), Vec::new());
    for file in files {
        if let Err(problems) = add(&mut project, &mut raw, file) {
            wrong.push(problems);
        }
    }
    // An entry whose base could not be read would be told to have none.
    if wrong.is_empty() {
        match derive(&raw, &project.flavours) {
            Ok(kernels) => project.kernels = kernels,
            Err(problems) => wrong = problems,
        }
    }
    if wrong.is_empty() { Ok(project) } else { Err(ConfigErrors { files: wrong }) }
}

/// `own` and those of `shipped` that a project without entries of that name falls back to:
/// kernels and topologies always, scenarios only where there are none of its own.
pub fn with_shipped(own: Vec<SourceFile>, shipped: Vec<SourceFile>) -> Vec<SourceFile> {
    let is_scenario = |f: &SourceFile| matches!(entry(&f.path), Ok(Entry::Scenario(_)));
    let has_scenarios = own.iter().any(is_scenario);
    let mut files = own;
    for file in shipped {
        let taken = files.iter().any(|f| f.path == file.path);
        let replaced = has_scenarios && is_scenario(&file);
        if !taken && !replaced {
            files.push(file);
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn add(project: &mut Project, raw: &mut Raw, file: &SourceFile) -> Result<(), FileProblems> {
    match entry(&file.path) {
        Ok(Entry::Kernel(name)) => {
            let kernel = kernel_file::read(name, file)?;
            raw.insert(name.into(), (kernel, file.clone()));
        }
        Ok(Entry::Fragment(name)) => {
            project.flavours.insert(name.into(), Flavour::new(name, &file.text));
        }
        Ok(Entry::Topology(name)) => {
            let topology = topology_file::read(name, file)?;
            project.topologies.insert(name.into(), Arc::new(topology));
        }
        Ok(Entry::Scenario(name)) => {
            let scenario = scenario_file::read(name, file)?;
            project.scenarios.insert(name.into(), Arc::new(scenario));
        }
        Err(message) => {
            let problem = Problem { span: 0..0, message, hint: Some("rename or move it".into()) };
            return Err(FileProblems { file: file.clone(), problems: vec![problem] });
        }
    }
    Ok(())
}

fn entry(path: &str) -> Result<Entry<'_>, String> {
    if let Some(name) = path.strip_prefix("kernels/fragments/") {
        let name = name.strip_suffix(".config").filter(|name| is_name(name));
        return name
            .map(Entry::Fragment)
            .ok_or_else(|| format!("a fragment is called NAME.config, where NAME is {NAME_FORM}"));
    }
    let stem = path.strip_suffix(".toml").ok_or("the name of the file does not end in .toml")?;
    let (directory, name) = stem.split_once('/').unwrap_or(("", stem));
    let parts: Vec<&str> = name.split('/').collect();
    if let ("kernels", [name]) = (directory, parts.as_slice()) {
        return match is_kernel_name(name) {
            true => Ok(Entry::Kernel(name)),
            false => Err(format!("`{name}` is no name: {KERNEL_NAME_FORM}")),
        };
    }
    if let Some(part) = parts.iter().find(|part| !is_name(part)) {
        return Err(format!("`{part}` is no name: {NAME_FORM}"));
    }
    match (directory, parts.as_slice()) {
        ("scenarios", ["topologies", name]) => Ok(Entry::Topology(name)),
        ("scenarios", ["topologies", ..]) => Err("topologies have no directories".into()),
        ("scenarios", [_, rest @ ..]) if (1..=MAX_DIRECTORIES).contains(&rest.len()) => {
            Ok(Entry::Scenario(name))
        }
        ("scenarios", [_]) => Err("a scenario belongs into a directory, such as perf/".into()),
        _ => Err("this is no place for a configuration file".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> SourceFile {
        SourceFile { path: path.into(), text: String::new() }
    }

    #[test]
    fn paths_tell_what_a_file_is() {
        assert_eq!(entry("kernels/stock.toml"), Ok(Entry::Kernel("stock")));
        assert_eq!(entry("kernels/v7.3.toml"), Ok(Entry::Kernel("v7.3")));
        assert_eq!(entry("kernels/fragments/lean.config"), Ok(Entry::Fragment("lean")));
        assert_eq!(entry("scenarios/topologies/2x2.toml"), Ok(Entry::Topology("2x2")));
        assert_eq!(entry("scenarios/perf/a/b.toml"), Ok(Entry::Scenario("perf/a/b")));
        for bad in [
            "kernels/Stock.toml",
            "kernels/a/b.toml",
            "scenarios/a.toml",
            "scenarios/topologies/a/b.toml",
            "scenarios/a/b/c/d/e/f.toml",
            "scenarios/perf/-a.toml",
            "other/a.toml",
            "kernels/a.tml",
            "kernels/v7..3.toml",
            "kernels/fragments/A.config",
            "kernels/fragments/a.toml",
        ] {
            assert!(entry(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn problems_of_all_files_are_reported() {
        let wrong = load(&[file("kernels/a.toml"), file("scenarios/perf/b.toml")]).unwrap_err();
        assert_eq!(wrong.files.len(), 2);
        assert!(wrong.to_string().contains("kernels/a.toml:1:1: missing key `summary`"), "{wrong}");
    }

    #[test]
    fn a_project_overrides_what_is_shipped() {
        let shipped = || {
            ["kernels/stock.toml", "scenarios/perf/a.toml", "scenarios/topologies/t.toml"]
                .map(file)
                .to_vec()
        };
        let paths = |own: &[&str]| -> Vec<String> {
            let own = own.iter().map(|path| file(path)).collect();
            with_shipped(own, shipped()).into_iter().map(|f| f.path).collect()
        };
        assert_eq!(paths(&[]).len(), 3);
        assert_eq!(
            paths(&["scenarios/perf/mine.toml", "kernels/stock.toml"]),
            ["kernels/stock.toml", "scenarios/perf/mine.toml", "scenarios/topologies/t.toml"]
        );
    }
}
