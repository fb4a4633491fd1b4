//! The dispatcher: groups of cases that share a template, in order, as many at once as fit.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::attempt::{Attempt, Done};
use super::context::Context;
use super::events::Event;
use super::source::{self, Key, Source};
use crate::config::scenario::ImageKind;
use crate::judge::Judgement;
use crate::judge::verdict::{Owner, Tally, Verdict};
use crate::kernel::Kernel;
use crate::plan::{Case, skip_reason};

/// What is to be dispatched.
pub(super) struct Work {
    pub(super) kernels: BTreeMap<String, Arc<Kernel>>,
    pub(super) images: BTreeMap<ImageKind, PathBuf>,
    /// virtme-ng, or why there is none.
    pub(super) vng: Option<Result<PathBuf, String>>,
    pub(super) cases: Vec<Case>,
    pub(super) jobs: usize,
    pub(super) retries: u32,
    pub(super) fail_fast: bool,
}

/// Verdicts by case, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    /// Of the kernels under test.
    pub(super) tested: Vec<Verdict>,
    /// Of the base, which do not count.
    pub(super) base: Vec<Verdict>,
}

/// A case with what it needs.
#[derive(Clone)]
struct Ready {
    case: Case,
    kernel: Arc<Kernel>,
    image: PathBuf,
    key: Key,
}

/// What came of one case: its verdict; none when it was cut off.
type CaseEnd = io::Result<Option<Verdict>>;

/// Runs everything, or what an interrupt leaves time for. Errors: the record cannot be written.
pub(super) async fn run(context: &Arc<Context>, work: Work) -> io::Result<Verdicts> {
    let mut all = Verdicts::default();
    let (base, tested): (Vec<&Case>, Vec<&Case>) = work.cases.iter().partition(|case| case.base);
    // What the base came to must be known before anything is held against it. Its failures
    // stop nothing.
    all.base = part(context, &work, &base, false).await?;
    all.tested = part(context, &work, &tested, work.fail_fast).await?;
    Ok(all)
}

async fn part(
    context: &Arc<Context>,
    work: &Work,
    cases: &[&Case],
    fail_fast: bool,
) -> io::Result<Vec<Verdict>> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut verdicts = Vec::new();
    let mut runnable = Vec::new();
    if context.cancel.is_cancelled() {
        return Ok(verdicts);
    }
    for case in cases {
        let host_root = case.scenario.image == ImageKind::Host;
        if let Some(Err(why)) = work.vng.as_ref().filter(|_| host_root) {
            verdicts.push(unable(context, case, why.clone())?);
            continue;
        }
        match ready(context, work, case) {
            Ok(ready) => runnable.push(ready),
            Err(reason) => verdicts.push(skip(context, case, reason)?),
        }
    }
    for (index, group) in runnable.chunk_by(|a, b| a.key == b.key).enumerate() {
        if stop.load(Ordering::Relaxed) || context.cancel.is_cancelled() {
            break;
        }
        let source = Arc::new(prepare(context, group, index).await);
        run_group(context, work, fail_fast, group, source, &stop, &mut verdicts).await?;
    }
    Ok(verdicts)
}

fn ready(context: &Context, work: &Work, case: &Case) -> Result<Ready, String> {
    let kernel = work.kernels.get(&case.kernel).ok_or("the kernel is not at hand")?;
    let image = work.images.get(&case.scenario.image).ok_or("the image is not at hand")?;
    let enabled =
        kernel.config.as_ref().map(|c| move |name: &str| c.get(name).is_some_and(|v| v == "y"));
    let reason = skip_reason(case, enabled.as_ref().map(|f| f as &dyn Fn(&str) -> bool));
    if let Some(reason) = reason {
        return Err(reason);
    }
    let key = Key {
        kernel: case.kernel.clone(),
        topology: case.topology.name.clone(),
        image: image.clone(),
        cmdline: source::cmdline_of(context.accel, kernel, case),
    };
    Ok(Ready { case: case.clone(), kernel: Arc::clone(kernel), image: image.clone(), key })
}

async fn prepare(context: &Arc<Context>, group: &[Ready], index: usize) -> Source {
    let first = &group[0];
    let sockets = context.socket_dir();
    let spec = source::spec(context, &first.kernel, &first.image, &first.case, sockets);
    let limits = context.limits(&first.kernel);
    let record = context.run_dir.unused("templates", &index.to_string());
    let source = source::prepare(context, &spec, &first.key, &limits, &record).await;
    let _ = std::fs::remove_dir_all(&spec.dir);
    source
}

async fn run_group(
    context: &Arc<Context>,
    work: &Work,
    fail_fast: bool,
    group: &[Ready],
    source: Arc<Source>,
    stop: &Arc<AtomicBool>,
    verdicts: &mut Vec<Verdict>,
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(work.jobs.max(1)));
    let mut running = JoinSet::new();
    for ready in group {
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { break };
        if stop.load(Ordering::Relaxed) || context.cancel.is_cancelled() {
            break;
        }
        let (context, ready) = (Arc::clone(context), ready.clone());
        let (source, stop) = (Arc::clone(&source), Arc::clone(stop));
        let retries = work.retries;
        running.spawn(async move {
            let _place = place;
            let end = run_case(&context, &ready, &source, retries).await;
            let failed = |v: &Verdict| v.tally(context.strict) == Tally::Failed;
            if fail_fast && matches!(&end, Ok(Some(v)) if failed(v)) {
                stop.store(true, Ordering::Relaxed);
            }
            end
        });
    }
    while let Some(joined) = running.join_next().await {
        let end = joined.map_err(io::Error::other)?;
        verdicts.extend(end?);
    }
    Ok(())
}

/// Attempts until one passes or none is left. Attempts that differ are FLAKY, never PASS.
async fn run_case(context: &Arc<Context>, ready: &Ready, source: &Source, retries: u32) -> CaseEnd {
    let mut passed = 0;
    let mut first_failure: Option<Judgement> = None;
    let mut number = 1;
    loop {
        let attempt = || Attempt {
            context,
            case: &ready.case,
            kernel: &ready.kernel,
            image: &ready.image,
            source,
            number,
        };
        let Some(done) = attempt().run().await? else { return Ok(None) };
        let failed = done.judgement.verdict.tally(context.strict) == Tally::Failed;
        // KNOWN is no failure, and no pass that could make one FLAKY.
        passed += u32::from(done.judgement.verdict.tally(context.strict) == Tally::Passed);
        if failed && number <= retries {
            first_failure.get_or_insert(done.judgement);
            number += 1;
            continue;
        }
        let judgement = conclude(&done, first_failure, passed, number);
        let event = attempt().finished(&done, &judgement);
        context.tell(event)?;
        return Ok(Some(judgement.verdict));
    }
}

/// The verdict of all attempts; a mixed one keeps the cause of its first failure.
fn conclude(done: &Done, first: Option<Judgement>, passed: u32, attempts: u32) -> Judgement {
    match first {
        Some(first) if passed > 0 => {
            Judgement { verdict: Verdict::Flaky { passed, of: attempts }, ..first }
        }
        Some(first) => first,
        None => done.judgement.clone(),
    }
}

/// A case that the host cannot run.
fn unable(context: &Context, case: &Case, cause: String) -> io::Result<Verdict> {
    end(context, case, (Verdict::Infra, cause), Some(Owner::Host))
}

fn skip(context: &Context, case: &Case, reason: String) -> io::Result<Verdict> {
    let lost = if case.base { None } else { context.bases.lost(case.place(), &reason) };
    let owner = lost.is_some().then_some(Owner::Kernel);
    let ended = lost.unwrap_or_else(|| (Verdict::Skip { reason: reason.clone() }, reason));
    end(context, case, ended, owner)
}

/// The end of a case that never began.
fn end(
    context: &Context,
    case: &Case,
    (verdict, cause): (Verdict, String),
    owner: Option<Owner>,
) -> io::Result<Verdict> {
    context.tell(Event::CaseFinished {
        case: case.id.clone(),
        kernel: case.kernel.clone(),
        topology: case.topology.name.clone(),
        scenario: case.scenario.name.clone(),
        verdict: verdict.clone(),
        owner,
        cause,
        evidence: Vec::new(),
        duration_ms: 0,
        attempts: 0,
        isolation: "none".into(),
        accel: context.accel.name().into(),
        dir: String::new(),
        seed: case.seed,
    })?;
    Ok(verdict)
}
