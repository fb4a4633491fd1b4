//! The host: processes, locks, paths.
