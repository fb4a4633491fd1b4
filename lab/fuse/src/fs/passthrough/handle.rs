//! Handles of open files: the backing descriptor's number itself, so that reading and writing
//! need no table and no lock.

#![allow(unsafe_code)] // descriptors travel through the kernel as numbers

use std::os::fd::{BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use crate::errno::{Errno, Result};

/// Gives a descriptor away as a handle.
pub(super) fn give(fd: OwnedFd) -> u64 {
    fd.into_raw_fd() as u64
}

/// The descriptor of a handle, for one request.
pub(super) fn borrow(handle: &u64) -> Result<BorrowedFd<'_>> {
    let raw = raw(*handle)?;
    // SAFETY: a handle comes from `give`, and the kernel sends no request on it after the
    // release that closes it; the number is not -1 by the conversion.
    Ok(unsafe { BorrowedFd::borrow_raw(raw) })
}

/// Takes a descriptor back, to be closed.
pub(super) fn take(handle: u64) -> Result<OwnedFd> {
    let raw = raw(handle)?;
    // SAFETY: as for `borrow`; the kernel releases each handle once.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Numbers that no file of the server can have, standard streams included, are refused.
fn raw(handle: u64) -> Result<RawFd> {
    RawFd::try_from(handle).ok().filter(|&raw| raw > 2).ok_or(Errno::EBADF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_no_handles_are_refused() {
        for handle in [0, 1, 2, u64::MAX, 1 << 31] {
            assert!(borrow(&handle).is_err() && take(handle).is_err(), "{handle}");
        }
    }
}
