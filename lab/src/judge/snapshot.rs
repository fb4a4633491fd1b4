//! What must be equal from run to run: which files hold it, and the comparison. No I/O here.

use std::collections::BTreeMap;

use super::equal;
use super::evidence::Evidence;
use super::finding::Finding;
use super::render;
use super::verdict::{Owner, Verdict};
use crate::config::scenario::{Expectation, Scenario};
use crate::config::topology::Topology;

/// One snapshot that a case is held to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Path below `snapshots/`, e.g. `placement/stat/2x4@next-cpu.snap`.
    pub path: String,
    /// Steps in it, in the order of the scenario.
    pub steps: Vec<String>,
    /// Whether it is of one topology.
    pub per_topology: bool,
}

/// Texts of snapshots by path below `snapshots/`; a file that is not there is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnapshotSet {
    /// The text, or why the file cannot be read as a snapshot.
    pub texts: BTreeMap<String, Result<String, String>>,
}

/// A snapshot to be written for review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// Path below `snapshots/` of the snapshot; the file for review has `.new` behind it.
    pub path: String,
    /// The text.
    pub text: String,
    /// What it shows, for the reviewer.
    pub expression: String,
    /// The scenario file, relative to the root.
    pub source: String,
}

/// The snapshots that a scenario is held to. What depends on a queue policy is left out where
/// none is declared: such a kernel is judged by rules.
pub fn wanted(scenario: &Scenario, topology: &Topology, policy: Option<&str>) -> Vec<Wanted> {
    let mut files: BTreeMap<String, (Vec<&String>, bool)> = BTreeMap::new();
    for expectation in &scenario.expect {
        let Expectation::Snapshot { steps, per_topology, per_policy } = expectation else {
            continue;
        };
        let suffix = match (per_policy, policy) {
            (false, _) => String::new(),
            (true, Some(policy)) => format!("@{policy}"),
            (true, None) => continue,
        };
        let stem = if *per_topology { topology.name.as_str() } else { "any" };
        let path = format!("{}/{stem}{suffix}.snap", scenario.name);
        files.entry(path).or_insert((Vec::new(), *per_topology)).0.extend(steps);
    }
    let ordered = |named: &[&String]| -> Vec<String> {
        let names = scenario.steps.iter().map(|s| &s.name);
        names.filter(|n| named.contains(n)).cloned().collect()
    };
    let make = |(path, (steps, per_topology)): (String, (Vec<&String>, bool))| Wanted {
        path,
        steps: ordered(&steps),
        per_topology,
    };
    files.into_iter().map(make).collect()
}

/// The text of a snapshot: a heading and the observation for each step.
fn text(evidence: &Evidence<'_>, wanted: &Wanted) -> Option<String> {
    let part = |step: &String| {
        render::step(evidence, step, wanted.per_topology).map(|text| format!("## {step}\n{text}"))
    };
    wanted.steps.iter().map(part).collect::<Option<Vec<String>>>().map(|parts| parts.join("\n"))
}

/// Compares; a changed one is a failure, a missing one is NEW. Both leave a text for review,
/// unless the run is strict.
pub(super) fn check(evidence: &Evidence<'_>) -> (Vec<Finding>, Vec<Pending>) {
    let mut findings = Vec::new();
    let mut pending = Vec::new();
    for wanted in wanted(evidence.scenario, evidence.topology, evidence.queue_policy) {
        let Some(got) = text(evidence, &wanted) else { continue };
        let finding = match evidence.snapshots.texts.get(&wanted.path) {
            Some(Ok(want)) if same(want, &got) => continue,
            Some(Ok(want)) => changed(&wanted.path, want, &got),
            Some(Err(why)) => Finding::new(
                Verdict::Infra,
                Owner::Scenario,
                format!("snapshots/{} cannot be read: {why}", wanted.path),
            ),
            None => Finding::new(
                Verdict::New,
                Owner::Scenario,
                format!("no snapshot snapshots/{} yet", wanted.path),
            ),
        };
        if !evidence.strict && finding.verdict != Verdict::Infra {
            pending.push(review(evidence, &wanted, got));
        }
        findings.push(finding);
    }
    (findings, pending)
}

/// Equality as insta has it: the end of the text does not count.
fn same(want: &str, got: &str) -> bool {
    want.replace("\r\n", "\n").trim_end() == got.trim_end()
}

/// What must be equal is not, and the snapshot was reviewed: the kernel is the suspect.
fn changed(path: &str, want: &str, got: &str) -> Finding {
    let want = format!("{}\n", want.trim_end());
    let (lines, count) = equal::diff(path, &want, "this run", got);
    let cause = format!("snapshots/{path} differs in {count} lines");
    Finding::new(Verdict::Fail, Owner::Kernel, cause).because(lines)
}

fn review(evidence: &Evidence<'_>, wanted: &Wanted, text: String) -> Pending {
    let (scenario, topology) = (&evidence.scenario.name, &evidence.topology.name);
    let policy = evidence.queue_policy.map(|p| format!(", queue policy {p}")).unwrap_or_default();
    Pending {
        path: wanted.path.clone(),
        text,
        expression: format!("{scenario} on {topology}{policy}"),
        source: format!("scenarios/{scenario}.toml"),
    }
}
