//! Reseeding of the kernel's RNG: clones of one template share its state until they are told
//! apart.
#![allow(unsafe_code)] // the ioctls are not in std

use std::io;
use std::os::fd::AsRawFd;

/// `_IOW('R', 3, int[2])`: add entropy and credit it.
const RNDADDENTROPY: libc::c_ulong = 0x4008_5203;
/// `_IO('R', 7)`: derive a new key at once.
const RNDRESEEDCRNG: libc::c_ulong = 0x5207;

/// Layout of the kernel's `struct rand_pool_info` with 32 bytes of entropy.
#[repr(C)]
struct PoolInfo {
    entropy_bits: i32,
    size_bytes: i32,
    seed: [u8; 32],
}

/// Credits `seed` to the kernel's RNG and makes it use it at once.
///
/// # Errors
/// What the kernel says to the ioctls.
pub(crate) fn reseed(seed: [u8; 32]) -> io::Result<()> {
    let device = std::fs::OpenOptions::new().write(true).open("/dev/random")?;
    let info = PoolInfo { entropy_bits: 256, size_bytes: 32, seed };
    // SAFETY: the ioctl reads a rand_pool_info of size_bytes bytes, which info is.
    if unsafe { libc::ioctl(device.as_raw_fd(), RNDADDENTROPY as _, &info) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the ioctl takes no argument.
    if unsafe { libc::ioctl(device.as_raw_fd(), RNDRESEEDCRNG as _) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
