//! Between the system's structures and the protocol's.

use rustix::fs::{FileType, Stat, StatVfs, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};

use crate::abi::reply::{Attr, KStatfs};
use crate::fs::{SetAttr, SetTime};

/// Attributes of a stat(2) result.
pub(super) fn attr(stat: &Stat) -> Attr {
    Attr {
        ino: stat.st_ino,
        size: stat.st_size as u64,
        blocks: stat.st_blocks as u64,
        atime: stat.st_atime as u64,
        mtime: stat.st_mtime as u64,
        ctime: stat.st_ctime as u64,
        atimensec: stat.st_atime_nsec as u32,
        mtimensec: stat.st_mtime_nsec as u32,
        ctimensec: stat.st_ctime_nsec as u32,
        mode: stat.st_mode,
        nlink: stat.st_nlink as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        rdev: device(stat.st_rdev),
        blksize: stat.st_blksize as u32,
        flags: 0,
    }
}

/// The protocol's 32-bit device number, minor in the low byte and from bit 20.
fn device(rdev: u64) -> u32 {
    let (major, minor) = (rustix::fs::major(rdev), rustix::fs::minor(rdev));
    (minor & 0xff) | ((major & 0xfff) << 8) | ((minor & !0xff) << 12)
}

/// The system's device number of the protocol's.
pub(super) fn system_device(rdev: u32) -> u64 {
    let (major, minor) = ((rdev >> 8) & 0xfff, (rdev & 0xff) | ((rdev >> 12) & 0xf_ff00));
    rustix::fs::makedev(major, minor)
}

/// Figures of a statvfs result.
pub(super) fn figures(vfs: &StatVfs) -> KStatfs {
    KStatfs {
        blocks: vfs.f_blocks,
        bfree: vfs.f_bfree,
        bavail: vfs.f_bavail,
        files: vfs.f_files,
        ffree: vfs.f_ffree,
        bsize: vfs.f_bsize as u32,
        namelen: vfs.f_namemax as u32,
        frsize: vfs.f_frsize as u32,
        ..KStatfs::default()
    }
}

/// Times to set; None when there are none.
pub(super) fn timestamps(set: &SetAttr) -> Option<Timestamps> {
    let spec = |time: Option<SetTime>| match time {
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Some(SetTime::Now) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Some(SetTime::At(tv_sec, nanos)) => Timespec { tv_sec, tv_nsec: nanos.into() },
    };
    (set.atime.is_some() || set.mtime.is_some())
        .then(|| Timestamps { last_access: spec(set.atime), last_modification: spec(set.mtime) })
}

/// The DT_ value of a file type.
pub(super) fn kind(file_type: FileType) -> u32 {
    match file_type {
        FileType::Unknown => 0,
        known => known.as_raw_mode() >> 12,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_survive_the_way_there_and_back() {
        for (major, minor) in [(8, 1), (259, 0), (1, 0x12345), (0xfff, 0xf_ffff)] {
            let rdev = rustix::fs::makedev(major, minor);
            assert_eq!(system_device(device(rdev)), rdev, "{major}:{minor}");
        }
    }
}
