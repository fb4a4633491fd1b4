//! An end-to-end test lab for Linux kernel patch series.
//!
//! The binary parses the command line and calls into this library; the library never sees
//! clap. See `lab/ARCHITECTURE.md` for the map and the invariants.

pub mod agent;
pub mod bisect;
pub mod config;
pub mod detect;
pub mod doctor;
pub mod host;
pub mod image;
pub mod judge;
pub mod kernel;
pub mod perf;
pub mod plan;
pub mod report;
pub mod run;
pub mod vm;
