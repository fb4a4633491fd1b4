//! Kernels x topologies x scenarios to cases; pure.

use std::sync::Arc;

use crate::config::scenario::Scenario;
use crate::config::topology::Topology;

/// One planned case.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// `kernel/topology/scenario`, with `#N` behind it from the second repeat on.
    pub id: String,
    /// Kernel name as given.
    pub kernel: String,
    /// Layout.
    pub topology: Arc<Topology>,
    /// Scenario.
    pub scenario: Arc<Scenario>,
    /// Seed of every random choice of the case.
    pub seed: u64,
}
