//! `lab rerun`.

use clap::builder::FalseyValueParser;
use lab::run::options::RerunOptions;

use super::args::{Accel, FormatArg, IsolationArg};

/// Run again what a run did, with the same seeds.
#[derive(Debug, clap::Args)]
pub(super) struct Rerun {
    /// A run (its directory or name), or one case of the latest run.
    #[arg(value_name = "RUN|CASE")]
    what: String,

    /// Go on with the run where it was cut off: cases that finished are not run again, and the
    /// record stays one.
    #[arg(long, env = "LAB_RESUME", value_parser = FalseyValueParser::new())]
    resume: bool,

    /// Seed of the case, instead of the recorded one. Needs no record of the case.
    #[arg(long, env = "LAB_SEED", value_name = "N")]
    seed: Option<u64>,

    /// How guest code is executed.
    #[arg(long, env = "LAB_ACCEL", value_enum, default_value_t = Accel::Auto)]
    accel: Accel,

    /// How each case gets a pristine VM.
    #[arg(long, env = "LAB_ISOLATION", value_enum, default_value_t = IsolationArg::Clone)]
    isolation: IsolationArg,

    /// Form of the results on standard output.
    #[arg(long, env = "LAB_FORMAT", value_enum, default_value_t = FormatArg::Human)]
    format: FormatArg,
}

impl Rerun {
    /// The options.
    pub(super) fn into_options(self, argv: Vec<String>) -> RerunOptions {
        RerunOptions {
            what: self.what,
            resume: self.resume,
            seed: self.seed,
            accel: self.accel.into(),
            isolation: self.isolation.into(),
            format: self.format.into(),
            argv,
        }
    }
}
