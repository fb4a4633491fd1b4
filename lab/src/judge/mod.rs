//! Observations to verdicts, and snapshots; pure.

pub mod verdict;
