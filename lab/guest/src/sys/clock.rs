//! Guest clocks.
#![allow(unsafe_code)] // the clock calls are not in std

use std::io;

/// CLOCK_BOOTTIME, nanoseconds.
pub(crate) fn boottime_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: time is a valid place for the result.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sets CLOCK_REALTIME to `ns` nanoseconds since the epoch.
///
/// # Errors
/// What the kernel says, e.g. for a time out of its range.
pub(crate) fn set_realtime(ns: u64) -> io::Result<()> {
    let time = libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: time is a valid timespec.
    let result = unsafe { libc::clock_settime(libc::CLOCK_REALTIME, &time) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
