//! The host: processes, locks, paths.

pub mod apt;
pub mod capture;
pub mod files;
pub mod lock;
pub mod memory;
pub mod paths;
pub mod process;
pub mod scratch;
pub mod setup;
pub mod slots;
mod spawner;
pub mod vng;
