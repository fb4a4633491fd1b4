//! Background requests: each call is one READ that the kernel sends without waiting for it, on
//! the calling CPU.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::out;
use crate::sys::aio::{Aio, Block};
use crate::sys::{affinity, errno};

/// Makes the file that the clients read.
pub(crate) fn make(path: &Path) {
    let made = std::fs::write(path, vec![1_u8; Block::BYTES]);
    out::line(&made.map_or_else(|e| errno::of(&e), |()| "ok".to_owned()));
}

/// Pins itself to `cpu` before it touches the mount, then reads the first block of `path`
/// `count` times, each read only after the one before: no queue is ever busy.
pub(crate) fn run(path: &Path, cpu: u32, count: u32) {
    if let Err(e) = affinity::pin(cpu) {
        return out::line(&format!("pin: {}", errno::of(&e)));
    }
    let open = || -> io::Result<_> {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path)?;
        Ok((Aio::new()?, file))
    };
    let (aio, file) = match open() {
        Ok(opened) => opened,
        Err(e) => return out::line(&format!("open: {}", errno::of(&e))),
    };
    let mut block = Block::new();
    for _ in 0..count {
        match aio.read(&file, &mut block, 0) {
            Ok(Block::BYTES) => out::line("ok"),
            Ok(bytes) => out::line(&format!("short read of {bytes} bytes")),
            Err(e) => out::line(&errno::of(&e)),
        }
    }
}
