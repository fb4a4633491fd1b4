//! Console text to faults; pure. Rules are data, each with a sample log.

mod printk;
mod rules;
mod scan;

pub use rules::{Kind, RULES, Rule};
pub use scan::{Fault, MAX_FAULTS, scan};
