//! Processes that touch a mount under test, so that the agent never has to.
//!
//! | arguments | what it does | lines on standard output |
//! | --- | --- | --- |
//! | `tree DIR` | the tree of operations | `? op` before, `op -> result` after each |
//! | `stat ROOT CPU COUNT` | pinned uncached stats | `ok` or an errno name for each |
//! | `background FILE CPU COUNT` | pinned asynchronous direct reads | `ok` or what went wrong for each |
//! | `make-file FILE` | writes the file that background clients read | `ok` or an errno name |
//! | `load DIR CPU SEED INDEX` | pinned mixed load | `ready TID`, on a line of input it starts, at the end JSON |
//! | `layout DIR SIZE JOBS` | writes the files of a fio job | `ok` after each call, then `done` or an errno name |
//! | `umount DIR FLAGS` | on a line of input, one umount2 | `ok` or an errno name |

mod background;
mod layout;
pub(crate) mod load;
mod out;
mod role;
mod stat;
mod tree;

pub(crate) use role::main;
