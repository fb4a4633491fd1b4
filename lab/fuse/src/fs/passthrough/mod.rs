//! A directory of this system, served as it is. Names are resolved one component at a time,
//! beneath a descriptor of their directory, so no request leads out of the source.

mod attr;
mod handle;
mod nodes;
mod ops;

pub use ops::Passthrough;
