//! From the command line to the library, and from its errors to exit codes.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use lab::plan::{PlanError, plan};
use lab::run::options::{ReportOptions, RerunOptions, TestOptions};
use lab::run::project::{self, Found, ProjectError};

use super::args::{Args, Verb};
use super::{list, out};

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
    #[error("this build of lab cannot {0}")]
    NotBuilt(&'static str),
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
        Failure::CurrentDir(_) | Failure::NotBuilt(_) => {
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
        Verb::Test(test) => run(&open(dir)?, &test.into_options(fresh_seed(), is_ci(), argv())),
        Verb::Rerun(rerun) => again(&open(dir)?, &rerun.into_options(argv())),
        Verb::Report(report) => show_run(&report.into_options()),
        Verb::Doctor => Err(Failure::NotBuilt("check this machine")),
    }
}

fn again(_found: &Found, _options: &RerunOptions) -> Result<ExitCode, Failure> {
    Err(Failure::NotBuilt("run cases"))
}

fn show_run(_options: &ReportOptions) -> Result<ExitCode, Failure> {
    Err(Failure::NotBuilt("show runs"))
}

/// Runs a plan, or shows it.
fn run(found: &Found, options: &TestOptions) -> Result<ExitCode, Failure> {
    let plan = plan(&found.project, &options.selection)?;
    if options.dry_run {
        return Ok(out::lines(list::case_lines(&plan)));
    }
    Err(Failure::NotBuilt("run cases"))
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
