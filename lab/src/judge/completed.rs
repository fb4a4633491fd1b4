//! A case whose steps all ran: what must hold now.

use lab_proto::observe::Observation;

use super::evidence::{Evidence, Judgement};
use super::finding::{Finding, conclude};
use super::verdict::Verdict;
use super::{equal, fio, rules, snapshot, transport};
use crate::config::scenario::Expectation;

/// Judges transports first, as nothing else means what it says over another one, then the
/// expectations in the order of the scenario.
pub(super) fn judge(evidence: &Evidence<'_>) -> Judgement {
    let mut findings = complete(evidence);
    findings.extend(transport::check(evidence));
    let mut pending = Vec::new();
    for expectation in &evidence.scenario.expect {
        match expectation {
            // Compared below, by file.
            Expectation::Snapshot { .. } => {}
            Expectation::Equal { steps } => findings.extend(equal::check(evidence, steps)),
            Expectation::Rule { step, rule } => {
                findings.extend(rules::check(evidence, step, *rule));
            }
        }
    }
    findings.extend(fio::artifacts(evidence));
    // What was measured over the wrong transport is no candidate for a snapshot.
    if findings.iter().all(|f| f.verdict != Verdict::Fail && f.verdict != Verdict::Infra) {
        let (more, new) = snapshot::check(evidence);
        findings.extend(more);
        pending = new;
    }
    conclude(findings, pending)
}

/// Each step has one observation, of its own kind.
fn complete(evidence: &Evidence<'_>) -> Vec<Finding> {
    let wrong = |named: &crate::config::scenario::NamedStep| {
        let seen = evidence.observation(&named.name);
        let fits = seen.is_some_and(|o| kind(o) == named.step.kind());
        let what = if seen.is_none() { "no observation" } else { "an observation of another kind" };
        (!fits).then(|| Finding::infra(format!("step `{}` has {what}", named.name)))
    };
    evidence.scenario.steps.iter().filter_map(wrong).collect()
}

/// Kind of the step that an observation belongs to.
pub(super) fn kind(observation: &Observation) -> &'static str {
    match observation {
        Observation::Served(_) => "serve",
        Observation::Mounted => "tmpfs",
        Observation::Unmounted(_) => "unmount",
        Observation::Tree(_) => "tree",
        Observation::Placed(_) => "place",
        Observation::TornDown(_) => "teardown",
        Observation::Fio(_) => "fio",
        Observation::Sabotaged => "sabotage",
    }
}

impl<'a> Evidence<'a> {
    /// The observation of a step.
    pub(super) fn observation(&self, step: &str) -> Option<&'a Observation> {
        self.observations.iter().find(|(name, _)| name == step).map(|(_, o)| o)
    }
}
