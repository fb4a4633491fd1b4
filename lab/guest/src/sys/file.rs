//! File calls that std does not offer.
#![allow(unsafe_code)] // the calls are not in std

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

fn check(result: libc::ssize_t) -> io::Result<u64> {
    u64::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// renameat2 with `flags`.
pub(crate) fn rename2(from: &Path, to: &Path, flags: u32) -> io::Result<()> {
    let (from, to) = (c_path(from)?, c_path(to)?);
    let cwd = libc::AT_FDCWD;
    // SAFETY: both strings are NUL-terminated and outlive the call.
    let result = unsafe { libc::renameat2(cwd, from.as_ptr(), cwd, to.as_ptr(), flags) };
    check(result as libc::ssize_t).map(|_| ())
}

/// setxattr with `flags`.
pub(crate) fn set_xattr(path: &Path, name: &str, value: &[u8], flags: i32) -> io::Result<()> {
    let (path, name) = (c_path(path)?, CString::new(name)?);
    // SAFETY: the strings are NUL-terminated, value is readable for its length.
    let result = unsafe {
        libc::setxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), flags)
    };
    check(result as libc::ssize_t).map(|_| ())
}

/// getxattr into a buffer of `size` bytes; size 0 asks for the length.
pub(crate) fn get_xattr(path: &Path, name: &str, size: usize) -> io::Result<(u64, Vec<u8>)> {
    let (path, name) = (c_path(path)?, CString::new(name)?);
    let mut value = vec![0; size];
    // SAFETY: the strings are NUL-terminated, value is writable for size bytes.
    let result =
        unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), size) };
    let length = check(result)?;
    value.truncate(length as usize);
    Ok((length, value))
}

/// Names of the user attributes, sorted.
pub(crate) fn list_xattr(path: &Path) -> io::Result<Vec<String>> {
    let path = c_path(path)?;
    let mut names = vec![0; 4096];
    // SAFETY: the string is NUL-terminated, names is writable for its length.
    let result = unsafe { libc::listxattr(path.as_ptr(), names.as_mut_ptr().cast(), names.len()) };
    names.truncate(check(result)? as usize);
    let mut names: Vec<String> = names
        .split(|&b: &u8| b == 0)
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .filter(|name| name.starts_with("user."))
        .collect();
    names.sort();
    Ok(names)
}

/// removexattr.
pub(crate) fn remove_xattr(path: &Path, name: &str) -> io::Result<()> {
    let (path, name) = (c_path(path)?, CString::new(name)?);
    // SAFETY: both strings are NUL-terminated.
    check(unsafe { libc::removexattr(path.as_ptr(), name.as_ptr()) } as libc::ssize_t).map(|_| ())
}

/// fallocate with `mode`.
pub(crate) fn allocate(file: &File, mode: i32, offset: i64, length: i64) -> io::Result<()> {
    // SAFETY: takes no pointers.
    let result = unsafe { libc::fallocate(file.as_raw_fd(), mode, offset, length) };
    check(result as libc::ssize_t).map(|_| ())
}

/// lseek with `whence`.
pub(crate) fn seek(file: &File, offset: i64, whence: i32) -> io::Result<u64> {
    // SAFETY: takes no pointers.
    check(unsafe { libc::lseek(file.as_raw_fd(), offset, whence) } as libc::ssize_t)
}

/// copy_file_range from `from` at `offset` to `to` at the same offset.
pub(crate) fn copy_range(from: &File, to: &File, offset: i64, length: usize) -> io::Result<u64> {
    let (mut offset_in, mut offset_out) = (offset, offset);
    // SAFETY: both offsets are valid places.
    check(unsafe {
        libc::copy_file_range(
            from.as_raw_fd(),
            &mut offset_in,
            to.as_raw_fd(),
            &mut offset_out,
            length,
            0,
        )
    })
}

/// mkfifo.
pub(crate) fn make_fifo(path: &Path, mode: u32) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: the string is NUL-terminated.
    check(unsafe { libc::mkfifo(path.as_ptr(), mode) } as libc::ssize_t).map(|_| ())
}

/// Sets the umask of the process.
pub(crate) fn umask(mode: u32) {
    // SAFETY: takes no pointers and cannot fail.
    unsafe { libc::umask(mode) };
}

/// close, with its error: std drops it, and a flush fails here.
pub(crate) fn close(file: File) -> io::Result<()> {
    // SAFETY: the descriptor was owned by file and is given up to the call.
    check(unsafe { libc::close(file.into_raw_fd()) } as libc::ssize_t).map(|_| ())
}

/// A shared mapping of the start of a file.
pub(crate) struct Map {
    start: *mut u8,
    length: usize,
}

impl Map {
    /// Maps `length` bytes, writable when asked.
    pub(crate) fn shared(file: &File, length: usize, write: bool) -> io::Result<Map> {
        let protection = if write { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        // SAFETY: a mapping at a place that the kernel chooses overlays nothing.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Map { start: start.cast(), length })
    }

    /// The byte at `at`.
    pub(crate) fn byte(&self, at: usize) -> u8 {
        assert!(at < self.length);
        // SAFETY: at is inside the mapping, which is readable; another process may write it,
        // so the read is volatile.
        unsafe { self.start.add(at).read_volatile() }
    }

    /// Writes bytes at `at`. The mapping must be writable.
    pub(crate) fn put(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.length);
        for (i, &byte) in bytes.iter().enumerate() {
            // SAFETY: inside the mapping; callers map writable before they put.
            unsafe { self.start.add(at + i).write_volatile(byte) };
        }
    }

    /// msync, waiting.
    pub(crate) fn sync(&self) -> io::Result<()> {
        // SAFETY: the range is the whole mapping.
        let result = unsafe { libc::msync(self.start.cast(), self.length, libc::MS_SYNC) };
        check(result as libc::ssize_t).map(|_| ())
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the range is the whole mapping and nothing refers to it any more.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}
