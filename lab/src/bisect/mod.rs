//! Finding the first bad step: which one to test next, and what a test of it says. Pure.
//!
//! Nothing here builds or boots; `run` does, and asks.

mod search;
mod signature;

pub use search::{Answer, Search, State};
pub use signature::{Judged, Signature, hunted, judge, only_boots_failed};
