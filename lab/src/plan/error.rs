//! Why there is no plan.

use std::fmt;

/// Everything about a selection that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError {
    /// One line each, never empty.
    pub problems: Vec<String>,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems.join("\n"))
    }
}

impl std::error::Error for PlanError {}
