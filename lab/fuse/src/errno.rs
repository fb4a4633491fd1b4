//! The error a request is answered with. Nothing else fails this way.

use std::io;

/// A positive errno value, as replies carry it with a minus sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(i32);

/// Outcome of a file-system operation.
pub type Result<T> = std::result::Result<T, Errno>;

macro_rules! errnos {
    ($($name:ident),*) => {
        impl Errno { $(#[doc = stringify!($name)] pub const $name: Errno = Errno(libc::$name);)* }
    };
}
errnos!(
    EACCES,
    EBADF,
    EEXIST,
    EINVAL,
    EIO,
    EISDIR,
    ELOOP,
    EMLINK,
    ENAMETOOLONG,
    ENODATA,
    ENOENT,
    ENOSPC,
    ENOSYS,
    ENOTDIR,
    ENOTEMPTY,
    ENOTSUP,
    ENXIO,
    EPERM,
    ERANGE,
    EFBIG
);

impl Errno {
    /// From a raw number; anything a reply must not carry (below 1 or above 511) is EIO.
    pub fn new(raw: i32) -> Errno {
        if (1..512).contains(&raw) { Errno(raw) } else { Errno::EIO }
    }

    /// The positive number.
    pub fn raw(self) -> i32 {
        self.0
    }
}

impl From<rustix::io::Errno> for Errno {
    fn from(errno: rustix::io::Errno) -> Errno {
        Errno::new(errno.raw_os_error())
    }
}

impl From<io::Error> for Errno {
    fn from(error: io::Error) -> Errno {
        Errno::new(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_the_kernel_refuses_becomes_eio() {
        assert_eq!(Errno::new(512), Errno::EIO);
        assert_eq!(Errno::new(-2), Errno::EIO);
        assert_eq!(Errno::new(libc::ENOENT), Errno::ENOENT);
    }
}
