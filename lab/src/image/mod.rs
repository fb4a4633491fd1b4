//! Guest images: cpio archives in layers, ELF closures.
//!
//! What is in an image is decided by the recipes of `images/`; nothing here starts a program.

pub mod cpio;
pub mod guest;
