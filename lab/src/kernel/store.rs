//! Fetched kernels on disk: one directory each, whole or absent, with a description in
//! `kernel.json`; and for each question ("newest of these suites with these options") the
//! answer it got last, with its time.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::error::KernelError;
use crate::host::files;

const META: &str = "kernel.json";
const MAX_META_BYTES: u64 = 64 << 10;

/// Description of a fetched kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// Release, e.g. `7.3.4+deb13-cloud-amd64`.
    pub release: String,
    /// Version of its packages.
    pub version: String,
    /// Suite it came from.
    pub suite: String,
    /// Image, relative to the directory.
    pub image: PathBuf,
    /// Configuration, relative to the directory.
    pub config: PathBuf,
    /// SHA-256 of the image, hex.
    pub sha256: String,
}

/// A fetched kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its directory.
    pub dir: PathBuf,
    /// Its description.
    pub meta: Meta,
}

/// The last answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    dir: String,
    asked_s: u64,
}

/// The store in a directory.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
}

impl Store {
    /// The store in `root`, which exists.
    pub fn new(root: PathBuf) -> Store {
        Store { root }
    }

    /// Directory of the store.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The name a kernel has in the store.
    pub fn dir_name(release: &str, version: &str) -> String {
        // A colon of an epoch would end a path in a list of paths.
        format!("{release}_{version}").replace([':', '/'], "_")
    }

    /// The kernel of that name, if it is there and its image is the one that was stored.
    pub fn load(&self, dir_name: &str) -> Option<Stored> {
        let dir = self.root.join(dir_name);
        let bytes = files::read_bounded(&dir.join(META), MAX_META_BYTES).ok()?;
        let meta: Meta = serde_json::from_slice(&bytes).ok()?;
        let sha256 = files::sha256(&dir.join(&meta.image)).ok()?;
        (sha256 == meta.sha256).then_some(Stored { dir, meta })
    }

    /// Moves an unpacked kernel into the store, in place of a damaged one of its name. The
    /// caller holds the store's lock.
    ///
    /// # Errors
    ///
    /// [`KernelError::Cache`].
    pub fn publish(&self, unpacked: &Path, meta: Meta) -> Result<Stored, KernelError> {
        let dir = self.root.join(Store::dir_name(&meta.release, &meta.version));
        let move_in = || -> io::Result<()> {
            files::replace(&unpacked.join(META), &serde_json::to_vec_pretty(&meta)?)?;
            if dir.exists() {
                std::fs::remove_dir_all(&dir)?;
            }
            files::publish_dir(unpacked, &dir)
        };
        move_in().map_err(|source| KernelError::Cache { path: dir.clone(), source })?;
        Ok(Stored { dir, meta })
    }

    /// The kernel that answered `question` last, and how long ago.
    pub fn answer(&self, question: &str) -> Option<(Stored, Duration)> {
        let bytes = files::read_bounded(&self.answer_path(question), MAX_META_BYTES).ok()?;
        let answer: Answer = serde_json::from_slice(&bytes).ok()?;
        if answer.dir.contains('/') {
            return None;
        }
        // A clock that went back makes an answer old, not eternally fresh.
        let age = now_s().checked_sub(answer.asked_s).map_or(Duration::MAX, Duration::from_secs);
        Some((self.load(&answer.dir)?, age))
    }

    /// Notes `stored` as the answer to `question`, as of now.
    ///
    /// # Errors
    ///
    /// [`KernelError::Cache`].
    pub fn note_answer(&self, question: &str, stored: &Stored) -> Result<(), KernelError> {
        let dir = Store::dir_name(&stored.meta.release, &stored.meta.version);
        let path = self.answer_path(question);
        let write = || -> io::Result<()> {
            files::replace(&path, &serde_json::to_vec(&Answer { dir, asked_s: now_s() })?)
        };
        write().map_err(|source| KernelError::Cache { path: path.clone(), source })
    }

    fn answer_path(&self, question: &str) -> PathBuf {
        let digest = files::sha256_bytes(question.as_bytes());
        self.root.join(format!("newest-{}.json", &digest[..16]))
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(root: &Path) -> (Store, Stored) {
        let store = Store::new(root.to_path_buf());
        let unpacked = root.join(".tmp-x");
        std::fs::create_dir(&unpacked).unwrap();
        std::fs::write(unpacked.join("vmlinuz"), "image").unwrap();
        let meta = Meta {
            release: "7.3.4-x".into(),
            version: "1:7.3.4-1".into(),
            suite: "s".into(),
            image: "vmlinuz".into(),
            config: "config".into(),
            sha256: files::sha256_bytes(b"image"),
        };
        let stored = store.publish(&unpacked, meta).unwrap();
        (store, stored)
    }

    #[test]
    fn what_is_stored_answers_its_question() {
        let dir = tempfile::tempdir().unwrap();
        let (store, kernel) = stored(dir.path());
        assert_eq!(store.answer("q"), None);
        store.note_answer("q", &kernel).unwrap();
        let (found, age) = store.answer("q").unwrap();
        assert_eq!(found, kernel);
        assert!(age < Duration::from_secs(60));
        assert_eq!(store.answer("other"), None);
    }

    #[test]
    fn a_damaged_image_is_absent_and_can_be_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (store, kernel) = stored(dir.path());
        std::fs::write(kernel.dir.join("vmlinuz"), "imagf").unwrap();
        assert_eq!(store.load("7.3.4-x_1_7.3.4-1"), None);
        let (store, _) = stored(dir.path());
        assert!(store.load("7.3.4-x_1_7.3.4-1").is_some());
    }
}
