//! Checks of the host, each with why and the fix.

mod check;
mod host;
mod run;

pub use check::{Check, Level};
pub use run::{run, worst};
