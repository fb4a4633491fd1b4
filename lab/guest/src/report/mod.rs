//! What the guest reads of its kernel from /proc and /sys. Parsers are pure; nothing here
//! touches a mount under test.

pub(crate) mod connections;
pub(crate) mod cpulist;
pub(crate) mod facts;
pub(crate) mod read;
pub(crate) mod rings;
pub(crate) mod tasks;
pub(crate) mod topology;
