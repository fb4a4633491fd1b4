//! mount and umount.
#![allow(unsafe_code)] // the mount calls are not in std

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Mounts a file system that has no device on `target`, which is made when missing.
///
/// # Errors
/// What the kernel says; a file system that is mounted there already is not an error.
pub(crate) fn pseudo(kind: &str, target: &str) -> io::Result<()> {
    // Below /sys a directory cannot be made: it exists or the kernel lacks the feature.
    let _ = std::fs::create_dir_all(target);
    let (kind, target) = (CString::new(kind)?, CString::new(target)?);
    // SAFETY: both strings are NUL-terminated and outlive the call; a null data pointer means
    // no options.
    let result =
        unsafe { libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, std::ptr::null()) };
    match check(result) {
        Err(e) if e.raw_os_error() == Some(libc::EBUSY) => Ok(()),
        other => other,
    }
}

/// umount2 with `flags` (`libc::MNT_FORCE`, `libc::MNT_DETACH`).
///
/// # Errors
/// What the kernel says. May block as long as the file system does.
pub(crate) fn unmount(target: &Path, flags: i32) -> io::Result<()> {
    let target = CString::new(target.as_os_str().as_bytes())?;
    // SAFETY: the string is NUL-terminated and outlives the call.
    check(unsafe { libc::umount2(target.as_ptr(), flags) })
}

fn check(result: i32) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
