//! Built kernels on disk: one directory each, whole or absent, named by what they were built of.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use walkdir::WalkDir;

use super::error::BuildError;
use super::output::Warning;
use crate::host::{files, lock, paths};

const META: &str = "built.json";
const MAX_META_BYTES: u64 = 1 << 20;
const LOCK_LIMIT: Duration = Duration::from_secs(120);
/// A kernel that was used within this time stays, whatever the limit: a run may go on with it.
const IN_USE: Duration = Duration::from_secs(24 * 3600);
/// Bytes kept where the user says nothing.
pub(super) const KEEP_BYTES: u64 = 20 << 30;

/// Description of a built kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Meta {
    pub(super) name: String,
    pub(super) release: String,
    pub(super) source: String,
    pub(super) patches: Vec<String>,
    pub(super) fragments: Vec<String>,
    pub(super) toolchain: String,
    pub(super) warnings: Vec<Warning>,
    pub(super) vmlinux: bool,
    pub(super) sha256: String,
}

/// A built kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// Its directory; the name of it is its key.
    pub dir: PathBuf,
    /// What it was called when it was built.
    pub name: String,
    /// Release, e.g. `7.3.4`.
    pub release: String,
    /// Source, for people.
    pub source: String,
    /// Names of the patches.
    pub patches: Vec<String>,
    /// Names of the fragments.
    pub fragments: Vec<String>,
    /// What the compiler said of its files, also of those that were compiled for another kernel
    /// in the same tree.
    pub warnings: Vec<Warning>,
    /// SHA-256 of the image, hex.
    pub sha256: String,
    /// vmlinux with debug info, where the configuration has it.
    pub vmlinux: Option<PathBuf>,
}

impl Built {
    /// The bzImage.
    pub fn image(&self) -> PathBuf {
        self.dir.join("bzImage")
    }

    /// The final configuration.
    pub fn config(&self) -> PathBuf {
        self.dir.join("config")
    }

    /// What the build said.
    pub fn log(&self) -> PathBuf {
        self.dir.join("build.log")
    }

    fn new(dir: PathBuf, meta: Meta) -> Built {
        let vmlinux = meta.vmlinux.then(|| dir.join("vmlinux"));
        Built {
            dir,
            name: meta.name,
            release: meta.release,
            source: meta.source,
            patches: meta.patches,
            fragments: meta.fragments,
            warnings: meta.warnings,
            sha256: meta.sha256,
            vmlinux,
        }
    }
}

/// A kernel, tree or source in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Where.
    pub dir: PathBuf,
    /// Size, bytes; what hard links share counts once, with the source.
    pub bytes: u64,
    /// Last use.
    pub used: SystemTime,
}

/// What a look at a stored kernel found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Look {
    Whole(Built),
    /// There, but not as it was stored: why.
    Damaged(String),
    Absent,
}

/// The store in a directory.
#[derive(Debug, Clone)]
pub(super) struct Store {
    root: PathBuf,
}

impl Store {
    pub(super) fn new(root: PathBuf) -> Store {
        Store { root }
    }

    /// The kernel of a key, if it is there and its image is the one that was stored.
    pub(super) fn look(&self, key: &str) -> Look {
        let dir = self.root.join(key);
        if !dir.is_dir() {
            return Look::Absent;
        }
        let meta = files::read_bounded(&dir.join(META), MAX_META_BYTES)
            .map_err(|e| e.to_string())
            .and_then(|bytes| serde_json::from_slice::<Meta>(&bytes).map_err(|e| e.to_string()));
        let meta = match meta {
            Ok(meta) => meta,
            Err(why) => return Look::Damaged(format!("{META}: {why}")),
        };
        match files::sha256(&dir.join("bzImage")) {
            Ok(sha256) if sha256 == meta.sha256 => {}
            Ok(_) => return Look::Damaged("the image is not the one that was stored".into()),
            Err(error) => return Look::Damaged(format!("bzImage: {error}")),
        }
        if let Some(name) =
            ["config", "build.log"].into_iter().find(|name| !dir.join(name).is_file())
        {
            return Look::Damaged(format!("there is no {name}"));
        }
        let _ = touch(&dir.join(META)); // only the order of removal suffers
        Look::Whole(Built::new(dir, meta))
    }

    /// Stores files under a key, in place of a damaged one. `files` are name in the store and
    /// path.
    pub(super) async fn publish(
        &self,
        key: &str,
        files: &[(&str, PathBuf)],
        meta: Meta,
        cancel: &CancellationToken,
    ) -> Result<Built, BuildError> {
        paths::create_private(&self.root)?;
        let _lock = lock::exclusive(&self.root.join("lock"), LOCK_LIMIT, cancel).await?;
        files::remove_leftovers(&self.root);
        let temp = tempfile::Builder::new()
            .prefix(".tmp-")
            .tempdir_in(&self.root)
            .map_err(BuildError::io(&self.root))?;
        for (name, path) in files {
            let to = temp.path().join(name);
            std::fs::copy(path, &to).map_err(BuildError::io(&to))?;
        }
        let text = serde_json::to_vec_pretty(&meta).unwrap_or_default();
        let to = temp.path().join(META);
        files::replace(&to, &text).map_err(BuildError::io(to))?;
        let dir = self.root.join(key);
        if dir.exists() {
            std::fs::remove_dir_all(&dir).map_err(BuildError::io(&dir))?;
        }
        files::publish_dir(temp.path(), &dir).map_err(BuildError::io(&dir))?;
        Ok(Built::new(dir, meta))
    }
}

fn touch(path: &Path) -> std::io::Result<()> {
    std::fs::File::open(path)?.set_modified(SystemTime::now())
}

/// Reads `LAB_KEEP_KERNELS`: bytes that kernels, trees and sources may take.
///
/// # Errors
///
/// What is no size, with an example.
pub fn limit(text: Option<&str>) -> Result<u64, String> {
    let Some(text) = text else { return Ok(KEEP_BYTES) };
    let size: Result<bytesize::ByteSize, _> = text.parse();
    size.map(|size| size.as_u64())
        .map_err(|_| format!("LAB_KEEP_KERNELS: `{text}` is no size; write e.g. 20GiB"))
}

/// What is in the directories of a kind, each with its size and the time of `mark` in it.
pub(super) fn kept(dir: &Path, mark: &str) -> Vec<Kept> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let entries = entries.filter(|entry| entry.path().is_dir()).map(|entry| {
        let dir = entry.path();
        let marked = std::fs::metadata(dir.join(mark)).or_else(|_| std::fs::metadata(&dir));
        let used = marked.and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        Kept { bytes: size(&dir), dir, used }
    });
    entries.collect()
}

/// Blocks of files that have one name only, and of directories.
fn size(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let metas = WalkDir::new(dir).into_iter().flatten().filter_map(|entry| entry.metadata().ok());
    metas.filter(|meta| meta.is_dir() || meta.nlink() == 1).map(|meta| meta.blocks() * 512).sum()
}

/// Which to remove so that the rest fits into `limit`: the longest unused first, none that was
/// used within a day.
pub(super) fn surplus(mut all: Vec<Kept>, limit: u64, now: SystemTime) -> Vec<Kept> {
    let mut total: u64 = all.iter().map(|kept| kept.bytes).sum();
    all.sort_by_key(|kept| kept.used);
    let mut gone = Vec::new();
    for kept in all {
        let age = now.duration_since(kept.used).unwrap_or_default();
        if total <= limit || age < IN_USE {
            continue;
        }
        total -= kept.bytes;
        gone.push(kept);
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_go_first_and_none_in_use() {
        let now = SystemTime::now();
        let hours = |h: u64| now - Duration::from_secs(h * 3600);
        let kept = |name: &str, h| Kept { dir: name.into(), bytes: 10, used: hours(h) };
        let all = vec![kept("new", 1), kept("old", 100), kept("older", 200), kept("day", 30)];
        let gone = |limit| -> Vec<PathBuf> {
            surplus(all.clone(), limit, now).into_iter().map(|k| k.dir).collect()
        };
        assert_eq!(gone(40), Vec::<PathBuf>::new());
        assert_eq!(gone(25), [PathBuf::from("older"), "old".into()]);
        assert_eq!(gone(0), [PathBuf::from("older"), "old".into(), "day".into()]);
    }

    #[test]
    fn the_limit_is_a_size() {
        assert_eq!(limit(Some("1GiB")), Ok(1 << 30));
        assert_eq!(limit(None), Ok(KEEP_BYTES));
        assert!(limit(Some("many")).unwrap_err().contains("e.g. 20GiB"));
    }
}
