//! One client of a teardown: mixed calls on the mount until the first that fails.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use super::out;
use crate::random::Random;
use crate::sys::{affinity, clock, errno};

/// Size of a client's file, bytes.
const FILE_BYTES: u64 = 64 << 10;

/// Size of one read or write, bytes.
const BLOCK: usize = 4096;

/// What a client says when it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoadEnd {
    /// Calls that succeeded.
    pub(crate) calls: u64,
    /// errno name of the last call, `ok` when it was told to stop before one failed.
    pub(crate) last: String,
    /// CLOCK_BOOTTIME when the last call returned, nanoseconds.
    pub(crate) at_ns: u64,
}

/// A block at an address that direct I/O takes.
#[repr(align(4096))]
struct Aligned([u8; BLOCK]);

struct Load {
    dir: PathBuf,
    path: PathBuf,
    buffered: File,
    direct: Option<File>,
    block: Box<Aligned>,
    random: Random,
    index: u32,
}

/// Prepares, says `ready`, waits for a line of input, and runs until a call fails or the
/// input ends.
pub(crate) fn run(dir: &Path, cpu: u32, seed: u64, index: u32) {
    let load = affinity::pin(cpu).and_then(|()| Load::prepare(dir, seed, index));
    let mut load = match load {
        Ok(load) => load,
        Err(e) => return out::line(&format!("failed {}", errno::of(&e))),
    };
    out::line(&format!("ready {}", std::process::id()));
    let _ = io::stdin().lock().read_line(&mut String::new());
    let stop = stop_at_end_of_input();
    let mut end = LoadEnd { calls: 0, last: "ok".to_owned(), at_ns: 0 };
    while !stop.load(Ordering::Relaxed) {
        match load.call() {
            Ok(()) => end.calls += 1,
            Err(e) => {
                end.last = errno::of(&e);
                break;
            }
        }
    }
    end.at_ns = clock::boottime_ns();
    out::line(&serde_json::to_string(&end).unwrap_or_default());
}

fn stop_at_end_of_input() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&stop);
    std::thread::spawn(move || {
        let _ = io::stdin().lock().read_line(&mut String::new());
        set.store(true, Ordering::Relaxed);
    });
    stop
}

impl Load {
    fn prepare(dir: &Path, seed: u64, index: u32) -> io::Result<Load> {
        let path = dir.join(format!("load-{index}"));
        let buffered =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
        buffered.write_all_at(&vec![index as u8; FILE_BYTES as usize], 0)?;
        // A file system may refuse direct I/O; the mix then lacks it.
        let direct =
            OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(&path).ok();
        let block = Box::new(Aligned([index as u8; BLOCK]));
        let random = Random::new(seed ^ u64::from(index) << 32);
        Ok(Load { dir: dir.to_owned(), path, buffered, direct, block, random, index })
    }

    fn call(&mut self) -> io::Result<()> {
        let at = self.random.below(FILE_BYTES / BLOCK as u64) * BLOCK as u64;
        let direct = self.direct.as_ref().unwrap_or(&self.buffered);
        match self.random.below(8) {
            0 => self.path.symlink_metadata().map(|_| ()),
            1 => self.absent(),
            2 => File::open(&self.path).and_then(crate::sys::file::close),
            3 => self.buffered.read_at(&mut self.block.0, at).map(|_| ()),
            4 => self.buffered.write_at(&self.block.0, at).map(|_| ()),
            5 => direct.read_at(&mut self.block.0, at).map(|_| ()),
            6 => direct.write_at(&self.block.0, at).map(|_| ()),
            _ => self.buffered.sync_data(),
        }
    }

    fn absent(&mut self) -> io::Result<()> {
        let name = format!("absent-{}-{}", self.index, self.random.below(1 << 20));
        match self.dir.join(name).symlink_metadata() {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            other => other.map(|_| ()),
        }
    }
}
