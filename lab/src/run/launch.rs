//! From options to an exit code.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::bases::Bases;
use super::context::Context;
use super::dispatch::{self, Work};
use super::events::{Event, SCHEMA};
use super::log::EventLog;
use super::options::TestOptions;
use super::prepare::{self, Prepared};
use super::record::RunDir;
use super::resolved::digest;
use super::resume::Earlier;
use super::retain::{self, Keep};
use super::session::millis;
use super::signals;
use super::steps;
use crate::config::kernel::{KernelEntry, KernelSource};
use crate::config::shipped;
use crate::doctor::Check;
use crate::host::paths::{Paths, PathsError};
use crate::host::scratch::Scratch;
use crate::host::setup::{self, SetupError};
use crate::host::slots::{Share, Slots};
use crate::image::ImageError;
use crate::judge::exit::{Outcome, exit_code};
use crate::judge::verdict::{Tally, Verdict};
use crate::kernel::KernelError;
use crate::plan::Plan;
use crate::report::Reporter;
use crate::vm::VmError;
use crate::vm::accel::AccelError;

/// Where a run happens and whom it tells.
pub struct Host<'a> {
    /// Directories of the lab.
    pub paths: &'a Paths,
    /// Root of the project, where it has one.
    pub root: Option<&'a Path>,
    /// QEMU program, where another than the one in PATH was named.
    pub qemu: Option<PathBuf>,
    /// Guest binary, where another than the lab's own was named: for testers of lab itself.
    pub guest: Option<PathBuf>,
    /// virtme-ng, where another than the lab's own was named.
    pub vng: Option<PathBuf>,
    /// How many runs are kept.
    pub keep: Keep,
    /// What VMs may have of this machine.
    pub share: Share,
    /// Takes lines about what takes long or was decided.
    pub tell: &'a (dyn Fn(&str) + Send + Sync),
}

/// Why a run did not come to an exit code of its own.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A kernel is not there or is none.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// QEMU is not there.
    #[error(transparent)]
    Vm(#[from] VmError),
    /// The accelerator asked for cannot be used.
    #[error(transparent)]
    Accel(#[from] AccelError),
    /// An image could not be built.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// Something is missing on the host and could not be installed.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// No place to write.
    #[error(transparent)]
    Paths(#[from] PathsError),
    /// The record could not be written.
    #[error("the record of the run cannot be written: {0}")]
    Record(#[from] io::Error),
    /// The selection is empty.
    #[error("nothing to run")]
    Nothing,
    /// What was recorded cannot be run again.
    #[error("{0}")]
    Rerun(String),
    /// The base is one of the kernels that are held against it.
    #[error(
        "the base `{base}` and `{kernel}` are the same image with the same arguments: what both do would be excused; name another base"
    )]
    SameKernel {
        /// The base.
        base: String,
        /// The other name of it.
        kernel: String,
    },
    /// The host failed in a way that leaves the question open.
    #[error("{0}")]
    Host(String),
    /// The user interrupted the preparation.
    #[error("interrupted")]
    Interrupted,
}

impl RunError {
    /// The exit code: 2 for what the user named, 4 for nothing to run, 130 for an interrupt,
    /// else 3.
    pub fn exit_code(&self) -> u8 {
        match self {
            RunError::Kernel(e) if e.is_usage() => 2,
            RunError::Rerun(_) | RunError::SameKernel { .. } => 2,
            RunError::Nothing => 4,
            RunError::Interrupted
            | RunError::Vm(VmError::Cancelled)
            | RunError::Accel(AccelError::Cancelled) => signals::INTERRUPTED,
            _ => 3,
        }
    }
}

/// Makes the reporters of a run, given its directory.
pub type Reporters<'a> = &'a dyn Fn(&Path) -> io::Result<Vec<Box<dyn Reporter>>>;

/// Runs a plan to its exit code.
///
/// # Errors
///
/// [`RunError`]; the record, where there is one already, stays readable.
pub fn test(
    host: &Host<'_>,
    options: &TestOptions,
    plan: &Plan,
    reporters: Reporters<'_>,
) -> Result<u8, RunError> {
    // A series of which nothing can be built still has a record that says so.
    if plan.cases.is_empty() && options.begin.events.is_empty() {
        return Err(RunError::Nothing);
    }
    whole(host, options, plan, None, reporters)
}

/// Goes on with a run that was cut off: runs the plan of what is left, in the same record. The
/// reporters see the whole run, and the exit code is that of all its cases.
///
/// # Errors
///
/// As [`test`], and [`RunError::Rerun`] when a kernel is not the one that the run began with.
pub fn go_on(
    host: &Host<'_>,
    options: &TestOptions,
    plan: &Plan,
    earlier: Earlier,
    reporters: Reporters<'_>,
) -> Result<u8, RunError> {
    whole(host, options, plan, Some(earlier), reporters)
}

fn whole(
    host: &Host<'_>,
    options: &TestOptions,
    plan: &Plan,
    earlier: Option<Earlier>,
    reporters: Reporters<'_>,
) -> Result<u8, RunError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let end = runtime.block_on(run(host, options, plan, earlier, reporters));
    // What still runs belongs to a failed or interrupted run; QEMU dies with the process.
    runtime.shutdown_background();
    end
}

async fn run(
    host: &Host<'_>,
    options: &TestOptions,
    plan: &Plan,
    earlier: Option<Earlier>,
    reporters: Reporters<'_>,
) -> Result<u8, RunError> {
    let cancel = CancellationToken::new();
    signals::watch(cancel.clone())?;
    let begin = Instant::now();
    let prepared = tokio::select! {
        prepared = before(host, options, plan, &cancel) => prepared?,
        () = cancel.cancelled() => return Err(RunError::Interrupted),
    };
    let done = earlier.as_ref().map(Earlier::verdicts);
    let took = earlier.as_ref().map(Earlier::took).unwrap_or_default();
    let records = earlier.as_ref().map(Earlier::all).unwrap_or_default().to_vec();
    let bases = Bases::of(plan.base.clone(), &records);
    let (run_dir, log) = match earlier {
        Some(earlier) => again(host, earlier, &prepared, reporters)?,
        None => fresh(host, reporters)?,
    };
    let context = context(host, options, &prepared, (run_dir, log), bases, cancel)?;
    match &done {
        Some(done) => announce_rest(&context, done.tested.len() + done.base.len(), plan)?,
        None => announce(&context, options, plan, &prepared)?,
    }
    let mut verdicts = done.unwrap_or_default();
    let on_base = plan.cases.iter().filter(|case| case.base).count();
    let planned_base = verdicts.base.len() + on_base;
    let planned = verdicts.tested.len() + plan.cases.len() - on_base;
    let rest = dispatch::run(&context, work(&context, options, plan, prepared)).await?;
    verdicts.tested.extend(rest.tested);
    verdicts.base.extend(rest.base);
    // A base that was not run leaves the question open that was asked.
    let no_base = verdicts.base.contains(&Verdict::Infra) || verdicts.base.len() != planned_base;
    let begun = records.iter().map(|r| &r.event).chain(&options.begin.events);
    let bad_patch = begun.into_iter().any(is_bad_patch);
    let ends = Ends { planned, no_base, bad_patch };
    let code = finish(&context, ends, &verdicts.tested, took + begin.elapsed())?;
    context.log.finish();
    Ok(code)
}

/// A new run. Makes room for it, too.
fn fresh(host: &Host<'_>, reporters: Reporters<'_>) -> Result<(RunDir, EventLog), RunError> {
    let run_dir = RunDir::create(&host.paths.runs)?;
    let mut log = EventLog::create(run_dir.path())?;
    make_room(host);
    for reporter in reporters(run_dir.path())? {
        log = log.with_reporter(reporter);
    }
    Ok((run_dir, log))
}

/// Removes the oldest runs where there are too many. A run that goes on is never removed.
fn make_room(host: &Host<'_>) {
    // Old runs that cannot be removed are no reason not to make a new one.
    let removed = retain::prune(&host.paths.runs, host.keep).unwrap_or_default();
    if removed.runs > 0 {
        let mib = removed.bytes >> 20;
        (host.tell)(&format!("removed the {} oldest runs, {mib} MiB", removed.runs));
    }
}

/// A run that goes on. Its reporters see first what was done.
fn again(
    host: &Host<'_>,
    earlier: Earlier,
    prepared: &Prepared,
    reporters: Reporters<'_>,
) -> Result<(RunDir, EventLog), RunError> {
    earlier.same_kernels(&prepared.kernels)?;
    make_room(host);
    let mut made = reporters(earlier.run_dir.path())?;
    for reporter in &mut made {
        earlier.records().for_each(|record| reporter.on(record));
    }
    let log = made.into_iter().fold(earlier.log, EventLog::with_reporter);
    Ok((earlier.run_dir, log))
}

fn announce_rest(context: &Context, done: usize, plan: &Plan) -> io::Result<()> {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let event = Event::RunResumed { finished: count(done), left: count(plan.cases.len()) };
    context.log.emit(event)
}

async fn before(
    host: &Host<'_>,
    options: &TestOptions,
    plan: &Plan,
    cancel: &CancellationToken,
) -> Result<Prepared, RunError> {
    if options.setup {
        let is_built = |k: &Arc<KernelEntry>| matches!(k.source, KernelSource::Built(_));
        let mut needs = setup::NEEDS.to_vec();
        if plan.kernels.values().any(is_built) {
            needs.extend(setup::BUILD_NEEDS);
        }
        setup::run(&needs, host.paths, host.tell, cancel).await?;
    }
    prepare::prepare(host, plan, options.manner.accel, cancel).await
}

fn context(
    host: &Host<'_>,
    options: &TestOptions,
    prepared: &Prepared,
    (run_dir, log): (RunDir, EventLog),
    bases: Bases,
    cancel: CancellationToken,
) -> Result<Arc<Context>, RunError> {
    let snapshots = match host.root {
        Some(root) => root.join("snapshots"),
        None => own_snapshots(run_dir.path())?,
    };
    Ok(Arc::new(Context {
        log: Arc::new(log),
        run_dir,
        scratch: Scratch::new()?,
        qemu: prepared.qemu.clone(),
        vng: prepared.vng.clone().and_then(Result::ok),
        accel: prepared.accel,
        snapshots,
        strict: options.strict(),
        isolation: options.manner.isolation,
        slots: Slots::for_host(&host.paths.cache.join("slots"), host.share),
        next_dir: AtomicU32::new(0),
        vmcore: options.manner.vmcore,
        bases,
        cancel,
    }))
}

/// Without a project, the shipped snapshots are what shipped scenarios are held to; what is new
/// stays with the run.
fn own_snapshots(run_dir: &Path) -> io::Result<PathBuf> {
    for (path, text) in shipped::snapshots() {
        let path = run_dir.join(path);
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(path, text)?;
    }
    Ok(run_dir.join("snapshots"))
}

fn announce(
    context: &Context,
    options: &TestOptions,
    plan: &Plan,
    prepared: &Prepared,
) -> io::Result<()> {
    let log = &context.log;
    log.emit(Event::RunStarted {
        schema: SCHEMA,
        lab: env!("CARGO_PKG_VERSION").into(),
        argv: options.argv.clone(),
        kernels: options.selection.kernels.iter().map(|k| absolute(k)).collect(),
        base: options.selection.base.as_deref().map(absolute),
        seed: options.selection.seed,
        planned: u32::try_from(plan.cases.len()).unwrap_or(u32::MAX),
        profile: options.selection.profile.name().into(),
        strict: context.strict,
        host: host_line(),
        manner: options.manner.clone(),
    })?;
    for (series, patches) in &options.begin.patches {
        super::log::keep_patches(&steps::kept(context.run_dir.path(), series), patches)?;
    }
    for event in &options.begin.events {
        log.emit(event.clone())?;
    }
    for text in prepared.accel_note.iter().cloned() {
        log.emit(Event::Note { text })?;
    }
    for case in &plan.cases {
        log.emit(Event::CasePlanned {
            case: case.id.clone(),
            kernel: case.kernel.clone(),
            topology: case.topology.name.clone(),
            scenario: case.scenario.name.clone(),
            seed: case.seed,
            base: case.base,
            digest: Some(digest(plan, case)),
        })?;
    }
    for kernel in prepared.kernels.values() {
        log.emit(Event::KernelReady {
            kernel: kernel.name.clone(),
            release: kernel.release.clone(),
            sha256: kernel.sha256.clone(),
            origin: kernel.origin.clone(),
        })?;
    }
    Ok(())
}

/// A path that means the same from any directory; the name of an entry stays as it is.
fn absolute(kernel: &str) -> String {
    if !kernel.contains('/') && !kernel.starts_with('.') {
        return kernel.into();
    }
    std::path::absolute(kernel).map_or_else(|_| kernel.into(), |p| p.display().to_string())
}

fn host_line() -> String {
    let uname = rustix::system::uname();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let info = rustix::system::sysinfo();
    let mib = (info.totalram * u64::from(info.mem_unit)) >> 20;
    format!("Linux {}, {cpus} CPUs, {mib} MiB", uname.release().to_string_lossy())
}

fn work(context: &Context, options: &TestOptions, plan: &Plan, prepared: Prepared) -> Work {
    Work {
        kernels: prepared.kernels,
        images: prepared.images,
        vng: prepared.vng,
        cases: plan.cases.clone(),
        jobs: options.manner.jobs.map_or(context.slots.count(), |jobs| jobs as usize),
        retries: options.manner.retries,
        fail_fast: options.manner.fail_fast,
    }
}

/// How a run ended, apart from its verdicts.
struct Ends {
    planned: usize,
    /// The base was asked for and could not be run.
    no_base: bool,
    /// A patch of the series is bad by itself.
    bad_patch: bool,
}

/// Whether a patch does not apply, does not build, or is worse than what it is put onto.
fn is_bad_patch(event: &Event) -> bool {
    matches!(event, Event::PatchBuilt { result, new_warnings, matrix, .. }
        if result != "built" || !new_warnings.is_empty() || !matrix.is_empty())
}

fn finish(context: &Context, ends: Ends, verdicts: &[Verdict], took: Duration) -> io::Result<u8> {
    let outcome = Outcome {
        interrupted: context.cancel.is_cancelled(),
        strict: context.strict,
        lab_failed: ends.no_base,
        patch_failed: ends.bad_patch,
        planned: ends.planned,
        ..Outcome::default()
    };
    let exit_code = exit_code(&outcome, verdicts);
    let count = |tally: Tally| {
        let fits = verdicts.iter().filter(|v| v.tally(context.strict) == tally).count();
        u32::try_from(fits).unwrap_or(u32::MAX)
    };
    context.log.emit(Event::RunFinished {
        passed: count(Tally::Passed),
        failed: count(Tally::Failed),
        skipped: count(Tally::Skipped),
        unfinished: u32::try_from(ends.planned.saturating_sub(verdicts.len())).unwrap_or(u32::MAX),
        exit_code,
        duration_ms: millis(took),
    })?;
    Ok(exit_code)
}

/// Checks this machine.
///
/// # Errors
///
/// When no thread can be started.
pub fn doctor(host: &Host<'_>, entries: &[KernelEntry]) -> io::Result<Vec<Check>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let cancel = CancellationToken::new();
    let checks = crate::doctor::run(host.paths, host.qemu.as_deref(), entries, &cancel);
    Ok(runtime.block_on(checks))
}
