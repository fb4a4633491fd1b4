//! Kernels: found, fetched, checked.
