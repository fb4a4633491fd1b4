//! A case that a test bends before it is judged, and what is asked of the judgement.

use lab_proto::observe::{Facts, Observation};
use lab_proto::server::{ServerStats, Transport};
use lab_proto::step::Step;

use super::evidence::{CaseEnd, Evidence, Judgement};
use super::judge;
use super::samples::*;
use super::snapshot::SnapshotSet;
use super::verdict::{Owner, Verdict};
use crate::config::scenario::{Expectation, Rule, Scenario};
use crate::config::topology::Topology;
use crate::detect;

/// A case that a test bends before it is judged.
pub(super) struct Case {
    pub(super) scenario: Scenario,
    pub(super) topology: Topology,
    pub(super) policy: Option<&'static str>,
    pub(super) facts: Option<Facts>,
    pub(super) observations: Vec<(String, Observation)>,
    pub(super) artifacts: Vec<(String, Vec<u8>)>,
    pub(super) stats: Vec<ServerStats>,
    pub(super) end: CaseEnd,
    pub(super) console: Vec<u8>,
    pub(super) today: jiff::civil::Date,
    pub(super) taint: (Option<u64>, Option<u64>),
    pub(super) mismatch: Option<&'static str>,
    pub(super) snapshots: SnapshotSet,
    pub(super) strict: bool,
}

impl Case {
    pub(super) fn new(steps: Vec<(&str, Step, Observation)>, expect: Vec<Expectation>) -> Case {
        let observations =
            steps.iter().map(|(name, _, seen)| (name.to_string(), seen.clone())).collect();
        let steps = steps.into_iter().map(|(name, step, _)| (name, step)).collect();
        Case {
            scenario: scenario(steps, expect),
            topology: topology(),
            policy: None,
            facts: None,
            observations,
            artifacts: vec![],
            stats: vec![],
            end: CaseEnd::Completed,
            console: vec![],
            today: jiff::civil::date(2027, 1, 1),
            taint: (Some(0), Some(0)),
            mismatch: None,
            snapshots: SnapshotSet::default(),
            strict: false,
        }
    }

    pub(super) fn judge(&self) -> Judgement {
        judge(&Evidence {
            scenario: &self.scenario,
            queue_policy: self.policy,
            topology: &self.topology,
            facts: self.facts.as_ref(),
            observations: &self.observations,
            artifacts: &self.artifacts,
            final_stats: &self.stats,
            end: &self.end,
            faults: &detect::scan(&self.console),
            today: self.today,
            taint_before: self.taint.0,
            taint_after: self.taint.1,
            topology_mismatch: self.mismatch,
            snapshots: &self.snapshots,
            strict: self.strict,
        })
    }

    /// Verdict, owner and cause.
    pub(super) fn short(&self) -> (Verdict, Option<Owner>, String) {
        let judgement = self.judge();
        (judgement.verdict, judgement.owner, judgement.cause)
    }

    pub(super) fn served(&mut self) -> &mut lab_proto::observe::ServeObservation {
        match &mut self.observations[0].1 {
            Observation::Served(seen) => seen,
            other => panic!("{other:?}"),
        }
    }
}

pub(super) fn ring() -> Case {
    let seen = Observation::Served(served("ring", Transport::Ring, 4));
    let step = Step::Serve(spec("ring", Transport::Ring));
    Case::new(vec![("serve", step, seen)], vec![])
}

pub(super) fn rule(step: &str, rule: Rule) -> Expectation {
    Expectation::Rule { step: step.into(), rule }
}

pub(super) fn pass() -> (Verdict, Option<Owner>, String) {
    (Verdict::Pass, None, String::new())
}

#[track_caller]
pub(super) fn is(case: &Case, verdict: Verdict, owner: Owner, cause: &str) {
    let got = case.short();
    assert_eq!((&got.0, got.1), (&verdict, Some(owner)), "{}", got.2);
    assert!(got.2.contains(cause), "{} lacks {cause}", got.2);
}
