//! The host: processes, locks, paths.

pub mod slots;
