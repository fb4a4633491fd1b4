//! Lookups of names that do not exist, each a new one: whatever the kernel caches, each is
//! one LOOKUP on the calling CPU, and none leaves an inode to forget later.

use std::io::ErrorKind;
use std::path::Path;

use super::out;
use crate::sys::{affinity, errno};

/// Pins itself to `cpu` before it touches the mount, then looks `count` names up below `dir`.
pub(crate) fn run(dir: &Path, cpu: u32, count: u32) {
    if let Err(e) = affinity::pin(cpu) {
        return out::line(&format!("pin: {}", errno::of(&e)));
    }
    for i in 0..count {
        match std::fs::symlink_metadata(dir.join(format!("absent-{cpu}-{i}"))) {
            Err(e) if e.kind() == ErrorKind::NotFound => out::line("ok"),
            Err(e) => out::line(&errno::of(&e)),
            Ok(_) => out::line("it exists"),
        }
    }
}
