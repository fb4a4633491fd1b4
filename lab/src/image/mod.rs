//! Guest images: cpio archives in layers, ELF closures.
//!
//! What is in an image is decided by the recipes of `images/`; nothing here starts a program.

mod build;
pub mod closure;
pub mod cpio;
pub mod elf;
pub mod guest;
pub mod recipe;
pub mod search;

pub use build::{Image, ImageError, ensure};
