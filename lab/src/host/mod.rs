//! The host: processes, locks, paths.

pub mod apt;
pub mod lock;
pub mod paths;
