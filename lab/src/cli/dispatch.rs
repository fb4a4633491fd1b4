//! From the command line to the library, and from its errors to exit codes.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use clap::Parser;
use lab::doctor::{Check, Level, worst};
use lab::host::paths::{self, Overrides, Paths, PathsError};
use lab::host::slots::Share;
use lab::plan::{Plan, PlanError, plan};
use lab::report::{SinkFault, replay};
use lab::run::options::{ReportOptions, RerunOptions, TestOptions};
use lab::run::project::{self, Found, ProjectError};
use lab::run::record::{self, FindError};
use lab::run::{Host, Keep, PrepareError, RunError, chain};

use super::args::{Args, Verb};
use super::git_bisect::{self, Hunt};
use super::{out, reporters};

/// Exit code of usage and configuration errors.
const USAGE: u8 = 2;

/// Exit code of failures of the lab or the host.
const LAB: u8 = 3;

/// Why nothing was started.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("cannot tell the current directory: {0}")]
    CurrentDir(std::io::Error),
    #[error(transparent)]
    Paths(#[from] PathsError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Series(#[from] PrepareError),
    #[error(transparent)]
    Find(#[from] FindError),
    #[error("{0}")]
    Setting(String),
    #[error("run {0} cannot be read: {1}")]
    Read(String, std::io::Error),
    #[error("{0}")]
    Write(std::io::Error),
}

/// Parses, runs, and tells the exit code.
pub(crate) fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version come here, too, and are no errors.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE));
        }
    };
    color(args.color).write_global();
    match dispatch(args) {
        Ok(code) => code,
        Err(failure) => fail(&failure),
    }
}

fn fail(failure: &Failure) -> ExitCode {
    match failure {
        Failure::Project(ProjectError::Config(errors)) => out::drawn(&errors.render(true)),
        Failure::Run(error) | Failure::Series(PrepareError::Run(error)) => {
            out::error(&chain(error));
            return ExitCode::from(error.exit_code());
        }
        Failure::CurrentDir(_) | Failure::Paths(_) | Failure::Read(..) | Failure::Write(_) => {
            out::error(&failure.to_string());
            return ExitCode::from(LAB);
        }
        other => out::error(&other.to_string()),
    }
    ExitCode::from(USAGE)
}

fn dispatch(args: Args) -> Result<ExitCode, Failure> {
    let cwd = std::env::current_dir().map_err(Failure::CurrentDir)?;
    let open = |dir: Option<&Path>| project::open(dir, &cwd);
    let argv = || std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let dir = args.dir.as_deref();
    match args.verb {
        Verb::List(list) => Ok(out::lines(list.lines(&open(dir)?.project)?)),
        Verb::Show(show) => Ok(out::lines(show.text(&open(dir)?.project)?.lines())),
        Verb::Kernel(kernel) => {
            let found = open(dir)?;
            let limit = std::env::var("LAB_KEEP_KERNELS").ok();
            let task = kernel.into_task(limit.as_deref()).map_err(Failure::Setting)?;
            let paths = paths(&found, &cwd)?;
            let host = host(&found, &paths)?;
            Ok(out::lines(lab::run::kernels(&host, &found.project, &task)?))
        }
        Verb::Series(series) => {
            let found = open(dir)?;
            let options = series.into_options(fresh_seed(), is_ci(), argv());
            reporters::check(options.test.junit.as_deref()).map_err(Failure::Setting)?;
            let paths = paths(&found, &cwd)?;
            let fault = SinkFault::default();
            let (format, junit) = (options.test.format, options.test.junit.clone());
            let reporters = |dir: &Path| reporters::live(format, junit.as_deref(), dir, &fault);
            let host = host(&found, &paths)?;
            Ok(written(lab::run::series(&host, &found.project, &options, &reporters)?, &fault))
        }
        Verb::Shell(shell) => {
            let found = open(dir)?;
            let paths = paths(&found, &cwd)?;
            let host = host(&found, &paths)?;
            let tell = |line: &str| {
                out::lines([line]);
            };
            let code = lab::run::shell(&host, &found.project, &shell.into_options(), &tell)?;
            Ok(ExitCode::from(code))
        }
        Verb::Bisect(bisect) => {
            let found = open(dir)?;
            let options = bisect.into_options(fresh_seed(), argv());
            let paths = paths(&found, &cwd)?;
            let host = host(&found, &paths)?;
            let (lines, code) = lab::run::bisect(&host, &found.project, &options)?;
            out::lines(lines);
            Ok(ExitCode::from(code))
        }
        Verb::Test(test) => {
            let hunt = test.hunt();
            let options = test.into_options(fresh_seed(), is_ci(), argv());
            let found = open(dir).map_err(Failure::from);
            match (hunt, found.and_then(|found| run(&found, &cwd, &options, hunt))) {
                (_, Ok(code)) => Ok(code),
                (None, Err(failure)) => Err(failure),
                (Some(_), Err(failure)) => Ok(stopped(&failure)),
            }
        }
        Verb::Rerun(rerun) => again(&open(dir)?, &cwd, &rerun.into_options(argv())),
        Verb::Report(report) => show_run(&open(dir)?, &cwd, &report.into_options()),
        Verb::Doctor => doctor(&open(dir)?, &cwd),
    }
}

/// Where the run happens: directories from the environment, progress to standard error.
fn paths(found: &Found, cwd: &Path) -> Result<Paths, Failure> {
    let checkout = found.root.as_deref().and_then(paths::checkout).or_else(|| paths::checkout(cwd));
    let var = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let overrides = Overrides { cache: var("LAB_CACHE"), runs: var("LAB_RUNS") };
    Ok(Paths::find(|name| std::env::var_os(name), checkout.as_deref(), overrides)?)
}

fn host<'a>(found: &'a Found, paths: &'a Paths) -> Result<Host<'a>, Failure> {
    let qemu = std::env::var_os("LAB_QEMU").map(PathBuf::from);
    let guest = std::env::var_os("LAB_GUEST").map(PathBuf::from);
    let vng = std::env::var_os("LAB_VNG").map(PathBuf::from);
    let var = |name: &str| std::env::var(name).ok();
    let keep = Keep::read(var("LAB_KEEP_RUNS").as_deref(), var("LAB_KEEP_BYTES").as_deref());
    let keep = keep.map_err(Failure::Setting)?;
    let share = Share::read(var("LAB_SLOTS").as_deref(), var("LAB_MEMORY").as_deref());
    let share = share.map_err(Failure::Setting)?;
    Ok(Host { paths, root: found.root.as_deref(), qemu, guest, vng, keep, share, tell: &out::note })
}

/// A failure before the run, as `git bisect` takes it.
fn stopped(failure: &Failure) -> ExitCode {
    let code = fail(failure);
    match failure {
        Failure::Run(error) => ExitCode::from(git_bisect::of_error(error)),
        _ if code == ExitCode::from(USAGE) => ExitCode::from(git_bisect::stop(USAGE)),
        _ => ExitCode::from(git_bisect::stop(LAB)),
    }
}

/// Runs a plan, or shows it.
fn run(
    found: &Found,
    cwd: &Path,
    options: &TestOptions,
    hunt: Option<Hunt>,
) -> Result<ExitCode, Failure> {
    reporters::check(options.junit.as_deref()).map_err(Failure::Setting)?;
    let plan = plan(&found.project, &options.selection)?;
    let paths = paths(found, cwd)?;
    let host = host(found, &paths)?;
    if options.dry_run {
        return Ok(out::lines(lab::run::dry_run(&host, &plan)?));
    }
    match hunt {
        None => execute(&host, options, &plan),
        Some(hunt) => for_git(&host, options, &plan, hunt),
    }
}

/// A run whose exit code git reads.
fn for_git(
    host: &Host<'_>,
    options: &TestOptions,
    plan: &Plan,
    hunt: Hunt,
) -> Result<ExitCode, Failure> {
    let (fault, dir) = (SinkFault::default(), Mutex::new(PathBuf::new()));
    let reporters = |run: &Path| {
        *dir.lock().unwrap_or_else(PoisonError::into_inner) = run.to_owned();
        reporters::live(options.format, options.junit.as_deref(), run, &fault)
    };
    let code = lab::run::test(host, options, plan, &reporters)?;
    let dir = dir.into_inner().unwrap_or_else(PoisonError::into_inner);
    let run = record::RunDir::open(&dir);
    let (records, _) = run.read().map_err(|e| Failure::Read(run.name(), e))?;
    Ok(ExitCode::from(git_bisect::of_run(code, hunt, &records)))
}

fn again(found: &Found, cwd: &Path, options: &RerunOptions) -> Result<ExitCode, Failure> {
    let paths = paths(found, cwd)?;
    if options.resume {
        let resumed = lab::run::resume(&found.project, &paths.runs, options)?;
        let (options, plan, earlier) = resumed;
        let fault = SinkFault::default();
        let reporters = |dir: &Path| reporters::live(options.format, None, dir, &fault);
        let code = lab::run::go_on(&host(found, &paths)?, &options, &plan, earlier, &reporters)?;
        return Ok(written(code, &fault));
    }
    let (options, plan) = lab::run::rerun(&found.project, &paths.runs, options)?;
    execute(&host(found, &paths)?, &options, &plan)
}

fn execute(host: &Host<'_>, options: &TestOptions, plan: &Plan) -> Result<ExitCode, Failure> {
    let fault = SinkFault::default();
    let reporters =
        |dir: &Path| reporters::live(options.format, options.junit.as_deref(), dir, &fault);
    let code = lab::run::test(host, options, plan, &reporters)?;
    Ok(written(code, &fault))
}

fn show_run(found: &Found, cwd: &Path, options: &ReportOptions) -> Result<ExitCode, Failure> {
    reporters::check(options.junit.as_deref()).map_err(Failure::Setting)?;
    let paths = paths(found, cwd)?;
    let name = options.run.as_deref().unwrap_or("latest");
    let run = record::find(&paths.runs, name)?;
    let _held = run.hold().map_err(|e| Failure::Read(run.name(), e))?;
    let (records, torn) = run.read().map_err(|e| Failure::Read(run.name(), e))?;
    let fault = SinkFault::default();
    let made = reporters::replayed(options.format, options.junit.as_deref(), run.path(), &fault);
    for mut reporter in made.map_err(Failure::Write)? {
        replay(&records, torn.as_ref(), reporter.as_mut());
    }
    Ok(written(0, &fault))
}

/// The exit code, unless a pass could not be told: that is no pass.
fn written(code: u8, fault: &SinkFault) -> ExitCode {
    let Some(text) = fault.text() else { return ExitCode::from(code) };
    out::error(&format!("the results cannot be written: {text}"));
    ExitCode::from(if matches!(code, 0 | 4) { LAB } else { code })
}

fn doctor(found: &Found, cwd: &Path) -> Result<ExitCode, Failure> {
    let paths = paths(found, cwd)?;
    let entries: Vec<_> = found.project.kernels.values().map(|k| (**k).clone()).collect();
    let host = host(found, &paths)?;
    let checks = lab::run::doctor(&host, &entries).map_err(Failure::CurrentDir)?;
    let failed = worst(&checks) == Level::Fail;
    let code = out::lines(checks.iter().flat_map(check_lines));
    Ok(if failed { ExitCode::from(LAB) } else { code })
}

fn check_lines(check: &Check) -> Vec<String> {
    let mut lines = vec![format!("{:<5} {:<12} {}", check.level, check.name, check.found)];
    if check.level != Level::Ok {
        lines.push(format!("      why: {}", check.why));
        lines.extend(check.fix.iter().map(|fix| format!("      fix: {fix}")));
    }
    lines
}

fn color(choice: clap::ColorChoice) -> anstream::ColorChoice {
    match choice {
        clap::ColorChoice::Auto => anstream::ColorChoice::Auto,
        clap::ColorChoice::Always => anstream::ColorChoice::Always,
        clap::ColorChoice::Never => anstream::ColorChoice::Never,
    }
}

/// A seed that differs from run to run: the standard library keys its hashers at random.
fn fresh_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Whether the run is part of CI, by the variable that CI systems set.
fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true" || value == "1")
}
