//! Configuration: TOML text to checked types, pure.
//!
//! Files are read by the caller; every error of a file is reported at once with its span.

mod allow_file;
mod derive;
mod expect_file;
mod flow;
pub mod kernel;
pub mod kernel_file;
pub mod load;
pub mod nearest;
pub mod problem;
mod reader;
pub mod scenario;
pub mod scenario_file;
pub mod shipped;
mod step_file;
mod syntax;
pub mod topology;
pub mod topology_file;
mod value;
