//! Console text to faults; pure. Rules are data, each held by logs of the corpus.

mod compare;
mod fault;
mod follow;
mod frame;
mod plumbing;
mod printk;
mod report;
mod rule;
mod rules;
mod scan;
mod symbol;
mod title;

#[cfg(test)]
mod corpus_tests;

pub use compare::{Comparison, Mark, compare};
pub use fault::{Fault, MAX_FAULTS};
pub use frame::{Frame, frame};
pub use rule::{Kind, Rule, Stage};
pub use rules::rules;
pub use scan::{Scan, scan};
pub use symbol::is_plumbing;
