//! The host: processes, locks, paths.

pub mod capture;
pub mod process;
mod spawner;
