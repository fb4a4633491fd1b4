//! A run: options, preparation, dispatcher, attempts, events, and the directory they are
//! recorded in.

mod attempt;
mod bases;
mod bisect;
mod boot;
mod context;
mod dispatch;
mod dry;
mod escalate;
pub mod events;
mod heard;
mod kernels;
pub mod launch;
mod lines;
pub mod log;
mod matrix;
pub mod options;
pub mod prepare;
pub mod project;
pub mod record;
mod rerun;
mod resolved;
mod resume;
pub mod retain;
mod series;
mod session;
mod shell;
mod signals;
mod source;
mod steps;
pub mod wire;

#[cfg(test)]
mod doc;
#[cfg(test)]
pub(crate) mod samples;

pub use bisect::{BisectOptions, bisect};
pub use dry::dry_run;
pub use kernels::{KernelTask, Part, kernels};
pub use launch::{Host, RunError, doctor, go_on, test};
pub use rerun::rerun;
pub use resolved::scenario_json;
pub use resume::{Earlier, resume};
pub use retain::Keep;
pub use series::{PrepareError, SeriesOptions, series};
pub use session::chain;
pub use shell::{ShellOptions, shell};
