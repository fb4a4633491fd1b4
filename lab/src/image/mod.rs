//! Guest images: cpio archives in layers, ELF closures.
