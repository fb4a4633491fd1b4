//! `lab show`.

use lab::config::load::Project;
use lab::config::scenario::Profile;
use lab::plan::{MAX_REPEAT, PlanError, Selection, describe, plan};

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
        let selection = self.selection()?;
        let plan = plan(project, &selection)?;
        let case = plan.cases.iter().find(|case| case.id == self.case);
        case.map(describe).ok_or_else(|| self.unknown())
    }

    fn selection(&self) -> Result<Selection, PlanError> {
        let (base, repeat) = match self.case.split_once('#') {
            Some((base, number)) => (base, number.parse().map_err(|_| self.unknown())?),
            None => (self.case.as_str(), 1),
        };
        let mut parts = base.splitn(3, '/').map(str::to_string);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(kernel), Some(topology), Some(scenario))
                if (1..=MAX_REPEAT).contains(&repeat) =>
            {
                Ok(Selection {
                    kernels: vec![self.kernel.clone().unwrap_or(kernel)],
                    topologies: vec![topology],
                    scenarios: vec![scenario],
                    profile: Profile::Soak,
                    repeat,
                    seed: self.seed,
                    shard: None,
                })
            }
            _ => Err(self.unknown()),
        }
    }

    fn unknown(&self) -> PlanError {
        let text = format!(
            "no case is named `{}`; a case is KERNEL/TOPOLOGY/SCENARIO, see `lab list`",
            self.case
        );
        PlanError { problems: vec![text] }
    }
}
