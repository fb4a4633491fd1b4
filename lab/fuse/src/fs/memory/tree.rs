//! The inodes and the names that join them. Changes keep link counts, times and the life of
//! inodes right: one lives while it has a name, an open handle, or a lookup of the kernel's.

use std::collections::HashMap;

use crate::abi::header::ROOT;
use crate::errno::{Errno, Result};
use crate::fs::{Caller, Entry};

use super::inode::{Directory, Inode, Kind, now};

/// Longest name, bytes.
const NAME_MAX: usize = 255;
/// renameat2: fail when the new name is there.
const NOREPLACE: u32 = 1;
/// renameat2: both names stay and swap what they stand for.
const EXCHANGE: u32 = 2;

#[derive(Debug)]
pub(super) struct Tree {
    inodes: HashMap<u64, Inode>,
    next: u64,
}

impl Tree {
    pub(super) fn new() -> Tree {
        let by = Caller { uid: 0, gid: 0 };
        let root = Kind::Directory(Directory::new(ROOT));
        let root = Inode::new(ROOT, libc::S_IFDIR | 0o755, by, root);
        Tree { inodes: HashMap::from([(ROOT, root)]), next: ROOT + 1 }
    }

    pub(super) fn count(&self) -> u64 {
        self.inodes.len() as u64
    }

    pub(super) fn get(&self, ino: u64) -> Result<&Inode> {
        self.inodes.get(&ino).ok_or(Errno::new(libc::ESTALE))
    }

    pub(super) fn get_mut(&mut self, ino: u64) -> Result<&mut Inode> {
        self.inodes.get_mut(&ino).ok_or(Errno::new(libc::ESTALE))
    }

    pub(super) fn dir(&self, ino: u64) -> Result<&Directory> {
        match &self.get(ino)?.kind {
            Kind::Directory(dir) => Ok(dir),
            _ => Err(Errno::ENOTDIR),
        }
    }

    fn dir_mut(&mut self, ino: u64) -> Result<&mut Directory> {
        match &mut self.get_mut(ino)?.kind {
            Kind::Directory(dir) => Ok(dir),
            _ => Err(Errno::ENOTDIR),
        }
    }

    fn is_dir(&self, ino: u64) -> bool {
        self.dir(ino).is_ok()
    }

    pub(super) fn child(&self, parent: u64, name: &[u8]) -> Result<u64> {
        check_name(name)?;
        self.dir(parent)?.get(name).ok_or(Errno::ENOENT)
    }

    /// Whether a name may be made in a directory.
    fn check_new(&self, parent: u64, name: &[u8]) -> Result<()> {
        check_name(name)?;
        match self.dir(parent)?.get(name) {
            Some(_) => Err(Errno::EEXIST),
            None => self.check_alive(parent),
        }
    }

    /// A removed directory takes no names.
    fn check_alive(&self, dir: u64) -> Result<()> {
        if self.get(dir)?.attr.nlink == 0 { Err(Errno::ENOENT) } else { Ok(()) }
    }

    /// The entry of an inode, one lookup counted.
    pub(super) fn entry(&mut self, ino: u64) -> Result<Entry> {
        let inode = self.get_mut(ino)?;
        inode.lookups += 1;
        Ok(Entry { node: ino, attr: inode.attr() })
    }

    /// Makes an inode under a new name.
    pub(super) fn make(
        &mut self,
        by: Caller,
        parent: u64,
        name: &[u8],
        mode: u32,
        kind: Kind,
    ) -> Result<u64> {
        self.check_new(parent, name)?;
        let folder = self.get(parent)?.attr;
        let is_dir = matches!(kind, Kind::Directory(_));
        let (mut by, mut mode) = (by, mode);
        if folder.mode & libc::S_ISGID != 0 {
            by.gid = folder.gid;
            mode |= if is_dir { libc::S_ISGID } else { 0 };
        }
        let ino = self.next;
        self.next += 1;
        self.inodes.insert(ino, Inode::new(ino, mode, by, kind));
        self.dir_mut(parent)?.set(name, ino);
        self.touch(parent, i64::from(is_dir))?;
        Ok(ino)
    }

    pub(super) fn link(&mut self, ino: u64, parent: u64, name: &[u8]) -> Result<()> {
        if self.is_dir(ino) {
            return Err(Errno::EPERM);
        }
        self.check_new(parent, name)?;
        let inode = self.get_mut(ino)?;
        inode.attr.nlink += 1;
        inode.changed(now());
        self.dir_mut(parent)?.set(name, ino);
        self.touch(parent, 0)
    }

    pub(super) fn unlink(&mut self, parent: u64, name: &[u8]) -> Result<()> {
        let ino = self.child(parent, name)?;
        if self.is_dir(ino) {
            return Err(Errno::EISDIR);
        }
        self.dir_mut(parent)?.remove(name);
        self.touch(parent, 0)?;
        self.drop_name(ino)
    }

    pub(super) fn rmdir(&mut self, parent: u64, name: &[u8]) -> Result<()> {
        let ino = self.child(parent, name)?;
        if !self.dir(ino)?.is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        self.dir_mut(parent)?.remove(name);
        self.touch(parent, -1)?;
        self.drop_name(ino)
    }

    pub(super) fn rename(&mut self, from: (u64, &[u8]), to: (u64, &[u8]), how: u32) -> Result<()> {
        if how & !(NOREPLACE | EXCHANGE) != 0 || how == NOREPLACE | EXCHANGE {
            return Err(Errno::EINVAL);
        }
        let moved = self.child(from.0, from.1)?;
        let target = match self.child(to.0, to.1) {
            Ok(target) => Some(target),
            Err(Errno::ENOENT) => None,
            Err(error) => return Err(error),
        };
        self.check_alive(to.0)?;
        if self.is_dir(moved) && self.is_within(to.0, moved) {
            return Err(Errno::EINVAL);
        }
        match target {
            None if how == EXCHANGE => Err(Errno::ENOENT),
            Some(_) if how == NOREPLACE => Err(Errno::EEXIST),
            Some(target) if target == moved => Ok(()),
            Some(target) if how == EXCHANGE => self.exchange(from, to, moved, target),
            _ => {
                if let Some(target) = target {
                    self.make_way(to, moved, target)?;
                }
                self.dir_mut(from.0)?.remove(from.1);
                self.dir_mut(to.0)?.set(to.1, moved);
                self.settle(moved, from.0, to.0)
            }
        }
    }

    fn exchange(
        &mut self,
        from: (u64, &[u8]),
        to: (u64, &[u8]),
        moved: u64,
        target: u64,
    ) -> Result<()> {
        if self.is_dir(target) && self.is_within(from.0, target) {
            return Err(Errno::EINVAL);
        }
        self.dir_mut(from.0)?.set(from.1, target);
        self.dir_mut(to.0)?.set(to.1, moved);
        self.settle(moved, from.0, to.0)?;
        self.settle(target, to.0, from.0)
    }

    /// Removes what a rename replaces.
    fn make_way(&mut self, to: (u64, &[u8]), moved: u64, target: u64) -> Result<()> {
        match (self.is_dir(moved), self.is_dir(target)) {
            (true, true) => self.rmdir(to.0, to.1),
            (false, false) => self.unlink(to.0, to.1),
            (true, false) => Err(Errno::ENOTDIR),
            (false, true) => Err(Errno::EISDIR),
        }
    }

    /// Times, and for a directory parent and link counts, after a move.
    fn settle(&mut self, ino: u64, from: u64, to: u64) -> Result<()> {
        let step = i64::from(self.is_dir(ino));
        if step != 0 {
            self.dir_mut(ino)?.parent = to;
        }
        self.get_mut(ino)?.changed(now());
        self.touch(from, -step)?;
        self.touch(to, step)
    }

    /// Whether `ino` is `top` or lies below it.
    fn is_within(&self, mut ino: u64, top: u64) -> bool {
        while ino != top && ino != ROOT {
            match self.dir(ino) {
                Ok(dir) => ino = dir.parent,
                Err(_) => return false,
            }
        }
        ino == top
    }

    /// A directory's names changed; `links` subdirectories came.
    fn touch(&mut self, dir: u64, links: i64) -> Result<()> {
        let inode = self.get_mut(dir)?;
        inode.modified(now());
        inode.attr.nlink = inode.attr.nlink.saturating_add_signed(links as i32);
        Ok(())
    }

    fn drop_name(&mut self, ino: u64) -> Result<()> {
        let inode = self.get_mut(ino)?;
        // A directory loses its own `.` with its only name.
        let left = if matches!(inode.kind, Kind::Directory(_)) { 0 } else { inode.attr.nlink - 1 };
        inode.attr.nlink = left;
        inode.changed(now());
        self.reap(ino);
        Ok(())
    }

    pub(super) fn forget(&mut self, ino: u64, count: u64) {
        if let Ok(inode) = self.get_mut(ino) {
            inode.lookups = inode.lookups.saturating_sub(count);
            self.reap(ino);
        }
    }

    pub(super) fn close(&mut self, ino: u64) -> Result<()> {
        let inode = self.get_mut(ino)?;
        inode.opens = inode.opens.saturating_sub(1);
        self.reap(ino);
        Ok(())
    }

    fn reap(&mut self, ino: u64) {
        let unused =
            |inode: &Inode| inode.attr.nlink == 0 && inode.lookups == 0 && inode.opens == 0;
        if ino != ROOT && self.inodes.get(&ino).is_some_and(unused) {
            self.inodes.remove(&ino);
        }
    }
}

fn check_name(name: &[u8]) -> Result<()> {
    if name.len() > NAME_MAX { Err(Errno::ENAMETOOLONG) } else { Ok(()) }
}
