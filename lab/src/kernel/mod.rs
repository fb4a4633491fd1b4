//! Kernels: found, fetched, checked.

pub mod bzimage;
pub mod catalogue;
pub mod config;
mod release;
pub mod version;
pub mod vmlinux;

use release::release_word;
