//! The host: processes, locks, paths.

pub mod slots;
pub mod capture;
pub mod process;
mod spawner;
