//! fio results, samples, statistics; pure.
