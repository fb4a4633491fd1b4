//! apt, used from private roots: the machine's own package state is only read.

pub mod machine;
pub mod root;
pub mod sources;
