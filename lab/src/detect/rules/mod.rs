//! Every rule, by topic. Data only.

mod all;
mod locking;
mod memory;
mod oops;
mod other;
mod sanitizer;
mod stall;

pub use all::rules;
