//! The file-system trait. Calls come from many threads at once and carry decoded arguments.
//!
//! Nodes are named by the ids that `lookup` and its kin hand out; each such answer counts as
//! one lookup until `forget` takes it back. The root is id 1 and is never forgotten.

use std::ffi::CStr;

use crate::abi::reply::{Attr, KStatfs};
use crate::errno::{Errno, Result};

use super::dir::DirBuffer;

/// On whose behalf a request is made.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    /// File-system user id.
    pub uid: u32,
    /// File-system group id.
    pub gid: u32,
}

/// A node with its attributes, one lookup counted.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Node id.
    pub node: u64,
    /// Attributes.
    pub attr: Attr,
}

/// An open file or directory.
#[derive(Debug, Clone, Copy)]
pub struct Opened {
    /// Handle that later requests carry.
    pub handle: u64,
}

/// A time to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetTime {
    /// The time of the call.
    Now,
    /// Seconds and nanoseconds since the epoch.
    At(i64, u32),
}

/// Attributes to set; None leaves one alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct SetAttr {
    /// Permission bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Size, bytes.
    pub size: Option<u64>,
    /// Access time.
    pub atime: Option<SetTime>,
    /// Modification time.
    pub mtime: Option<SetTime>,
    /// An open handle of the node.
    pub handle: Option<u64>,
}

/// A file system. Names are single components; the errors are those of the system call that
/// caused the request. What is not overridden is answered with ENOSYS, on which the kernel
/// stops asking or takes its own default.
#[allow(unused_variables)] // the defaults use none of their arguments
pub trait FileSystem: Send + Sync {
    /// Finds a name in a directory.
    fn lookup(&self, parent: u64, name: &CStr) -> Result<Entry>;
    /// Takes back `count` lookups of a node.
    fn forget(&self, node: u64, count: u64);
    /// Attributes of a node, by an open handle where there is one.
    fn getattr(&self, node: u64, handle: Option<u64>) -> Result<Attr>;
    /// Sets attributes and returns all of them.
    fn setattr(&self, node: u64, set: &SetAttr) -> Result<Attr>;
    /// Writes a symbolic link's target to `out`, cut at its end, and returns the length.
    fn readlink(&self, node: u64, out: &mut [u8]) -> Result<usize>;
    /// Makes a symbolic link.
    fn symlink(&self, by: Caller, parent: u64, name: &CStr, target: &CStr) -> Result<Entry>;
    /// Makes a file of any kind but directory; `mode` has kind and permissions.
    fn mknod(&self, by: Caller, parent: u64, name: &CStr, mode: u32, rdev: u32) -> Result<Entry>;
    /// Makes a directory.
    fn mkdir(&self, by: Caller, parent: u64, name: &CStr, mode: u32) -> Result<Entry>;
    /// Removes a name that is not a directory.
    fn unlink(&self, parent: u64, name: &CStr) -> Result<()>;
    /// Removes an empty directory.
    fn rmdir(&self, parent: u64, name: &CStr) -> Result<()>;
    /// Renames with the flags of renameat2(2).
    fn rename(&self, from: (u64, &CStr), to: (u64, &CStr), flags: u32) -> Result<()>;
    /// Makes another name for a node.
    fn link(&self, node: u64, parent: u64, name: &CStr) -> Result<Entry>;
    /// Opens a file with the flags of open(2).
    fn open(&self, node: u64, flags: u32) -> Result<Opened>;
    /// Makes a file where there is none, and opens it.
    fn create(
        &self,
        by: Caller,
        parent: u64,
        name: &CStr,
        mode: u32,
        flags: u32,
    ) -> Result<(Entry, Opened)>;
    /// Reads into `out` and returns the bytes read; fewer than asked only at the end.
    fn read(&self, node: u64, handle: u64, offset: u64, out: &mut [u8]) -> Result<usize>;
    /// Writes and returns the bytes written.
    fn write(&self, node: u64, handle: u64, offset: u64, data: &[u8]) -> Result<usize>;
    /// Figures of the file system.
    fn statfs(&self, node: u64) -> Result<KStatfs>;
    /// Ends a handle of [`FileSystem::open`] or [`FileSystem::create`].
    fn release(&self, node: u64, handle: u64) -> Result<()>;
    /// Writes a file's state to the disk; its data alone when `data_only`.
    fn fsync(&self, node: u64, handle: u64, data_only: bool) -> Result<()>;
    /// A descriptor of the handle was closed.
    fn flush(&self, node: u64, handle: u64) -> Result<()> {
        Ok(())
    }
    /// Opens a directory.
    fn opendir(&self, node: u64) -> Result<Opened>;
    /// Adds the records after the position `offset` (0: from the start) until `out` is full.
    fn readdir(&self, node: u64, handle: u64, offset: u64, out: &mut DirBuffer<'_>) -> Result<()>;
    /// Ends a handle of [`FileSystem::opendir`].
    fn releasedir(&self, node: u64, handle: u64) -> Result<()>;
    /// Writes a directory's state to the disk.
    fn fsyncdir(&self, node: u64, handle: u64, data_only: bool) -> Result<()>;
    /// Checks a mask of access(2) for the caller. Not asked while the kernel checks.
    fn access(&self, by: Caller, node: u64, mask: u32) -> Result<()> {
        may_access(&self.getattr(node, None)?, by, mask)
    }
    /// Writes an attribute's value to `out` and returns its length; with an empty `out` only
    /// the length, with a short one ERANGE.
    fn getxattr(&self, node: u64, name: &CStr, out: &mut [u8]) -> Result<usize> {
        Err(Errno::ENOSYS)
    }
    /// Sets an attribute with the flags of setxattr(2).
    fn setxattr(&self, node: u64, name: &CStr, value: &[u8], flags: u32) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    /// Like [`FileSystem::getxattr`] for the names, each ended by a zero byte.
    fn listxattr(&self, node: u64, out: &mut [u8]) -> Result<usize> {
        Err(Errno::ENOSYS)
    }
    /// Removes an attribute.
    fn removexattr(&self, node: u64, name: &CStr) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    /// Reserves, punches or zeroes a range as fallocate(2).
    fn fallocate(&self, node: u64, handle: u64, range: (u64, u64), mode: u32) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    /// Finds data or a hole, by SEEK_DATA or SEEK_HOLE.
    fn lseek(&self, node: u64, handle: u64, offset: u64, whence: u32) -> Result<u64> {
        Err(Errno::ENOSYS)
    }
}

/// The classic permission check by owner, group and others; root passes but for execution.
pub(super) fn may_access(attr: &Attr, by: Caller, mask: u32) -> Result<()> {
    let mode = attr.mode;
    let granted = match by {
        Caller { uid: 0, .. } if mode & 0o111 != 0 || mode & libc::S_IFMT == libc::S_IFDIR => 7,
        Caller { uid: 0, .. } => 6,
        Caller { uid, .. } if uid == attr.uid => mode >> 6,
        Caller { gid, .. } if gid == attr.gid => mode >> 3,
        _ => mode,
    };
    if mask & 7 & !granted == 0 { Ok(()) } else { Err(Errno::EACCES) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_goes_by_owner_then_group_then_others() {
        let attr = Attr { mode: 0o100640, uid: 5, gid: 6, ..Attr::default() };
        let by = |uid, gid| Caller { uid, gid };
        assert!(may_access(&attr, by(5, 9), 6).is_ok());
        assert!(may_access(&attr, by(9, 6), 4).is_ok());
        assert_eq!(may_access(&attr, by(9, 6), 2), Err(Errno::EACCES));
        assert_eq!(may_access(&attr, by(9, 9), 4), Err(Errno::EACCES));
        assert!(may_access(&attr, by(0, 0), 6).is_ok());
        assert_eq!(may_access(&attr, by(0, 0), 1), Err(Errno::EACCES));
    }
}
