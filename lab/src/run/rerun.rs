//! Planning again what a record planned, with the same seeds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::events::{Event, Record};
use super::launch::RunError;
use super::options::{Begin, RerunOptions, TestOptions};
use super::record::{self, RunDir};
use super::steps;
use crate::config::load::Project;
use crate::config::scenario::Profile;
use crate::plan::{Plan, Selection, find_case, plan};

/// Runs searched for a case, newest first.
const MAX_LOOKED_AT: usize = 200;

/// The options and the plan that repeat a run, or one case of the latest run that has it.
///
/// # Errors
///
/// [`RunError::Rerun`] when there is no such run or case, or when the project no longer has
/// what was run.
pub fn rerun(
    project: &Project,
    runs: &Path,
    options: &RerunOptions,
) -> Result<(TestOptions, Plan), RunError> {
    let wrong = |text: String| RunError::Rerun(text);
    let (run, only) = match (find(runs, &options.what), options.seed) {
        (Ok(found), _) => found,
        (Err(_), Some(seed)) => return unrecorded(project, options, seed),
        (Err(e), None) => return Err(e),
    };
    if options.seed.is_some() && only.is_none() {
        return Err(wrong("--seed is for one case, not for a whole run".into()));
    }
    let (records, _) = run.read().map_err(|e| wrong(format!("{}: {e}", run.name())))?;
    let mut seeds = planned(&records, only.as_deref());
    match (seeds.is_empty(), options.seed) {
        (true, Some(seed)) => return unrecorded(project, options, seed),
        (true, None) => return Err(wrong(format!("run {} planned no such case", run.name()))),
        (false, Some(seed)) => seeds.values_mut().for_each(|recorded| *recorded = seed),
        (false, None) => {}
    }
    // A case is held against the base again, so that runs there, too.
    let on_base = on_base(&records);
    let base = base_name(&records, &on_base);
    if let (Some(only), Some(base)) = (&only, &base) {
        let partner = format!("{base}/{}", place(&records, only));
        let seed = planned(&records, Some(&partner));
        seeds.extend(seed);
    }
    let alone = seeds.keys().all(|case| on_base.contains(case));
    let project = &steps::of_record(project, &records, run.path());
    let (options, mut plan) = replan(project, options, &records, &seeds)?;
    if alone {
        // Nothing is left to compare: the base is what is tested.
        plan.base = None;
        plan.cases.iter_mut().for_each(|case| case.base = false);
        let selection = Selection {
            kernels: options.selection.base.iter().cloned().collect(),
            base: None,
            ..options.selection
        };
        return Ok((TestOptions { selection, ..options }, plan));
    }
    Ok((options, plan))
}

/// Plans exactly the cases of `seeds`, in the order of plans.
///
/// Errors: [`RunError::Rerun`] when the project no longer has one of them.
pub(super) fn replan(
    project: &Project,
    options: &RerunOptions,
    records: &[Record],
    seeds: &BTreeMap<String, u64>,
) -> Result<(TestOptions, Plan), RunError> {
    let wrong = |text: String| RunError::Rerun(text);
    let selection = selection(records, seeds);
    let mut plan = plan(project, &selection).map_err(|e| wrong(e.to_string()))?;
    plan.cases.retain(|case| seeds.contains_key(&case.id));
    for case in &mut plan.cases {
        case.seed = seeds[&case.id];
    }
    let gone = seeds.keys().find(|id| !plan.cases.iter().any(|case| case.id == **id));
    if let Some(id) = gone {
        return Err(wrong(format!("the project no longer has case {id}")));
    }
    Ok((test_options(options, selection, records), plan))
}

/// A case that the latest run does not have: its seed is all that is needed.
fn unrecorded(
    project: &Project,
    options: &RerunOptions,
    seed: u64,
) -> Result<(TestOptions, Plan), RunError> {
    let found = find_case(project, &options.what, None, seed);
    let mut plan = found.map_err(|e| RunError::Rerun(e.to_string()))?;
    plan.cases.iter_mut().for_each(|case| case.seed = seed);
    let selection = Selection {
        base: None,
        kernels: plan.kernels.keys().cloned().collect(),
        topologies: Vec::new(),
        scenarios: Vec::new(),
        profile: Profile::Soak,
        repeat: 1,
        seed,
        shard: None,
    };
    Ok((test_options(options, selection, &[]), plan))
}

/// The run, and the case where `what` names one.
fn find(runs: &Path, what: &str) -> Result<(RunDir, Option<String>), RunError> {
    if let Ok(run) = record::find(runs, what) {
        return Ok((run, None));
    }
    let names = record::names(runs).unwrap_or_default();
    let newest = names.iter().rev().take(MAX_LOOKED_AT);
    let mut recorded = newest.map(|name| RunDir::open(&runs.join(name)));
    let run = recorded
        .find(|run| run.read().is_ok_and(|(records, _)| !planned(&records, Some(what)).is_empty()));
    let run =
        run.ok_or_else(|| RunError::Rerun(format!("no run and no case of a run `{what}`")))?;
    Ok((run, Some(what.to_string())))
}

/// Ids of the cases that run on the base.
pub(super) fn on_base(records: &[Record]) -> BTreeSet<String> {
    let cases = records.iter().filter_map(|record| match &record.event {
        Event::CasePlanned { case, base: true, .. } => Some(case.clone()),
        _ => None,
    });
    cases.collect()
}

/// Name of the base kernel in case ids.
fn base_name(records: &[Record], on_base: &BTreeSet<String>) -> Option<String> {
    records.iter().find_map(|record| match &record.event {
        Event::CasePlanned { case, kernel, .. } if on_base.contains(case) => Some(kernel.clone()),
        _ => None,
    })
}

/// A case without its kernel.
fn place(records: &[Record], id: &str) -> String {
    let kernel = records.iter().find_map(|record| match &record.event {
        Event::CasePlanned { case, kernel, .. } if case == id => Some(kernel.len() + 1),
        _ => None,
    });
    kernel.and_then(|at| id.get(at..)).unwrap_or(id).to_owned()
}

pub(super) fn planned(records: &[Record], only: Option<&str>) -> BTreeMap<String, u64> {
    let cases = records.iter().filter_map(|record| match &record.event {
        Event::CasePlanned { case, seed, .. } => Some((case.clone(), *seed)),
        _ => None,
    });
    cases.filter(|(case, _)| only.is_none_or(|only| only == case)).collect()
}

/// A selection wide enough for every case that was planned.
fn selection(records: &[Record], seeds: &BTreeMap<String, u64>) -> Selection {
    let (kernels, base, seed) = records
        .iter()
        .find_map(|record| match &record.event {
            Event::RunStarted { kernels, base, seed, .. } => {
                Some((kernels.clone(), base.clone(), *seed))
            }
            _ => None,
        })
        .unwrap_or_default();
    let repeats = seeds.keys().filter_map(|id| id.rsplit_once('#')?.1.parse().ok());
    Selection {
        base,
        kernels,
        topologies: vec!["*".into()],
        scenarios: Vec::new(),
        profile: Profile::Soak,
        repeat: repeats.max().unwrap_or(1),
        seed,
        shard: None,
    }
}

fn test_options(options: &RerunOptions, selection: Selection, records: &[Record]) -> TestOptions {
    let started = records.iter().find_map(|record| match &record.event {
        Event::RunStarted { strict, manner, .. } => Some((*strict, manner.clone())),
        _ => None,
    });
    let (strict, manner) = started.unwrap_or_default();
    TestOptions {
        selection,
        manner: manner.with(options.changes),
        format: options.format,
        junit: None,
        dry_run: false,
        setup: false,
        ci: strict,
        argv: options.argv.clone(),
        begin: Begin::default(),
    }
}
