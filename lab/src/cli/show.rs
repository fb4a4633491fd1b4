//! `lab show`.

use lab::config::load::Project;
use lab::plan::{PlanError, describe, find_case};

/// Show a case as it would run, with every default filled in.
#[derive(Debug, clap::Args)]
pub(super) struct Show {
    /// The case, KERNEL/TOPOLOGY/SCENARIO, as `lab list` shows it.
    #[arg(value_name = "CASE")]
    case: String,

    /// The kernel behind the first part of CASE, where that is not an entry of kernels/.
    #[arg(long, env = "LAB_KERNEL", value_name = "PATH")]
    kernel: Option<String>,

    /// Seed of the run; decides the seed of the case.
    #[arg(long, env = "LAB_SEED", value_name = "N", default_value_t = 0)]
    seed: u64,
}

impl Show {
    /// The case as text.
    pub(super) fn text(self, project: &Project) -> Result<String, PlanError> {
        let plan = find_case(project, &self.case, self.kernel.as_deref(), self.seed)?;
        Ok(plan.cases.iter().map(describe).collect())
    }
}
