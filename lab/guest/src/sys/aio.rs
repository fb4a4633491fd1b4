//! Asynchronous direct reads: `io_setup`, `io_submit`, `io_getevents`, one at a time.
//!
//! io_uring would hand a FUSE read to a worker on a CPU of its own choice; `io_submit` sends it
//! from the calling task.
#![allow(unsafe_code)] // the calls are in no library that the guest has

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// A block at an address that direct I/O takes.
#[repr(align(4096))]
pub(crate) struct Block([u8; Block::BYTES]);

impl Block {
    /// Size, bytes.
    pub(crate) const BYTES: usize = 4096;

    pub(crate) fn new() -> Box<Block> {
        Box::new(Block([0; Block::BYTES]))
    }
}

/// `struct iocb` of linux/aio_abi.h, little endian.
#[repr(C)]
#[derive(Default)]
struct Iocb {
    data: u64,
    key: u32,
    rw_flags: u32,
    opcode: u16,
    priority: i16,
    fd: u32,
    buf: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_fd: u32,
}

/// `struct io_event`.
#[repr(C)]
#[derive(Default)]
struct Event {
    data: u64,
    object: u64,
    result: i64,
    result2: i64,
}

const _: () = assert!(size_of::<Iocb>() == 64 && size_of::<Event>() == 32);

/// A context that holds one read.
pub(crate) struct Aio {
    context: u64,
}

impl Aio {
    pub(crate) fn new() -> io::Result<Aio> {
        let mut context = 0_u64;
        // SAFETY: context is zero, as the call wants it, and a valid place for its result.
        match unsafe { libc::syscall(libc::SYS_io_setup, 1, &raw mut context) } {
            0 => Ok(Aio { context }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Reads a block at `offset`; the number of bytes read. The read is submitted and then
    /// waited for, two calls.
    pub(crate) fn read(&self, file: &File, block: &mut Block, offset: u64) -> io::Result<usize> {
        let mut iocb = Iocb {
            fd: file.as_raw_fd().cast_unsigned(),
            buf: block.0.as_mut_ptr() as u64,
            bytes: Block::BYTES as u64,
            offset: offset.cast_signed(),
            ..Iocb::default()
        };
        let mut list = [&raw mut iocb];
        // SAFETY: one valid iocb; its buffer outlives the read, which is waited for below
        // without a time limit and without a way out.
        let sent =
            unsafe { libc::syscall(libc::SYS_io_submit, self.context, 1, list.as_mut_ptr()) };
        if sent != 1 {
            return Err(io::Error::last_os_error());
        }
        let mut event = Event::default();
        loop {
            let no_limit = std::ptr::null::<libc::timespec>();
            // SAFETY: room for one event; a null time means to wait.
            let got = unsafe {
                libc::syscall(libc::SYS_io_getevents, self.context, 1, 1, &raw mut event, no_limit)
            };
            if got == 1 {
                break;
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                // The kernel may still write to the block.
                std::process::abort();
            }
        }
        match usize::try_from(event.result) {
            Ok(bytes) => Ok(bytes),
            Err(_) => Err(io::Error::from_raw_os_error(-(event.result as i32))),
        }
    }
}

impl Drop for Aio {
    fn drop(&mut self) {
        // SAFETY: the context was made by io_setup and nothing is in flight.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_read_and_errors_are_told() {
        let path = std::env::temp_dir().join(format!("lab-aio-{}", std::process::id()));
        std::fs::write(&path, vec![7; Block::BYTES + 10]).unwrap();
        let aio = Aio::new().unwrap();
        let mut block = Block::new();
        let file = File::open(&path).unwrap();
        assert_eq!(aio.read(&file, &mut block, 0).unwrap(), Block::BYTES);
        assert_eq!(block.0, [7; Block::BYTES]);
        assert_eq!(aio.read(&file, &mut block, Block::BYTES as u64).unwrap(), 10);
        let write_only = File::options().append(true).open(&path).unwrap();
        let error = aio.read(&write_only, &mut block, 0).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
        std::fs::remove_file(&path).unwrap();
    }
}
