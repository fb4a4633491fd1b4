//! From a recipe to a stored kernel: source, patches, configuration, make, store.
//!
//! Nothing here boots a kernel or knows of entries and series.

mod builder;
mod error;
mod kconfig;
mod make;
mod output;
mod patch;
mod sandbox;
mod source;
mod store;
mod tree;

#[cfg(test)]
mod tests;

pub use builder::Builder;
pub use error::{BuildError, Stage};
pub use output::Warning;
pub(in crate::kernel) use output::errors;
pub use patch::files as files_of_patch;
pub use store::{Built, Kept, limit};
