//! The file-system operations on the tree. A handle is the node's id.

use std::ffi::CStr;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::abi::reply::{Attr, KStatfs};
use crate::errno::{Errno, Result};
use crate::fs::{Caller, DirBuffer, Entry, FileSystem, Opened, SetAttr, SetTime};

use super::content::Content;
use super::inode::{Directory, Inode, Kind, now};
use super::tree::Tree;

/// setxattr(2): the name must not be there, or must.
const XATTR_CREATE: u32 = 1;
const XATTR_REPLACE: u32 = 2;
/// Longest attribute value, bytes.
const XATTR_SIZE_MAX: usize = 65536;
/// fallocate(2) modes.
const KEEP_SIZE: u32 = 1;
const PUNCH_HOLE: u32 = 2;
const ZERO_RANGE: u32 = 16;
/// Figures told by statfs: enough that no tool thinks the file system full.
const BLOCKS: u64 = 1 << 20;
const INODES: u64 = 1 << 20;

/// Serves memory.
#[derive(Debug)]
pub struct Memory(RwLock<Tree>);

impl Memory {
    /// With an empty root, mode 0755, owned by root.
    pub fn new() -> Memory {
        Memory(RwLock::new(Tree::new()))
    }

    fn read_tree(&self) -> RwLockReadGuard<'_, Tree> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn tree(&self) -> RwLockWriteGuard<'_, Tree> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn make(&self, by: Caller, at: (u64, &CStr), mode: u32, kind: Kind) -> Result<Entry> {
        let mut tree = self.tree();
        let ino = tree.make(by, at.0, at.1.to_bytes(), mode, kind)?;
        tree.entry(ino)
    }
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::new()
    }
}

fn content(inode: &Inode) -> Result<&Content> {
    match &inode.kind {
        Kind::File(content) => Ok(content),
        Kind::Directory(_) => Err(Errno::EISDIR),
        _ => Err(Errno::EINVAL),
    }
}

fn content_mut(inode: &mut Inode) -> Result<&mut Content> {
    match &mut inode.kind {
        Kind::File(content) => Ok(content),
        Kind::Directory(_) => Err(Errno::EISDIR),
        _ => Err(Errno::EINVAL),
    }
}

/// Copies a value, or only tells its length when `out` is empty.
fn copy_value(value: &[u8], out: &mut [u8]) -> Result<usize> {
    if !out.is_empty() {
        out.get_mut(..value.len()).ok_or(Errno::ERANGE)?.copy_from_slice(value);
    }
    Ok(value.len())
}

fn set_attributes(inode: &mut Inode, set: &SetAttr) -> Result<()> {
    let at = now();
    let time = |time| match time {
        SetTime::Now => at,
        SetTime::At(seconds, nanos) => (seconds, nanos),
    };
    if let Some(size) = set.size {
        content_mut(inode)?.resize(size)?;
        inode.set_mtime(at);
    }
    if let Some(mode) = set.mode {
        inode.attr.mode = inode.attr.mode & libc::S_IFMT | mode & 0o7777;
    }
    inode.attr.uid = set.uid.unwrap_or(inode.attr.uid);
    inode.attr.gid = set.gid.unwrap_or(inode.attr.gid);
    set.atime.into_iter().for_each(|atime| inode.set_atime(time(atime)));
    set.mtime.into_iter().for_each(|mtime| inode.set_mtime(time(mtime)));
    inode.changed(at);
    Ok(())
}

impl FileSystem for Memory {
    fn lookup(&self, parent: u64, name: &CStr) -> Result<Entry> {
        let mut tree = self.tree();
        let ino = tree.child(parent, name.to_bytes())?;
        tree.entry(ino)
    }

    fn forget(&self, node: u64, count: u64) {
        self.tree().forget(node, count);
    }

    fn getattr(&self, node: u64, _handle: Option<u64>) -> Result<Attr> {
        Ok(self.read_tree().get(node)?.attr())
    }

    fn setattr(&self, node: u64, set: &SetAttr) -> Result<Attr> {
        let mut tree = self.tree();
        let inode = tree.get_mut(node)?;
        set_attributes(inode, set)?;
        Ok(inode.attr())
    }

    fn readlink(&self, node: u64, out: &mut [u8]) -> Result<usize> {
        let tree = self.read_tree();
        let Kind::Link(target) = &tree.get(node)?.kind else { return Err(Errno::EINVAL) };
        let len = target.len().min(out.len());
        out[..len].copy_from_slice(&target[..len]);
        Ok(len)
    }

    fn symlink(&self, by: Caller, parent: u64, name: &CStr, target: &CStr) -> Result<Entry> {
        let kind = Kind::Link(target.to_bytes().to_vec());
        self.make(by, (parent, name), libc::S_IFLNK | 0o777, kind)
    }

    fn mknod(&self, by: Caller, parent: u64, name: &CStr, mode: u32, rdev: u32) -> Result<Entry> {
        let mut tree = self.tree();
        let kind = match mode & libc::S_IFMT {
            libc::S_IFREG => Kind::File(Content::default()),
            libc::S_IFCHR | libc::S_IFBLK | libc::S_IFIFO | libc::S_IFSOCK => Kind::Special,
            _ => return Err(Errno::EINVAL),
        };
        let ino = tree.make(by, parent, name.to_bytes(), mode, kind)?;
        tree.get_mut(ino)?.attr.rdev = rdev;
        tree.entry(ino)
    }

    fn mkdir(&self, by: Caller, parent: u64, name: &CStr, mode: u32) -> Result<Entry> {
        let mode = libc::S_IFDIR | mode & 0o7777;
        self.make(by, (parent, name), mode, Kind::Directory(Directory::new(parent)))
    }

    fn unlink(&self, parent: u64, name: &CStr) -> Result<()> {
        self.tree().unlink(parent, name.to_bytes())
    }

    fn rmdir(&self, parent: u64, name: &CStr) -> Result<()> {
        self.tree().rmdir(parent, name.to_bytes())
    }

    fn rename(&self, from: (u64, &CStr), to: (u64, &CStr), flags: u32) -> Result<()> {
        self.tree().rename((from.0, from.1.to_bytes()), (to.0, to.1.to_bytes()), flags)
    }

    fn link(&self, node: u64, parent: u64, name: &CStr) -> Result<Entry> {
        let mut tree = self.tree();
        tree.link(node, parent, name.to_bytes())?;
        tree.entry(node)
    }

    fn open(&self, node: u64, flags: u32) -> Result<Opened> {
        let mut tree = self.tree();
        let inode = tree.get_mut(node)?;
        if flags & libc::O_TRUNC as u32 != 0 && content(inode)?.size() > 0 {
            content_mut(inode)?.resize(0)?;
            inode.modified(now());
        }
        inode.opens += 1;
        Ok(Opened { handle: node })
    }

    fn create(
        &self,
        by: Caller,
        parent: u64,
        name: &CStr,
        mode: u32,
        flags: u32,
    ) -> Result<(Entry, Opened)> {
        let mut tree = self.tree();
        let mode = libc::S_IFREG | mode & 0o7777;
        let kind = Kind::File(Content::default());
        let ino = match tree.make(by, parent, name.to_bytes(), mode, kind) {
            Err(Errno::EEXIST) if flags & libc::O_EXCL as u32 == 0 => {
                tree.child(parent, name.to_bytes())?
            }
            other => other?,
        };
        let inode = tree.get_mut(ino)?;
        if flags & libc::O_TRUNC as u32 != 0 {
            content_mut(inode)?.resize(0)?;
        }
        inode.opens += 1;
        Ok((tree.entry(ino)?, Opened { handle: ino }))
    }

    fn read(&self, node: u64, _handle: u64, offset: u64, out: &mut [u8]) -> Result<usize> {
        Ok(content(self.read_tree().get(node)?)?.read(offset, out))
    }

    fn write(&self, node: u64, _handle: u64, offset: u64, data: &[u8]) -> Result<usize> {
        let mut tree = self.tree();
        let inode = tree.get_mut(node)?;
        let written = content_mut(inode)?.write(offset, data)?;
        inode.modified(now());
        Ok(written)
    }

    fn statfs(&self, _node: u64) -> Result<KStatfs> {
        let used = self.read_tree().count();
        Ok(KStatfs {
            blocks: BLOCKS,
            bfree: BLOCKS,
            bavail: BLOCKS,
            files: INODES,
            ffree: INODES.saturating_sub(used),
            bsize: 4096,
            namelen: 255,
            frsize: 4096,
            ..KStatfs::default()
        })
    }

    fn release(&self, node: u64, _handle: u64) -> Result<()> {
        self.tree().close(node)
    }

    fn fsync(&self, node: u64, _handle: u64, _data_only: bool) -> Result<()> {
        self.read_tree().get(node).map(drop)
    }

    fn opendir(&self, node: u64) -> Result<Opened> {
        let mut tree = self.tree();
        tree.dir(node)?;
        tree.get_mut(node)?.opens += 1;
        Ok(Opened { handle: node })
    }

    fn readdir(&self, node: u64, _handle: u64, offset: u64, out: &mut DirBuffer<'_>) -> Result<()> {
        let mut tree = self.tree();
        let dir = tree.dir(node)?;
        let dots = [(1, &b"."[..], node), (2, b"..", dir.parent)];
        let dots = dots.into_iter().filter(|(position, ..)| *position > offset);
        for (position, name, ino) in dots {
            if !out.push(ino, position, u32::from(libc::DT_DIR), name, None) {
                return Ok(());
            }
        }
        let mut listed = Vec::new();
        for (position, name, ino) in tree.dir(node)?.after(offset) {
            let inode = tree.get(ino)?;
            let entry = Entry { node: ino, attr: inode.attr() };
            let kind = (inode.attr.mode & libc::S_IFMT) >> 12;
            let entry = out.wants_entries().then_some(&entry);
            if !out.push(ino, position, kind, name, entry) {
                break;
            }
            listed.push(ino);
        }
        if out.wants_entries() {
            for ino in listed {
                tree.get_mut(ino)?.lookups += 1;
            }
        }
        Ok(())
    }

    fn releasedir(&self, node: u64, _handle: u64) -> Result<()> {
        self.tree().close(node)
    }

    fn fsyncdir(&self, node: u64, _handle: u64, _data_only: bool) -> Result<()> {
        self.read_tree().get(node).map(drop)
    }

    fn getxattr(&self, node: u64, name: &CStr, out: &mut [u8]) -> Result<usize> {
        let tree = self.read_tree();
        copy_value(tree.get(node)?.xattrs.get(name.to_bytes()).ok_or(Errno::ENODATA)?, out)
    }

    fn setxattr(&self, node: u64, name: &CStr, value: &[u8], flags: u32) -> Result<()> {
        if value.len() > XATTR_SIZE_MAX {
            return Err(Errno::ERANGE);
        }
        let mut tree = self.tree();
        let inode = tree.get_mut(node)?;
        match (inode.xattrs.contains_key(name.to_bytes()), flags) {
            (true, XATTR_CREATE) => return Err(Errno::EEXIST),
            (false, XATTR_REPLACE) => return Err(Errno::ENODATA),
            _ => {}
        }
        inode.xattrs.insert(name.to_bytes().to_vec(), value.to_vec());
        inode.changed(now());
        Ok(())
    }

    fn listxattr(&self, node: u64, out: &mut [u8]) -> Result<usize> {
        let tree = self.read_tree();
        let names = tree.get(node)?.xattrs.keys();
        copy_value(
            &names.flat_map(|name| name.iter().copied().chain([0])).collect::<Vec<u8>>(),
            out,
        )
    }

    fn removexattr(&self, node: u64, name: &CStr) -> Result<()> {
        let mut tree = self.tree();
        let inode = tree.get_mut(node)?;
        inode.xattrs.remove(name.to_bytes()).ok_or(Errno::ENODATA)?;
        inode.changed(now());
        Ok(())
    }

    fn fallocate(&self, node: u64, _handle: u64, range: (u64, u64), mode: u32) -> Result<()> {
        let mut tree = self.tree();
        let inode = tree.get_mut(node)?;
        let content = content_mut(inode)?;
        match mode & !KEEP_SIZE {
            0 => {}
            PUNCH_HOLE if mode & KEEP_SIZE != 0 => content.zero(range.0, range.1),
            ZERO_RANGE => content.zero(range.0, range.1),
            _ => return Err(Errno::ENOTSUP),
        }
        if mode & KEEP_SIZE == 0 {
            content.grow(range.0, range.1)?;
        }
        inode.modified(now());
        Ok(())
    }

    fn lseek(&self, node: u64, _handle: u64, offset: u64, whence: u32) -> Result<u64> {
        let tree = self.read_tree();
        let content = content(tree.get(node)?)?;
        match whence as i32 {
            libc::SEEK_DATA => content.data(offset),
            libc::SEEK_HOLE => content.hole(offset),
            _ => Err(Errno::EINVAL),
        }
    }
}
