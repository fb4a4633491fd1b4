//! The state of a run as its events tell it, shared by reporters and by `rerun`.

use std::collections::BTreeMap;

use super::series::PatchState;
use crate::judge::verdict::{Owner, Tally, Verdict};
use crate::run::events::{Event, Record};

/// A case as far as it is known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CaseState {
    /// Case id.
    pub case: String,
    /// Kernel name as given.
    pub kernel: String,
    /// Topology name.
    pub topology: String,
    /// Scenario name.
    pub scenario: String,
    /// Seed.
    pub seed: u64,
    /// It runs on the base and does not count.
    pub base: bool,
    /// How its faults compare with the base, in one line; empty when there is nothing to tell.
    pub compared: String,
    /// Whether it was begun.
    pub started: bool,
    /// The step it is in, or was in when the record ends.
    pub step: Option<String>,
    /// Directory, relative to the run.
    pub dir: Option<String>,
    /// How it ended.
    pub end: Option<CaseEnd>,
}

impl CaseState {
    /// The scenario, with `#N` behind it from the second repeat on: unique within kernel and
    /// topology.
    pub fn name(&self) -> &str {
        let at = self.case.rfind(self.scenario.as_str()).filter(|_| !self.scenario.is_empty());
        at.map_or(self.case.as_str(), |at| &self.case[at..])
    }
}

/// How a case ended.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseEnd {
    /// What it came to.
    pub verdict: Verdict,
    /// Whose doing.
    pub owner: Option<Owner>,
    /// Cause in one line.
    pub cause: String,
    /// Lines that decided it.
    pub evidence: Vec<String>,
    /// Milliseconds.
    pub duration_ms: u64,
}

/// Counts of the last line of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Passed.
    pub passed: u32,
    /// Failed.
    pub failed: u32,
    /// Skipped.
    pub skipped: u32,
}

/// A run as far as its events tell.
#[derive(Debug, Clone, Default)]
pub struct RunFold {
    /// Seed of the run.
    pub seed: u64,
    /// Cases that the run announced.
    pub planned: u32,
    /// Whether NEW and FLAKY fail the run.
    pub strict: bool,
    /// Command line of the run.
    pub argv: Vec<String>,
    /// Cases in the order of the plan.
    pub cases: Vec<CaseState>,
    /// Exit code, absent for a run that was cut off.
    pub exit_code: Option<u8>,
    /// Milliseconds, absent for a run that was cut off.
    pub duration_ms: Option<u64>,
    /// Patches of the series that the run tests.
    pub patches: Vec<PatchState>,
    /// The new and the earlier version that are compared.
    pub compared: Option<(String, String)>,
    index: BTreeMap<String, usize>,
}

impl RunFold {
    /// Folds a whole record.
    pub fn of(records: &[Record]) -> RunFold {
        let mut fold = RunFold::default();
        records.iter().for_each(|r| fold.on(r));
        fold
    }

    /// Takes the next record.
    pub fn on(&mut self, record: &Record) {
        match &record.event {
            Event::RunStarted { seed, planned, strict, argv, .. } => {
                (self.seed, self.planned, self.strict) = (*seed, *planned, *strict);
                self.argv = argv.clone();
            }
            Event::CasePlanned { case, kernel, topology, scenario, seed, base, .. } => {
                let state = self.case_mut(case);
                state.kernel.clone_from(kernel);
                state.topology.clone_from(topology);
                state.scenario.clone_from(scenario);
                state.seed = *seed;
                state.base = *base;
            }
            Event::CaseCompared { case, .. } => {
                self.case_mut(case).compared = compared(&record.event);
            }
            Event::CaseStarted { case, dir, .. } => {
                let state = self.case_mut(case);
                state.started = true;
                state.step = None;
                state.dir = Some(dir.clone());
            }
            Event::StepStarted { case, step } => {
                self.case_mut(case).step = Some(step.clone());
            }
            Event::CaseFinished { .. } => self.finish_case(&record.event),
            Event::RunFinished { exit_code, duration_ms, .. } => {
                self.exit_code = Some(*exit_code);
                self.duration_ms = Some(*duration_ms);
            }
            Event::PatchBuilt { .. } => self.patches.extend(PatchState::of(&record.event)),
            Event::SeriesCompared { series, against } => {
                self.compared = Some((series.clone(), against.clone()));
            }
            Event::KernelReady { .. }
            | Event::SeriesPlanned { .. }
            | Event::VmReady { .. }
            | Event::CaseFaults { .. }
            | Event::RunResumed { .. }
            | Event::Note { .. } => {}
        }
    }

    fn finish_case(&mut self, event: &Event) {
        let Event::CaseFinished {
            case,
            kernel,
            topology,
            scenario,
            verdict,
            owner,
            cause,
            evidence,
            duration_ms,
            dir,
            seed,
            ..
        } = event
        else {
            return;
        };
        let state = self.case_mut(case);
        state.kernel.clone_from(kernel);
        state.topology.clone_from(topology);
        state.scenario.clone_from(scenario);
        state.seed = *seed;
        state.dir = Some(dir.clone());
        state.end = Some(CaseEnd {
            verdict: verdict.clone(),
            owner: *owner,
            cause: cause.clone(),
            evidence: evidence.clone(),
            duration_ms: *duration_ms,
        });
    }

    fn case_mut(&mut self, case: &str) -> &mut CaseState {
        let next = self.cases.len();
        let index = *self.index.entry(case.to_string()).or_insert(next);
        if index == next {
            self.cases.push(CaseState { case: case.to_string(), ..CaseState::default() });
        }
        &mut self.cases[index]
    }

    /// The state of one case.
    pub fn case(&self, case: &str) -> Option<&CaseState> {
        self.index.get(case).map(|i| &self.cases[*i])
    }

    /// Cases that were begun and have no end: running now, or when the record was cut off.
    pub fn unfinished(&self) -> impl Iterator<Item = &CaseState> {
        self.cases.iter().filter(|c| c.started && c.end.is_none())
    }

    /// Planned cases that were never begun and have no end.
    pub fn not_started(&self) -> impl Iterator<Item = &CaseState> {
        self.cases.iter().filter(|c| !c.started && c.end.is_none())
    }

    /// Cases that ended.
    pub fn finished(&self) -> usize {
        self.cases.iter().filter(|c| c.end.is_some()).count()
    }

    /// Cases to show again at the end and to run again by `rerun`: those that failed, those
    /// that did not finish, and a NEW or FLAKY also where it does not fail the run.
    pub fn to_look_at(&self) -> impl Iterator<Item = &CaseState> {
        self.cases.iter().filter(|c| match &c.end {
            Some(end) => end.verdict == Verdict::Known || end.verdict.tally(true) == Tally::Failed,
            None => c.started,
        })
    }

    /// The counts. A case that was begun counts as failed until it proved otherwise, one that
    /// was not begun as skipped. Cases on the base are not among them.
    pub fn counts(&self) -> Counts {
        self.count(false)
    }

    /// The counts of the cases on the base; none when there are no such cases.
    pub fn base_counts(&self) -> Option<Counts> {
        self.cases.iter().any(|case| case.base).then(|| self.count(true))
    }

    fn count(&self, base: bool) -> Counts {
        let mut counts = Counts::default();
        for case in self.cases.iter().filter(|case| case.base == base) {
            let tally = match &case.end {
                Some(end) => end.verdict.tally(self.strict),
                None if case.started => Tally::Failed,
                None => Tally::Skipped,
            };
            match tally {
                Tally::Passed => counts.passed += 1,
                Tally::Failed => counts.failed += 1,
                Tally::Skipped => counts.skipped += 1,
            }
        }
        counts
    }
}

/// What a comparison says, in one line.
fn compared(event: &Event) -> String {
    let Event::CaseCompared { base, base_verdict, comparable, known, new, gone, excused, .. } =
        event
    else {
        return String::new();
    };
    if !comparable {
        let why = base_verdict.as_deref().unwrap_or("no end");
        return format!("not compared, nothing is excused: {base} came to {why}");
    }
    let told = |what: &str, titles: &[String]| {
        (!titles.is_empty()).then(|| format!("{what}: {}", titles.join(", ")))
    };
    // The cause of an excused case names them.
    let known = told("known on base", known).filter(|_| !excused);
    let parts = [told("new", new), known, told("gone", gone)];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::samples;

    #[test]
    fn a_cut_off_run_has_unfinished_cases_that_are_no_passes() {
        let fold = RunFold::of(&[
            samples::started(3),
            samples::planned("k/t/a"),
            samples::planned("k/t/b"),
            samples::planned("k/t/c"),
            samples::case_started("k/t/a"),
            samples::finished("k/t/a", Verdict::Pass, None, ""),
            samples::case_started("k/t/b"),
        ]);
        assert_eq!(fold.exit_code, None);
        assert_eq!(fold.unfinished().map(|c| c.case.as_str()).collect::<Vec<_>>(), ["k/t/b"]);
        assert_eq!(fold.not_started().map(|c| c.case.as_str()).collect::<Vec<_>>(), ["k/t/c"]);
        assert_eq!(fold.counts(), Counts { passed: 1, failed: 1, skipped: 1 });
        assert_eq!(fold.to_look_at().count(), 1);
    }

    #[test]
    fn new_is_a_pass_only_where_the_run_is_not_strict() {
        let mut fold = RunFold::of(&[samples::finished("k/t/a", Verdict::New, None, "")]);
        assert_eq!(fold.counts().passed, 1);
        fold.strict = true;
        assert_eq!(fold.counts().failed, 1);
    }
}
