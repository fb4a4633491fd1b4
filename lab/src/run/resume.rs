//! Going on with a run that was cut off, in its own record: cases that finished are not run
//! again, all others are.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::dispatch::Verdicts;
use super::events::{Event, Record};
use super::launch::RunError;
use super::log::EventLog;
use super::options::{RerunOptions, TestOptions};
use super::record::{self, RunDir};
use super::rerun;
use super::resolved;
use super::steps;
use crate::config::load::Project;
use crate::judge::verdict::Verdict;
use crate::kernel::Kernel;
use crate::plan::Plan;

/// What a run has done so far. Its record is locked: nobody else goes on with it.
pub struct Earlier {
    pub(super) run_dir: RunDir,
    pub(super) log: EventLog,
    records: Vec<Record>,
}

/// The options and the plan of what is left of a run, and what was done.
///
/// # Errors
///
/// [`RunError::Rerun`] when there is no such run, when it still goes on or was cut off before
/// its plan was written, or when the project no longer has what is left.
pub fn resume(
    project: &Project,
    runs: &Path,
    options: &RerunOptions,
) -> Result<(TestOptions, Plan, Earlier), RunError> {
    let wrong = |text: String| RunError::Rerun(text);
    if options.seed.is_some() {
        return Err(wrong("--seed is for one case, not for a run that goes on".into()));
    }
    let run = record::find(runs, &options.what).map_err(|e| wrong(e.to_string()))?;
    let log = EventLog::resume(run.path()).map_err(|e| match e.kind() {
        io::ErrorKind::WouldBlock => wrong(format!("run {} still goes on", run.name())),
        _ => wrong(format!("{}: {e}", run.name())),
    })?;
    let (records, torn) = run.read().map_err(|e| wrong(format!("{}: {e}", run.name())))?;
    if torn.is_some() {
        return Err(wrong(format!("the record of run {} is damaged", run.name())));
    }
    let left = left(&records).map_err(|text| wrong(format!("run {}: {text}", run.name())))?;
    let project = &steps::of_record(project, &records, run.path());
    let (options, plan) = rerun::replan(project, options, &records, &left)?;
    unchanged(&records, &plan).map_err(|text| wrong(format!("run {}: {text}", run.name())))?;
    Ok((options, plan, Earlier { run_dir: run, log, records }))
}

/// Ids and seeds of the cases that have no end.
fn left(records: &[Record]) -> Result<BTreeMap<String, u64>, String> {
    let mut seeds = rerun::planned(records, None);
    let announced = records.iter().find_map(|record| match record.event {
        Event::RunStarted { planned, .. } => Some(planned as usize),
        _ => None,
    });
    if announced != Some(seeds.len()) {
        return Err("was cut off before its plan was written; run it anew".into());
    }
    let finished = records.iter().filter_map(|record| match &record.event {
        Event::CaseFinished { case, .. } => Some(case),
        _ => None,
    });
    for case in finished {
        seeds.remove(case);
    }
    Ok(seeds)
}

/// Refuses cases that are no longer what was planned: a run is of one state of its project.
fn unchanged(records: &[Record], plan: &Plan) -> Result<(), String> {
    let recorded = records.iter().filter_map(|record| match &record.event {
        Event::CasePlanned { case, digest: Some(digest), .. } => Some((case, digest)),
        _ => None,
    });
    let recorded: BTreeMap<&String, &String> = recorded.collect();
    for case in &plan.cases {
        let now = resolved::digest(plan, case);
        if recorded.get(&case.id).is_some_and(|then| **then != now) {
            let what = "scenario, topology or kernel arguments changed since it was planned";
            return Err(format!("case {}: {what}; run it anew", case.id));
        }
    }
    Ok(())
}

impl Earlier {
    /// How long the parts so far took, from the first to the last record of each.
    pub(super) fn took(&self) -> Duration {
        let time = |record: &Record| record.time.parse::<jiff::Timestamp>().ok();
        let begins = |record: &Record| {
            matches!(record.event, Event::RunStarted { .. } | Event::RunResumed { .. })
        };
        let parts = self.records.chunk_by(|_, next| !begins(next));
        let took = parts.filter_map(|part| {
            let (first, last) = (time(part.first()?)?, time(part.last()?)?);
            Duration::try_from(last.duration_since(first)).ok()
        });
        took.sum::<Duration>()
    }

    /// The records that a reporter of the whole run is to see before it goes on.
    pub(super) fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(|r| !matches!(r.event, Event::RunFinished { .. }))
    }

    /// All records.
    pub(super) fn all(&self) -> &[Record] {
        &self.records
    }

    /// What came of the cases that finished, each once.
    pub(super) fn verdicts(&self) -> Verdicts {
        let mut seen = BTreeSet::new();
        let ends = self.records.iter().filter_map(|record| match &record.event {
            Event::CaseFinished { case, verdict, .. } => Some((case, verdict)),
            _ => None,
        });
        let ends = ends.filter(|(case, _)| seen.insert(*case));
        let on_base = rerun::on_base(&self.records);
        let (base, tested): (Vec<_>, Vec<_>) = ends.partition(|(case, _)| on_base.contains(*case));
        let verdicts =
            |ends: Vec<(&String, &Verdict)>| ends.into_iter().map(|e| e.1.clone()).collect();
        Verdicts { tested: verdicts(tested), base: verdicts(base) }
    }

    /// Refuses kernels that are not those that the run began with: its verdicts would be of two
    /// kernels under one name.
    pub(super) fn same_kernels(
        &self,
        kernels: &BTreeMap<String, Arc<Kernel>>,
    ) -> Result<(), RunError> {
        for record in &self.records {
            let Event::KernelReady { kernel, sha256, release, .. } = &record.event else {
                continue;
            };
            if kernels.get(kernel).is_some_and(|now| now.sha256 != *sha256) {
                let text = format!(
                    "kernel {kernel} is not the {release} any more that the run began with"
                );
                return Err(RunError::Rerun(text));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::samples;

    fn earlier(records: Vec<Record>) -> (tempfile::TempDir, Earlier) {
        let dir = tempfile::tempdir().unwrap();
        let run_dir = RunDir::create(dir.path()).unwrap();
        let log = EventLog::create(run_dir.path()).unwrap();
        (dir, Earlier { run_dir, log, records })
    }

    fn cut_off() -> Vec<Record> {
        vec![
            samples::started(3),
            samples::planned("k/t/a"),
            samples::planned("k/t/b"),
            samples::planned("k/t/c"),
            samples::case_started("k/t/a"),
            samples::finished("k/t/a", Verdict::Fail, None, "x"),
            samples::case_started("k/t/b"),
            samples::run_finished(0, 1, 0, 130),
        ]
    }

    #[test]
    fn what_has_no_end_is_left() {
        let ids = |records: &[Record]| left(records).map(|l| l.into_keys().collect::<Vec<_>>());
        assert_eq!(ids(&cut_off()), Ok(vec!["k/t/b".into(), "k/t/c".into()]));
        assert!(ids(&cut_off()[..3]).unwrap_err().contains("before its plan"));
        assert!(ids(&[]).is_err());
    }

    #[test]
    fn all_parts_of_a_run_take_time() {
        let at = |second: u32, mut record: Record| {
            record.time = format!("2026-01-02T03:04:{second:02}.000Z");
            record
        };
        let resumed = samples::at(Event::RunResumed { finished: 1, left: 2 });
        let (_dir, earlier) = earlier(vec![
            at(1, samples::started(3)),
            at(3, samples::case_started("k/t/a")),
            at(30, resumed),
            at(34, samples::case_started("k/t/b")),
        ]);
        assert_eq!(earlier.took(), Duration::from_secs(2 + 4));
    }

    #[test]
    fn finished_cases_count_once_and_an_earlier_end_is_none() {
        let mut records = cut_off();
        records.push(samples::finished("k/t/a", Verdict::Pass, None, ""));
        let (_dir, earlier) = earlier(records);
        assert_eq!(earlier.verdicts().tested, [Verdict::Fail]);
        assert!(earlier.records().all(|r| !matches!(r.event, Event::RunFinished { .. })));
        assert_eq!(earlier.records().count(), 8);
    }

    #[test]
    fn another_kernel_under_the_same_name_is_refused() {
        let (_dir, earlier) = earlier(samples::one_of_each());
        let kernel = |sha256: &str| Kernel {
            name: "stock".into(),
            release: "7".into(),
            image: "/k".into(),
            sha256: sha256.into(),
            vmlinux: None,
            config: None,
            origin: String::new(),
            cmdline: Vec::new(),
            queue_policy: None,
        };
        let check = |sha256: &str| {
            earlier.same_kernels(&BTreeMap::from([("stock".into(), Arc::new(kernel(sha256)))]))
        };
        assert!(check(&"ab".repeat(32)).is_ok());
        assert!(check("other").unwrap_err().to_string().contains("stock is not the 7.3.4"));
    }
}
