//! Slots for VMs, shared by every lab process of a user on this machine.
//!
//! Two runs, or a run and a test suite, would otherwise starve each other's guests until
//! their limits fire. A slot is an exclusive flock, so it goes away with its holder.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use tokio_util::sync::CancellationToken;

const POLL: Duration = Duration::from_millis(50);

/// The slots of this machine.
#[derive(Debug, Clone)]
pub struct Slots {
    dir: PathBuf,
    count: usize,
}

/// A held slot; dropping it frees it.
#[derive(Debug)]
pub struct Slot {
    _lock: File,
}

/// Why no slot was had.
#[derive(Debug, thiserror::Error)]
pub enum SlotError {
    /// The directory of the locks cannot be used.
    #[error("slot directory {dir}: {error}")]
    Io {
        /// The directory.
        dir: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// Other lab processes held every slot for the whole limit.
    #[error("no VM slot became free in {0:?}; other runs hold all of them")]
    Timeout(Duration),
    /// The run was interrupted.
    #[error("interrupted while waiting for a VM slot")]
    Cancelled,
}

impl Slots {
    /// As many slots as half the CPUs of the host, at least one, with locks under `dir`.
    pub fn for_host(dir: &Path) -> Slots {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        Slots { dir: dir.to_owned(), count: (cpus / 2).max(1) }
    }

    /// How many VMs may run at once on this machine.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Waits for a slot, at most `limit`.
    pub async fn acquire(
        &self,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> Result<Slot, SlotError> {
        let deadline = tokio::time::Instant::now() + limit;
        loop {
            if let Some(slot) = self.try_acquire()? {
                return Ok(slot);
            }
            if tokio::time::Instant::now() >= deadline {
                return Err(SlotError::Timeout(limit));
            }
            tokio::select! {
                () = tokio::time::sleep(POLL) => {}
                () = cancel.cancelled() => return Err(SlotError::Cancelled),
            }
        }
    }

    fn try_acquire(&self) -> Result<Option<Slot>, SlotError> {
        let io = |error| SlotError::Io { dir: self.dir.clone(), error };
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir).map_err(io)?;
        for index in 0..self.count {
            let path = self.dir.join(format!("slot-{index}"));
            let lock = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .open(path)
                .map_err(io)?;
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(Slot { _lock: lock })),
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {}
                Err(e) => return Err(io(e.into())),
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_slot_is_held_by_one_and_freed_by_drop() {
        let dir = tempfile::tempdir().unwrap();
        let slots = Slots { dir: dir.path().join("slots"), count: 1 };
        let cancel = CancellationToken::new();
        let limit = Duration::from_millis(120);
        let held = slots.acquire(limit, &cancel).await.unwrap();
        assert!(matches!(slots.acquire(limit, &cancel).await, Err(SlotError::Timeout(_))));
        drop(held);
        slots.acquire(limit, &cancel).await.unwrap();
    }

    #[tokio::test]
    async fn an_interrupt_ends_the_wait() {
        let dir = tempfile::tempdir().unwrap();
        let slots = Slots { dir: dir.path().to_owned(), count: 1 };
        let cancel = CancellationToken::new();
        let _held = slots.acquire(Duration::from_secs(9), &cancel).await.unwrap();
        cancel.cancel();
        let end = slots.acquire(Duration::from_secs(9), &cancel).await;
        assert!(matches!(end, Err(SlotError::Cancelled)));
    }
}
