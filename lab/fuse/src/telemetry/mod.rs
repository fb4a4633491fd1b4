//! Counts and arrivals per queue, written by one thread each, readable at any time.
//!
//! The writing side takes no lock and allocates nothing. Reading never waits for a writer,
//! so it works while the mount hangs.

mod collect;
mod queue;
mod trail;

pub use collect::Telemetry;
pub use queue::{Counts, Queue};
pub use trail::{Seen, Trail};
