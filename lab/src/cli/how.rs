//! Flags for how cases are run, shared by the verbs that run some.

use clap::Args;
use lab::run::options::Manner;

use super::args::{Accel, IsolationArg};

/// How.
#[derive(Debug, Args)]
pub(super) struct How {
    /// How guest code is executed.
    #[arg(long, env = "LAB_ACCEL", value_enum, default_value_t = Accel::Auto)]
    accel: Accel,

    /// How each case gets a pristine VM.
    #[arg(long, env = "LAB_ISOLATION", value_enum, default_value_t = IsolationArg::Clone)]
    isolation: IsolationArg,

    /// Cases at a time. Without it: by the CPUs and memory of this machine.
    #[arg(short = 'j', long, env = "LAB_JOBS", value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
}

impl How {
    /// The manner, with everything else as it is by default.
    pub(super) fn manner(&self) -> Manner {
        Manner {
            accel: self.accel.into(),
            isolation: self.isolation.into(),
            jobs: self.jobs,
            ..Manner::default()
        }
    }
}
