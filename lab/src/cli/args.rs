//! The command line as a whole, and what all verbs share.

use std::path::PathBuf;

use clap::{ColorChoice, Parser, Subcommand, ValueEnum};
use lab::run::options::{AccelChoice, Format, Isolation};

use super::{bisect, kernel, list, report, rerun, series, shell, show, test};

/// Test Linux kernel patch series end to end: boot, mount, run, judge.
///
/// Results go to standard output, progress to standard error. Each flag can also be set by the
/// environment variable named with it.
#[derive(Debug, Parser)]
#[command(name = "lab", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(super) struct Args {
    /// Use the project in DIR.
    ///
    /// Without it: the nearest directory from the current one upward that holds scenarios/ and
    /// kernels/, or else the configuration that lab was built with.
    #[arg(short = 'C', long, global = true, env = "LAB_DIR", value_name = "DIR")]
    pub(super) dir: Option<PathBuf>,

    /// Whether to color the output; NO_COLOR and CLICOLOR_FORCE are honoured in `auto`.
    #[arg(long, global = true, env = "LAB_COLOR", default_value = "auto", value_name = "WHEN")]
    pub(super) color: ColorChoice,

    #[command(subcommand)]
    pub(super) verb: Verb,
}

const EXIT_CODES: &str = "\
Exit codes: 0 all passed; 1 a case failed; 2 usage or configuration; 3 the lab or the host \
failed; 4 nothing ran; 130 interrupted.";

/// What to do.
#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    Test(Box<test::Test>),
    List(list::List),
    Show(show::Show),
    Kernel(kernel::Kernel),
    Series(Box<series::Series>),
    Shell(shell::Shell),
    Bisect(Box<bisect::Bisect>),
    Rerun(rerun::Rerun),
    Report(report::Report),
    /// Check this machine: each check says why it matters and how to fix it.
    Doctor,
}

/// Value of `--accel`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Accel {
    /// KVM where it is proven to run a guest, else TCG
    Auto,
    /// KVM; an error where it cannot run a guest
    Kvm,
    /// Translation; works everywhere, slow
    Tcg,
}

impl From<Accel> for AccelChoice {
    fn from(accel: Accel) -> AccelChoice {
        match accel {
            Accel::Auto => AccelChoice::Auto,
            Accel::Kvm => AccelChoice::Kvm,
            Accel::Tcg => AccelChoice::Tcg,
        }
    }
}

/// Value of `--isolation`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum IsolationArg {
    /// A clone of a booted template for each case
    Clone,
    /// A cold boot for each case
    Boot,
}

impl From<IsolationArg> for Isolation {
    fn from(isolation: IsolationArg) -> Isolation {
        match isolation {
            IsolationArg::Clone => Isolation::Clone,
            IsolationArg::Boot => Isolation::Boot,
        }
    }
}

/// Value of `--format`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum FormatArg {
    /// For people
    Human,
    /// KTAP
    Ktap,
    /// The events of the run, one JSON object a line
    Jsonl,
}

impl From<FormatArg> for Format {
    fn from(format: FormatArg) -> Format {
        match format {
            FormatArg::Human => Format::Human,
            FormatArg::Ktap => Format::Ktap,
            FormatArg::Jsonl => Format::Jsonl,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn every_flag_is_described_and_has_a_variable() {
        for verb in Args::command().get_subcommands() {
            assert!(verb.get_about().is_some(), "{}", verb.get_name());
            for arg in verb.get_arguments().filter(|arg| !arg.is_positional()) {
                let name = format!("{} --{}", verb.get_name(), arg.get_id());
                assert!(arg.get_help().is_some(), "{name} has no help");
                let variable = arg.get_env().and_then(|v| v.to_str()).map(str::to_string);
                let expected = format!("LAB_{}", arg.get_id().as_str().to_uppercase());
                assert_eq!(variable, Some(expected), "{name}");
            }
        }
    }
}
