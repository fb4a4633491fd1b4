//! The temporary directory of a run, and the sweep of those that killed runs left behind.
//!
//! A directory is alive while its owner holds a flock on it. Nothing outside the lab's own
//! prefix is ever touched.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

use super::paths::{PathsError, private_temp};

/// A directory younger than this may belong to a lab that has not locked it yet.
const GRACE: Duration = Duration::from_secs(60);

/// Entries looked at in one sweep.
const MAX_ENTRIES: usize = 10_000;

/// The temporary directory of a run; removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    dir: TempDir,
    _lock: File,
}

impl Scratch {
    /// A new directory, after a sweep of abandoned ones beside it.
    ///
    /// # Errors
    ///
    /// [`PathsError::Create`].
    pub fn new() -> Result<Scratch, PathsError> {
        let dir = private_temp()?;
        let create = |source| PathsError::Create { path: dir.path().to_owned(), source };
        let lock = File::open(dir.path()).map_err(create)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|e| create(e.into()))?;
        if let Some(parent) = dir.path().parent() {
            sweep(parent, SystemTime::now());
        }
        Ok(Scratch { dir, _lock: lock })
    }

    /// Its path, short enough for sockets in it.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Removes the directories of killed runs. What cannot be removed is left for the next sweep.
fn sweep(parent: &Path, now: SystemTime) {
    let user = rustix::process::getuid().as_raw();
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.take(MAX_ENTRIES).flatten() {
        let ours = entry.file_name().to_str().is_some_and(is_run_dir);
        let Ok(meta) = entry.metadata() else { continue };
        let age = meta.modified().ok().and_then(|m| now.duration_since(m).ok());
        if ours && meta.is_dir() && meta.uid() == user && age.is_some_and(|a| a > GRACE) {
            remove_if_abandoned(entry.path());
        }
    }
}

/// Names that `private_temp` gives: `lab-` and six characters.
fn is_run_dir(name: &str) -> bool {
    name.strip_prefix("lab-")
        .is_some_and(|rest| rest.len() == 6 && rest.bytes().all(|b| b.is_ascii_alphanumeric()))
}

fn remove_if_abandoned(path: PathBuf) {
    let Ok(dir) = File::open(&path) else { return };
    if flock(&dir, FlockOperation::NonBlockingLockExclusive).is_ok() {
        let _ = std::fs::remove_dir_all(&path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_removes_what_is_old_and_unlocked_and_ours() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = parent.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let dead = make("lab-aaaaaa");
        let alive = make("lab-bbbbbb");
        let other = make("lab-test-cc");
        let lock = File::open(&alive).unwrap();
        flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
        sweep(parent.path(), SystemTime::now());
        assert!(dead.exists(), "too young");
        sweep(parent.path(), SystemTime::now() + GRACE * 2);
        assert!(!dead.exists());
        assert!(alive.exists() && other.exists());
    }
}
