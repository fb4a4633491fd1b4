//! Kernels x topologies x scenarios to cases; pure.
//!
//! Filters, order, seeds, shards and what has to be skipped are decided here, before anything
//! starts. Nothing here reads a file or knows how a case is run.

mod case;
mod describe;
mod error;
mod find;
mod flavour;
mod kernels;
mod select;

pub use case::{Case, case_seed, skip_reason};
pub use describe::{describe, describe_topology};
pub use error::PlanError;
pub use find::find_case;
pub use kernels::kernel;
pub use select::{MAX_CASES, MAX_REPEAT, Plan, Selection, Shard, plan};
