//! File systems: the one trait both transports serve, and what implements it.

mod api;
mod dir;
pub mod memory;
pub mod passthrough;

pub use api::{Caller, Entry, FileSystem, Opened, SetAttr, SetTime};
pub use dir::DirBuffer;
