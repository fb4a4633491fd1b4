//! Whole-program tests: the built `lab` against real QEMU and the stock kernel.
//!
//! Each test has a project of its own with its own scenarios; kernels, topologies and images
//! are the shipped ones, and so is the cache, so that nothing is fetched twice.

#![allow(clippy::disallowed_methods)] // these tests start the program under test itself
#![allow(clippy::unwrap_used)] // a surprise ends the test
#![allow(clippy::print_stderr)] // a test that is skipped says why

mod base;
mod hangs;
mod harness;
mod hostile;
mod input;
mod interrupt;
mod records;
mod series;
mod slots;
mod strict;
mod topologies;
mod verdicts;
mod virtme;
