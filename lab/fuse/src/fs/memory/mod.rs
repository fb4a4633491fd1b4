//! A file system in memory. Inode numbers count upward from 2 and are never used again, so
//! equal sequences of operations give equal trees.

mod content;
mod inode;
mod ops;
#[cfg(test)]
mod tests;
mod tree;

pub use ops::Memory;
