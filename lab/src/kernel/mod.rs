//! Kernels: found, fetched, checked.
//!
//! A kernel is known by what its file says, not by its name; nothing here boots one.

pub mod assemble;
pub mod build;
pub mod bzimage;
pub mod catalogue;
pub mod config;
pub mod error;
pub mod fetch;
pub mod identify;
mod in_place;
pub mod mail;
pub mod recipe;
mod release;
pub mod resolve;
pub mod series;
pub mod store;
pub mod symbols;
pub mod version;
pub mod vmlinux;

pub use error::KernelError;
pub use fetch::Fetch;
use release::release_word;
pub use resolve::{Kernel, Resolver, check_path, resolve};
