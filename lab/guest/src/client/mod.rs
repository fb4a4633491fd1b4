//! Processes that touch a mount under test, so that the agent never has to.
//!
//! | arguments | what it does | lines on standard output |
//! | --- | --- | --- |
//! | `tree DIR` | the tree of operations | `? op` before, `op -> result` after each |
//! | `stat DIR CPU COUNT` | pinned lookups | `ok` or an errno name for each |
//! | `load DIR CPU SEED INDEX` | pinned mixed load | `ready TID`, on a line of input it starts, at the end JSON |
//! | `umount DIR FLAGS` | one umount2 | `ok` or an errno name |

pub(crate) mod load;
mod out;
mod role;
mod stat;
mod tree;

pub(crate) use role::main;
