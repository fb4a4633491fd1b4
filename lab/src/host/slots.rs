//! Slots for VMs, shared by every lab process of a user on this machine.
//!
//! Two runs, or a run and a test suite, would otherwise starve each other's guests until
//! their limits fire. A slot is an exclusive flock on a file that states how much memory its VM
//! may use, so it goes away with its holder. Who wants one looks at all of them under one more
//! lock: no two take the same memory. Only one looks at a time, until it has one: a large VM
//! would else wait for ever behind a stream of small ones.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use tokio_util::sync::CancellationToken;

use super::memory::{self, Memory};

const POLL: Duration = Duration::from_millis(20);

/// How long the turn of another is respected: it may have been stopped with it.
const TURN_LIMIT: Duration = Duration::from_secs(60);

/// A wait is told of when it takes longer.
const TELL_AFTER: Duration = Duration::from_secs(1);

/// Most slots that can be asked for.
const MAX_SLOTS: usize = 1024;

/// Longest text of a slot that is read, bytes.
const MAX_TEXT: u64 = 32;

/// Slots of this machine.
#[derive(Debug, Clone)]
pub struct Slots {
    dir: PathBuf,
    count: usize,
    /// Memory of the host, read when a slot is wanted.
    memory: fn() -> io::Result<Memory>,
    /// Memory for all VMs, bytes, where the user set it.
    budget: Option<u64>,
    told: Arc<AtomicBool>,
}

/// What the user lets the VMs of a machine have; without it, the lab decides by the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// VMs at a time, at least 1.
    pub slots: Option<usize>,
    /// Memory of all of them together, bytes.
    pub bytes: Option<u64>,
}

impl Share {
    /// From what the user set, `LAB_SLOTS` and `LAB_MEMORY`.
    ///
    /// # Errors
    ///
    /// One line that names the variable.
    pub fn read(slots: Option<&str>, bytes: Option<&str>) -> Result<Share, String> {
        let slots = slots.filter(|text| !text.is_empty()).map(|text| {
            let number = text.parse().ok().filter(|slots| (1..=MAX_SLOTS).contains(slots));
            number
                .ok_or_else(|| format!("LAB_SLOTS is `{text}`, not a number from 1 to {MAX_SLOTS}"))
        });
        let bytes = bytes.filter(|text| !text.is_empty()).map(|text| {
            let size = text.parse::<bytesize::ByteSize>().map(|size| size.as_u64());
            size.map_err(|_| format!("LAB_MEMORY is `{text}`, not a size such as 16GiB"))
        });
        Ok(Share { slots: slots.transpose()?, bytes: bytes.transpose()? })
    }
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
    /// There was none for the whole limit.
    #[error("no VM slot in {0:?}: {1}")]
    Timeout(Duration, Obstacle),
    /// The run was interrupted.
    #[error("interrupted while waiting for a VM slot")]
    Cancelled,
}

/// What a VM waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// Another process looks at the slots.
    #[error("another process is choosing")]
    Door,
    /// Another VM waits already.
    #[error("another VM is next")]
    Turn,
    /// Every slot is held.
    #[error("all {0} are in use")]
    Slots(usize),
    /// There is not enough memory beside the VMs that run.
    #[error("{wanted} MiB are wanted, {left} MiB are left beside the VMs that run")]
    Memory {
        /// For the VM, MiB.
        wanted: u64,
        /// On the host, MiB.
        left: u64,
    },
}

impl Slots {
    /// As many slots as half the CPUs of the host, at least one, or what the user wants, with
    /// locks under `dir`.
    pub fn for_host(dir: &Path, share: Share) -> Slots {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        Slots {
            dir: dir.to_owned(),
            count: share.slots.unwrap_or((cpus / 2).max(1)),
            memory: memory::of_host,
            budget: share.bytes,
            told: Arc::default(),
        }
    }

    /// How many VMs may run at once on this machine, by its CPUs.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Waits for a slot with `bytes` of memory, at most `limit`. `tell` gets one line when that
    /// takes more than a second, the first time in the life of these slots.
    ///
    /// A VM that is alone is let in whatever memory there is: it would wait for itself.
    /// Errors: [`SlotError`].
    pub async fn acquire(
        &self,
        bytes: u64,
        limit: Duration,
        tell: &(dyn Fn(String) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Slot, SlotError> {
        let begin = tokio::time::Instant::now();
        let mut turn = None;
        loop {
            let obstacle = match self.try_acquire(bytes, &mut turn, begin.elapsed())? {
                Ok(slot) => return Ok(slot),
                Err(obstacle) => obstacle,
            };
            let waited = begin.elapsed();
            if waited >= limit {
                return Err(SlotError::Timeout(limit, obstacle));
            }
            if waited >= TELL_AFTER && !self.told.swap(true, Ordering::Relaxed) {
                tell(format!("waiting for a VM slot: {obstacle}"));
            }
            tokio::select! {
                () = tokio::time::sleep(POLL) => {}
                () = cancel.cancelled() => return Err(SlotError::Cancelled),
            }
        }
    }

    /// Looks when it is this VM's turn; takes the turn when nobody has it.
    fn try_acquire(
        &self,
        bytes: u64,
        turn: &mut Option<File>,
        waited: Duration,
    ) -> Result<Result<Slot, Obstacle>, SlotError> {
        let mut looked = || {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
            if turn.is_none() {
                *turn = try_lock(open(&self.dir.join("turn"))?)?.ok();
            }
            if turn.is_none() && waited < TURN_LIMIT {
                return Ok(Err(Obstacle::Turn));
            }
            self.look(bytes)
        };
        looked().map_err(|error| SlotError::Io { dir: self.dir.clone(), error })
    }

    fn look(&self, bytes: u64) -> io::Result<Result<Slot, Obstacle>> {
        // Held for some file operations, but its holder may have been stopped meanwhile.
        let Ok(_door) = try_lock(open(&self.dir.join("door"))?)? else {
            return Ok(Err(Obstacle::Door));
        };
        let (mut free, mut held_bytes, mut held) = (None, 0u64, 0);
        for index in 0..self.count {
            let file = open(&self.dir.join(format!("slot-{index}")))?;
            match try_lock(file)? {
                Ok(file) => free = free.or(Some(file)),
                Err(file) => {
                    held += 1;
                    held_bytes = held_bytes.saturating_add(stated(file)?);
                }
            }
        }
        let Some(file) = free else { return Ok(Err(Obstacle::Slots(self.count))) };
        let left = (self.memory)()?.left(self.budget, held_bytes);
        if held > 0 && left < bytes {
            return Ok(Err(Obstacle::Memory { wanted: bytes >> 20, left: left >> 20 }));
        }
        state(&file, bytes)?;
        Ok(Ok(Slot { _lock: file }))
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)
}

/// The file again, with the lock, or as an error without it.
fn try_lock(file: File) -> io::Result<Result<File, File>> {
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Ok(file)),
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(Err(file)),
            Err(e) => return Err(e.into()),
        }
    }
}

/// What the holder of a slot stated; nothing where it is no number.
fn stated(file: File) -> io::Result<u64> {
    let mut text = String::new();
    let read = file.take(MAX_TEXT).read_to_string(&mut text);
    match read {
        Ok(_) => Ok(text.trim().parse().unwrap_or(0)),
        Err(e) if e.kind() == io::ErrorKind::InvalidData => Ok(0),
        Err(e) => Err(e),
    }
}

fn state(mut file: &File, bytes: u64) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(format!("{bytes}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    const GIB: u64 = 1 << 30;
    const MOMENT: Duration = Duration::from_millis(300);

    /// Slots as another process would see them.
    fn slots(dir: &Path, count: usize) -> Slots {
        let memory = || Ok(Memory { total: 8 * GIB, available: 7 * GIB });
        Slots { dir: dir.to_owned(), count, memory, budget: None, told: Arc::default() }
    }

    async fn acquire(slots: &Slots, bytes: u64) -> Result<Slot, SlotError> {
        slots.acquire(bytes, MOMENT, &|_| {}, &CancellationToken::new()).await
    }

    #[tokio::test]
    async fn a_slot_is_held_by_one_and_freed_by_drop() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("slots");
        let (ours, theirs) = (slots(&deep, 1), slots(&deep, 1));
        let held = acquire(&ours, GIB).await.unwrap();
        let refused = acquire(&theirs, GIB).await;
        assert!(matches!(refused, Err(SlotError::Timeout(_, Obstacle::Slots(1)))));
        drop(held);
        acquire(&theirs, GIB).await.unwrap();
    }

    #[tokio::test]
    async fn memory_is_shared_between_processes_and_one_vm_always_fits() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, theirs) = (slots(dir.path(), 8), slots(dir.path(), 8));
        let large = acquire(&ours, 100 * GIB).await.unwrap();
        let refused = acquire(&theirs, GIB).await;
        let Err(SlotError::Timeout(_, obstacle)) = refused else { panic!("{refused:?}") };
        assert_eq!(obstacle, Obstacle::Memory { wanted: 1024, left: 0 });
        drop(large);
        let one = acquire(&ours, 4 * GIB).await.unwrap();
        let two = acquire(&theirs, GIB).await.unwrap();
        assert!(acquire(&ours, 4 * GIB).await.is_err());
        drop(one);
        acquire(&ours, 4 * GIB).await.unwrap();
        drop(two);
    }

    #[tokio::test]
    async fn many_at_once_never_take_more_than_there_is() {
        let dir = tempfile::tempdir().unwrap();
        let takers = (0..16).map(|_| {
            let slots = slots(dir.path(), 16);
            tokio::spawn(async move { acquire(&slots, 2 * GIB).await })
        });
        let mut held = Vec::new();
        for taker in takers.collect::<Vec<_>>() {
            held.extend(taker.await.unwrap());
        }
        assert_eq!(held.len(), 3, "6 of 8 GiB are for guests");
    }

    #[tokio::test]
    async fn an_interrupt_ends_the_wait() {
        let dir = tempfile::tempdir().unwrap();
        let slots = slots(dir.path(), 1);
        let cancel = CancellationToken::new();
        let _held = acquire(&slots, GIB).await.unwrap();
        cancel.cancel();
        let end = slots.acquire(GIB, Duration::from_secs(9), &|_| {}, &cancel).await;
        assert!(matches!(end, Err(SlotError::Cancelled)));
    }

    #[tokio::test]
    async fn a_long_wait_is_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let slots = slots(dir.path(), 1);
        let _held = acquire(&slots, GIB).await.unwrap();
        let (told, cancel) = (Mutex::new(Vec::new()), CancellationToken::new());
        let tell = |line| told.lock().unwrap().push(line);
        let limit = TELL_AFTER + 3 * POLL;
        for _ in 0..2 {
            assert!(slots.acquire(GIB, limit, &tell, &cancel).await.is_err());
        }
        assert_eq!(*told.lock().unwrap(), ["waiting for a VM slot: all 1 are in use"]);
    }

    #[tokio::test]
    async fn a_large_vm_does_not_starve_behind_small_ones() {
        let dir = tempfile::tempdir().unwrap();
        let slots = |dir: &Path| Slots { budget: Some(4 * GIB), ..slots(dir, 8) };
        let small = acquire(&slots(dir.path()), GIB).await.unwrap();
        let large = {
            let (slots, cancel) = (slots(dir.path()), CancellationToken::new());
            let limit = Duration::from_secs(9);
            tokio::spawn(async move { slots.acquire(4 * GIB, limit, &|_| {}, &cancel).await })
        };
        tokio::time::sleep(4 * POLL).await;
        // There is room for it, but it is not its turn.
        let late = acquire(&slots(dir.path()), GIB).await;
        assert!(matches!(late, Err(SlotError::Timeout(_, Obstacle::Turn))), "{late:?}");
        drop(small);
        large.await.unwrap().unwrap();
        acquire(&slots(dir.path()), GIB).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_is_never_given_back_ends() {
        let dir = tempfile::tempdir().unwrap();
        let slots = slots(dir.path(), 8);
        let turn = open(&dir.path().join("turn")).unwrap();
        let _turn = try_lock(turn).unwrap().unwrap();
        let begin = tokio::time::Instant::now();
        let limit = 2 * TURN_LIMIT;
        slots.acquire(GIB, limit, &|_| {}, &CancellationToken::new()).await.unwrap();
        assert!((TURN_LIMIT..TURN_LIMIT + 2 * POLL).contains(&begin.elapsed()));
    }

    #[test]
    fn the_share_of_the_user_is_read() {
        let share = Share { slots: Some(3), bytes: Some(2 << 30) };
        assert_eq!(Share::read(Some("3"), Some("2GiB")), Ok(share));
        assert_eq!(Share::read(None, Some("")), Ok(Share::default()));
        for (slots, bytes) in [(Some("0"), None), (Some("x"), None), (None, Some("much"))] {
            assert!(Share::read(slots, bytes).unwrap_err().starts_with("LAB_"));
        }
    }
}
