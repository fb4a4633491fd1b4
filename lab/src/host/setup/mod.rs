//! Host programs that the lab needs, and their installation.
//!
//! apt is the only package manager it drives; elsewhere it says what is missing.

pub mod plan;
mod run;

pub use plan::{BUILD_NEEDS, NEEDS, Need};
pub use run::{SetupError, find, missing, prepare, run};
