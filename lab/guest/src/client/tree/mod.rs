//! A fixed tree of file operations with one result line each. The same lines must come from
//! tmpfs, from the memory file system and through either transport, so a line holds nothing
//! that depends on the machine: no times, no device or inode numbers, no block counts, no
//! sizes of directories.

mod attributes;
mod data;
mod directories;
mod names;
mod tape;

pub(crate) use tape::run;
