//! `lab rerun`.

use clap::builder::FalseyValueParser;
use lab::run::options::{Changes, RerunOptions};

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

    /// How guest code is executed. Without it: as recorded.
    #[arg(long, env = "LAB_ACCEL", value_enum)]
    accel: Option<Accel>,

    /// How each case gets a pristine VM. Without it: as recorded.
    #[arg(long, env = "LAB_ISOLATION", value_enum)]
    isolation: Option<IsolationArg>,

    /// Cases at a time. Without it: as recorded.
    #[arg(short = 'j', long, env = "LAB_JOBS", value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,

    /// Attempts beyond the first of a case that fails. Without it: as recorded.
    #[arg(long, env = "LAB_RETRIES", value_name = "N",
          value_parser = clap::value_parser!(u32).range(0..=100))]
    retries: Option<u32>,

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
            changes: Changes {
                accel: self.accel.map(Into::into),
                isolation: self.isolation.map(Into::into),
                jobs: self.jobs,
                retries: self.retries,
            },
            format: self.format.into(),
            argv,
        }
    }
}
