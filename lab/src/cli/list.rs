//! `lab list`.

use clap::ValueEnum;
use lab::config::load::Project;
use lab::plan::{Plan, PlanError, plan, skip_reason};

use super::select::Select;

/// Show what there is, or what a test run would do.
#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// What to list.
    #[arg(value_enum, default_value_t = What::Cases, value_name = "WHAT")]
    what: What,

    #[command(flatten)]
    select: Select,
}

/// What can be listed.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    /// The cases that `lab test` with the same flags would run, in their order
    Cases,
    /// Entries of kernels/
    Kernels,
    /// Entries of scenarios/topologies/
    Topologies,
    /// Scenarios, with the smallest profile that runs each
    Scenarios,
}

impl List {
    /// One line an entry.
    pub(super) fn lines(self, project: &Project) -> Result<Vec<String>, PlanError> {
        // The seed shows nowhere here.
        let selection = self.select.into_selection(0);
        Ok(match self.what {
            What::Cases => case_lines(&plan(project, &selection)?),
            What::Kernels => {
                project.kernels.values().map(|k| columns(&[(&k.name, 24)], &k.summary)).collect()
            }
            What::Topologies => {
                project.topologies.values().map(|t| columns(&[(&t.name, 24)], &t.summary)).collect()
            }
            What::Scenarios => project
                .scenarios
                .values()
                .map(|s| columns(&[(&s.name, 32), (s.profile.name(), 6)], &s.summary))
                .collect(),
        })
    }
}

/// A plan, one line a case. What is known to be skipped before any kernel is at hand says so.
pub(super) fn case_lines(plan: &Plan) -> Vec<String> {
    plan.cases
        .iter()
        .map(|case| match skip_reason(case, None) {
            Some(reason) => format!("{}  SKIP {reason}", case.id),
            None => case.id.clone(),
        })
        .collect()
}

fn columns(fixed: &[(&str, usize)], last: &str) -> String {
    let mut line = String::new();
    for (text, width) in fixed {
        line.push_str(&format!("{text:<width$}  "));
    }
    line + last
}
