//! Attributes of the root of the mount, asked for past every cache: each call is exactly one
//! GETATTR on the calling CPU. A lookup would check the directory too, and leave an inode to
//! forget later.

use std::path::Path;

use super::out;
use crate::sys::{affinity, errno, file};

/// Pins itself to `cpu` before it touches the mount, then asks for the attributes of
/// `root` `count` times.
pub(crate) fn run(root: &Path, cpu: u32, count: u32) {
    if let Err(e) = affinity::pin(cpu) {
        return out::line(&format!("pin: {}", errno::of(&e)));
    }
    for _ in 0..count {
        match file::stat_uncached(root) {
            Ok(()) => out::line("ok"),
            Err(e) => out::line(&errno::of(&e)),
        }
    }
}
