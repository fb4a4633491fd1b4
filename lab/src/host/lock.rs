//! Locks between processes of the lab, on files, released when a process dies.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FlockOperation;
use tokio_util::sync::CancellationToken;

const POLL: Duration = Duration::from_millis(100);

/// Why a lock was not got.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The file cannot be opened or locked.
    #[error("cannot lock {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process held it for too long.
    #[error("{} is still held by another process after {limit:?}", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
        /// How long was waited.
        limit: Duration,
    },
    /// The run was interrupted.
    #[error("interrupted while waiting for {}", path.display())]
    Cancelled {
        /// The file.
        path: PathBuf,
    },
}

/// A lock that is held; dropping it releases it.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Takes the lock on `path`, alone, waiting for at most `limit`. The file is made if missing
/// and never removed: removing it would let two processes hold "the" lock.
///
/// # Errors
///
/// [`LockError`].
pub async fn exclusive(
    path: &Path,
    limit: Duration,
    cancel: &CancellationToken,
) -> Result<Lock, LockError> {
    let path = path.to_path_buf();
    let failed = |source| LockError::Io { path: path.clone(), source };
    let file =
        File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
    let deadline = tokio::time::Instant::now() + limit;
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Lock { _file: file }),
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {}
            Err(error) => return Err(failed(error.into())),
        }
        if tokio::time::Instant::now() >= deadline {
            return Err(LockError::Busy { path, limit });
        }
        tokio::select! {
            () = tokio::time::sleep(POLL) => {}
            () = cancel.cancelled() => return Err(LockError::Cancelled { path }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_second_waits_for_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let cancel = CancellationToken::new();
        let first = exclusive(&path, Duration::ZERO, &cancel).await.unwrap();
        let busy = exclusive(&path, Duration::from_millis(10), &cancel).await.unwrap_err();
        assert!(matches!(busy, LockError::Busy { .. }), "{busy}");
        let (path, token) = (path.clone(), cancel.clone());
        let second =
            tokio::spawn(async move { exclusive(&path, Duration::from_secs(20), &token).await });
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!second.is_finished());
        drop(first);
        second.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_wait_can_be_interrupted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let cancel = CancellationToken::new();
        let _first = exclusive(&path, Duration::ZERO, &cancel).await.unwrap();
        cancel.cancel();
        let error = exclusive(&path, Duration::from_secs(20), &cancel).await.unwrap_err();
        assert!(matches!(error, LockError::Cancelled { .. }), "{error}");
    }
}
