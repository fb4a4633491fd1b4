//! /dev/fuse: reading requests and writing replies, with the meaning of its errors.

use std::fs::File;
use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno as Sys, read, writev};
use zerocopy::IntoBytes;

use crate::abi::header::OutHeader;
use crate::errno::{Errno, Result};

/// An open connection. The kernel ends the connection when its last descriptor is closed.
#[derive(Debug)]
pub struct Device(File);

impl Device {
    /// Opens /dev/fuse.
    ///
    /// # Errors
    /// Those of open(2), e.g. ENOENT without the module, EACCES without the right.
    pub fn open() -> Result<Device> {
        Ok(Device(File::options().read(true).write(true).open("/dev/fuse")?))
    }

    /// Waits at most `limit` for a request. False when none came.
    ///
    /// # Errors
    /// Those of poll(2).
    pub fn wait(&self, limit: Duration) -> Result<bool> {
        let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: 0 };
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        Ok(poll(&mut fds, Some(&limit))? > 0)
    }

    /// Reads one request. None when the connection has ended.
    ///
    /// # Errors
    /// Anything but the end and what merely asks for another try.
    pub fn read(&self, buffer: &mut [u8]) -> Result<Option<usize>> {
        loop {
            return match read(&self.0, &mut *buffer) {
                Ok(len) => Ok(Some(len)),
                // ENOENT: the request was interrupted before it was read.
                Err(Sys::INTR | Sys::AGAIN | Sys::NOENT) => continue,
                Err(Sys::NODEV | Sys::CONNABORTED | Sys::NOTCONN) => Ok(None),
                Err(error) => Err(error.into()),
            };
        }
    }

    /// Writes one reply.
    ///
    /// # Errors
    /// ENOENT when the request is gone, ENODEV when the connection is.
    pub fn reply(&self, unique: u64, outcome: Result<&[u8]>) -> Result<()> {
        let (error, payload) = match outcome {
            Ok(payload) => (0, payload),
            Err(errno) => (-errno.raw(), &[][..]),
        };
        let len = size_of::<OutHeader>() + payload.len();
        let header = OutHeader { len: len as u32, error, unique };
        let written = writev(&self.0, &[IoSlice::new(header.as_bytes()), IoSlice::new(payload)])?;
        if written == len { Ok(()) } else { Err(Errno::EIO) }
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Device {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
