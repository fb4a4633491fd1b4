//! Configuration: TOML text to checked types, pure.
//!
//! Files are read by the caller; every error of a file is reported at once with its span.

pub mod kernel;
pub mod scenario;
pub mod topology;
