//! CPU affinity of the calling thread.
#![allow(unsafe_code)] // the affinity calls are not in std

use std::io;

/// Pins the calling thread to `cpu` and checks that it runs there.
///
/// # Errors
/// What the kernel says, or `Other` when the thread is seen on another CPU afterwards.
pub(crate) fn pin(cpu: u32) -> io::Result<()> {
    // SAFETY: an all-zero cpu_set_t is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    if cpu as usize >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: cpu is below the size of the set.
    unsafe { libc::CPU_SET(cpu as usize, &mut set) };
    // SAFETY: set is a valid set of the size given; pid 0 is the calling thread.
    if unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: takes no arguments.
    let seen = unsafe { libc::sched_getcpu() };
    if seen == cpu as i32 {
        return Ok(());
    }
    Err(io::Error::other(format!("pinned to cpu {cpu}, runs on {seen}")))
}
