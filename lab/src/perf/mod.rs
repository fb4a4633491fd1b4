//! fio results, samples, statistics; pure.

pub mod fio;
