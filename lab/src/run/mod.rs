//! A run: dispatcher, attempts, events, and the directory they are recorded in.

pub mod events;
pub mod log;
pub mod record;
mod resolved;
pub mod wire;

pub use resolved::scenario_json;

#[cfg(test)]
mod doc;
#[cfg(test)]
pub(crate) mod samples;
