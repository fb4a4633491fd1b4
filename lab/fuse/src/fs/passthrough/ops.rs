//! The file-system operations on backing files.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{
    self as sys, AtFlags, FallocateFlags, FileType, Gid, Mode, OFlags, RawDir, RenameFlags,
    ResolveFlags, SeekFrom, Stat, Uid, XattrFlags,
};
use rustix::path::DecInt;

use crate::abi::reply::{Attr, KStatfs};
use crate::errno::{Errno, Result};
use crate::fs::{Caller, DirBuffer, Entry, FileSystem, Opened, SetAttr};

use super::nodes::{Node, Nodes};
use super::{attr, handle};

/// Locks for reading directories, by handle: position and reading must be one step.
const DIR_LOCKS: usize = 16;
/// Buffer of one getdents call.
const DIR_BYTES: usize = 8192;
/// Flags of open(2) that are taken over to the backing file.
const OPEN_FLAGS: OFlags = OFlags::ACCMODE
    .union(OFlags::APPEND)
    .union(OFlags::TRUNC)
    .union(OFlags::EXCL)
    .union(OFlags::SYNC)
    .union(OFlags::DSYNC)
    .union(OFlags::NOATIME)
    .union(OFlags::NONBLOCK);

/// Serves a directory.
#[derive(Debug)]
pub struct Passthrough {
    nodes: Nodes,
    /// /proc/self/fd: opens again what is held by an O_PATH descriptor.
    descriptors: OwnedFd,
    writeback: bool,
    dir_locks: [Mutex<()>; DIR_LOCKS],
}

impl Passthrough {
    /// For a directory. Sets the process's umask to 0: the kernel has applied the caller's.
    ///
    /// # Errors
    /// Opening the directory, or /proc/self/fd.
    pub fn new(source: &str, writeback: bool) -> Result<Passthrough> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = sys::open(source, flags, Mode::empty())?;
        let stat = sys::fstat(&root)?;
        let descriptors = sys::open("/proc/self/fd", flags, Mode::empty())?;
        rustix::process::umask(Mode::empty());
        let dir_locks = Default::default();
        Ok(Passthrough { nodes: Nodes::new(root, &stat), descriptors, writeback, dir_locks })
    }

    /// Opens a node again, by what its descriptor refers to.
    fn reopen(&self, node: &Node, flags: OFlags) -> Result<OwnedFd> {
        let name = DecInt::from_fd(&node.fd);
        let flags = flags | OFlags::CLOEXEC;
        Ok(sys::openat(&self.descriptors, name.as_c_str(), flags, Mode::empty())?)
    }

    fn open_flags(&self, flags: u32) -> OFlags {
        let mut flags = OFlags::from_bits_retain(flags).intersection(OPEN_FLAGS);
        if self.writeback {
            // The kernel reads pages it writes in part, and places appended data itself.
            flags.remove(OFlags::APPEND);
            if flags.intersection(OFlags::ACCMODE) == OFlags::WRONLY {
                flags = flags.difference(OFlags::ACCMODE) | OFlags::RDWR;
            }
        }
        flags
    }

    fn find(&self, parent: &Node, name: &CStr) -> Result<Entry> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = sys::openat2(&parent.fd, name, flags, Mode::empty(), beneath())?;
        let stat = sys::fstat(&fd)?;
        let node = self.nodes.found(fd, &stat);
        Ok(Entry { node, attr: attr::attr(&stat) })
    }

    /// Makes the caller the owner of what the server made for it, and looks it up.
    fn made(&self, by: Caller, parent: &Node, name: &CStr) -> Result<Entry> {
        if (by.uid, by.gid) != (0, 0) {
            let inherits = sys::fstat(&parent.fd)?.st_mode & libc::S_ISGID != 0;
            let group = (!inherits).then(|| Gid::from_raw(by.gid));
            let owner = Some(Uid::from_raw(by.uid));
            sys::chownat(&parent.fd, name, owner, group, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        self.find(parent, name)
    }

    fn set_size(&self, node: &Node, set: &SetAttr, size: u64) -> Result<()> {
        match &set.handle {
            Some(number) => sys::ftruncate(handle::borrow(number)?, size)?,
            None => sys::ftruncate(self.reopen(regular(node)?, OFlags::WRONLY)?, size)?,
        }
        Ok(())
    }

    fn fill(&self, parent: &Node, dir: BorrowedFd<'_>, out: &mut DirBuffer<'_>) -> Result<()> {
        let mut space = [const { MaybeUninit::<u8>::uninit() }; DIR_BYTES];
        let mut records = RawDir::new(dir, &mut space);
        while let Some(record) = records.next() {
            let record = record?;
            let name = record.file_name();
            let bytes = name.to_bytes();
            if !out.fits(bytes) {
                break;
            }
            let (next, kind) = (record.next_entry_cookie(), attr::kind(record.file_type()));
            let dots = matches!(bytes, b"." | b"..");
            if dots || !out.wants_entries() {
                out.push(record.ino(), next, kind, bytes, None);
                continue;
            }
            // A name that has gone meanwhile is left out.
            if let Ok(entry) = self.find(parent, name) {
                let kind = (entry.attr.mode & libc::S_IFMT) >> 12;
                out.push(entry.attr.ino, next, kind, bytes, Some(&entry));
            }
        }
        Ok(())
    }
}

/// Names stay in their directory: no links, no dots, no /proc magic. Mounts inside the source
/// are not entered either (EXDEV): one of them may be the server's own, and a queue that asks
/// its own mount waits for itself.
fn beneath() -> ResolveFlags {
    ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV
}

/// Opening a device or pipe could block or do harm; the kernel asks for files only.
fn regular(node: &Node) -> Result<&Node> {
    match node.kind {
        libc::S_IFREG => Ok(node),
        libc::S_IFDIR => Err(Errno::EISDIR),
        libc::S_IFLNK => Err(Errno::ELOOP),
        _ => Err(Errno::ENXIO),
    }
}

/// Attribute calls take no O_PATH descriptor; this path follows to the node itself.
fn path_of(node: &Node) -> String {
    format!("/proc/self/fd/{}", DecInt::from_fd(&node.fd).as_str())
}

fn stat(fd: impl AsFd) -> Result<Stat> {
    Ok(sys::fstat(fd)?)
}

impl FileSystem for Passthrough {
    fn lookup(&self, parent: u64, name: &CStr) -> Result<Entry> {
        self.find(&*self.nodes.get(parent)?, name)
    }

    fn forget(&self, node: u64, count: u64) {
        self.nodes.forget(node, count);
    }

    fn getattr(&self, node: u64, number: Option<u64>) -> Result<Attr> {
        match &number {
            Some(number) => Ok(attr::attr(&stat(handle::borrow(number)?)?)),
            None => Ok(attr::attr(&stat(&self.nodes.get(node)?.fd)?)),
        }
    }

    fn setattr(&self, node: u64, set: &SetAttr) -> Result<Attr> {
        let node = self.nodes.get(node)?;
        if set.uid.is_some() || set.gid.is_some() {
            let (owner, group) = (set.uid.map(Uid::from_raw), set.gid.map(Gid::from_raw));
            sys::chownat(&node.fd, c"", owner, group, AtFlags::EMPTY_PATH)?;
        }
        if let Some(mode) = set.mode {
            let name = DecInt::from_fd(&node.fd);
            let mode = Mode::from_raw_mode(mode);
            sys::chmodat(&self.descriptors, name.as_c_str(), mode, AtFlags::empty())?;
        }
        if let Some(size) = set.size {
            self.set_size(&node, set, size)?;
        }
        if let Some(times) = attr::timestamps(set) {
            sys::utimensat(&node.fd, c"", &times, AtFlags::EMPTY_PATH)?;
        }
        Ok(attr::attr(&stat(&node.fd)?))
    }

    fn readlink(&self, node: u64, out: &mut [u8]) -> Result<usize> {
        Ok(sys::readlinkat_raw(&self.nodes.get(node)?.fd, c"", out)?)
    }

    fn symlink(&self, by: Caller, parent: u64, name: &CStr, target: &CStr) -> Result<Entry> {
        let parent = self.nodes.get(parent)?;
        sys::symlinkat(target, &parent.fd, name)?;
        self.made(by, &parent, name)
    }

    fn mknod(&self, by: Caller, parent: u64, name: &CStr, mode: u32, rdev: u32) -> Result<Entry> {
        let parent = self.nodes.get(parent)?;
        let (kind, permissions) = (FileType::from_raw_mode(mode), Mode::from_raw_mode(mode));
        sys::mknodat(&parent.fd, name, kind, permissions, attr::system_device(rdev))?;
        self.made(by, &parent, name)
    }

    fn mkdir(&self, by: Caller, parent: u64, name: &CStr, mode: u32) -> Result<Entry> {
        let parent = self.nodes.get(parent)?;
        sys::mkdirat(&parent.fd, name, Mode::from_raw_mode(mode))?;
        self.made(by, &parent, name)
    }

    fn unlink(&self, parent: u64, name: &CStr) -> Result<()> {
        Ok(sys::unlinkat(&self.nodes.get(parent)?.fd, name, AtFlags::empty())?)
    }

    fn rmdir(&self, parent: u64, name: &CStr) -> Result<()> {
        Ok(sys::unlinkat(&self.nodes.get(parent)?.fd, name, AtFlags::REMOVEDIR)?)
    }

    fn rename(&self, from: (u64, &CStr), to: (u64, &CStr), flags: u32) -> Result<()> {
        let (old, new) = (self.nodes.get(from.0)?, self.nodes.get(to.0)?);
        let flags = RenameFlags::from_bits(flags).ok_or(Errno::EINVAL)?;
        Ok(sys::renameat_with(&old.fd, from.1, &new.fd, to.1, flags)?)
    }

    fn link(&self, node: u64, parent: u64, name: &CStr) -> Result<Entry> {
        let (node, parent) = (self.nodes.get(node)?, self.nodes.get(parent)?);
        sys::linkat(&node.fd, c"", &parent.fd, name, AtFlags::EMPTY_PATH)?;
        self.find(&parent, name)
    }

    fn open(&self, node: u64, flags: u32) -> Result<Opened> {
        let node = self.nodes.get(node)?;
        let flags = self.open_flags(flags).difference(OFlags::EXCL);
        Ok(Opened { handle: handle::give(self.reopen(regular(&node)?, flags)?) })
    }

    fn create(
        &self,
        by: Caller,
        parent: u64,
        name: &CStr,
        mode: u32,
        flags: u32,
    ) -> Result<(Entry, Opened)> {
        let parent = self.nodes.get(parent)?;
        let flags = self.open_flags(flags) | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode & 0o7777);
        let fd = sys::openat2(&parent.fd, name, flags, mode, beneath())?;
        let entry = self.made(by, &parent, name)?;
        Ok((entry, Opened { handle: handle::give(fd) }))
    }

    fn read(&self, _node: u64, number: u64, offset: u64, out: &mut [u8]) -> Result<usize> {
        let fd = handle::borrow(&number)?;
        let mut done = 0;
        while done < out.len() {
            match rustix::io::pread(fd, &mut out[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(len) => done += len,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) if done == 0 => return Err(error.into()),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    fn write(&self, _node: u64, number: u64, offset: u64, data: &[u8]) -> Result<usize> {
        let fd = handle::borrow(&number)?;
        let mut done = 0;
        while done < data.len() {
            match rustix::io::pwrite(fd, &data[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(len) => done += len,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) if done == 0 => return Err(error.into()),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    fn statfs(&self, node: u64) -> Result<KStatfs> {
        Ok(attr::figures(&sys::fstatvfs(&self.nodes.get(node)?.fd)?))
    }

    fn release(&self, _node: u64, number: u64) -> Result<()> {
        handle::take(number).map(drop)
    }

    fn fsync(&self, _node: u64, number: u64, data_only: bool) -> Result<()> {
        let fd = handle::borrow(&number)?;
        let done = if data_only { sys::fdatasync(fd) } else { sys::fsync(fd) };
        Ok(done?)
    }

    fn opendir(&self, node: u64) -> Result<Opened> {
        let node = self.nodes.get(node)?;
        if node.kind != libc::S_IFDIR {
            return Err(Errno::ENOTDIR);
        }
        let fd = self.reopen(&node, OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(Opened { handle: handle::give(fd) })
    }

    fn readdir(&self, node: u64, number: u64, offset: u64, out: &mut DirBuffer<'_>) -> Result<()> {
        let parent = self.nodes.get(node)?;
        let lock = &self.dir_locks[number as usize % DIR_LOCKS];
        let _one = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = handle::borrow(&number)?;
        let mut position = offset;
        loop {
            sys::seek(dir, SeekFrom::Start(position))?;
            let before = out.used();
            self.fill(&parent, dir, out)?;
            // One call of getdents may hold less than the reply has room for.
            match out.last() {
                Some(last) if out.used() > before => position = last,
                _ => return Ok(()),
            }
        }
    }

    fn releasedir(&self, _node: u64, number: u64) -> Result<()> {
        handle::take(number).map(drop)
    }

    fn fsyncdir(&self, node: u64, number: u64, data_only: bool) -> Result<()> {
        self.fsync(node, number, data_only)
    }

    fn getxattr(&self, node: u64, name: &CStr, out: &mut [u8]) -> Result<usize> {
        let node = self.nodes.get(node)?;
        // With an empty buffer rustix's call gives 0; the length is a question of its own.
        let len = match out.is_empty() {
            true => sys::getxattr_query(path_of(&node), name)?,
            false => sys::getxattr(path_of(&node), name, out)?,
        };
        Ok(len)
    }

    fn setxattr(&self, node: u64, name: &CStr, value: &[u8], flags: u32) -> Result<()> {
        let flags = XattrFlags::from_bits_retain(flags);
        Ok(sys::setxattr(path_of(&*self.nodes.get(node)?), name, value, flags)?)
    }

    fn listxattr(&self, node: u64, out: &mut [u8]) -> Result<usize> {
        let node = self.nodes.get(node)?;
        let len = match out.is_empty() {
            true => sys::listxattr_query(path_of(&node))?,
            false => sys::listxattr(path_of(&node), out)?,
        };
        Ok(len)
    }

    fn removexattr(&self, node: u64, name: &CStr) -> Result<()> {
        Ok(sys::removexattr(path_of(&*self.nodes.get(node)?), name)?)
    }

    fn fallocate(&self, _node: u64, number: u64, range: (u64, u64), mode: u32) -> Result<()> {
        let mode = FallocateFlags::from_bits_retain(mode);
        Ok(sys::fallocate(handle::borrow(&number)?, mode, range.0, range.1)?)
    }

    fn lseek(&self, _node: u64, number: u64, offset: u64, whence: u32) -> Result<u64> {
        let to = match whence as i32 {
            libc::SEEK_DATA => SeekFrom::Data(offset),
            libc::SEEK_HOLE => SeekFrom::Hole(offset),
            _ => return Err(Errno::EINVAL),
        };
        Ok(sys::seek(handle::borrow(&number)?, to)?)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;

    struct Source(PathBuf);

    impl Source {
        fn new(name: &str) -> (Source, Passthrough) {
            let id = std::process::id();
            let path = std::env::temp_dir().join(format!("lab-passthrough-{id}-{name}"));
            std::fs::create_dir_all(path.join("dir")).unwrap();
            let fs = Passthrough::new(path.to_str().unwrap(), false).unwrap();
            (Source(path), fs)
        }
    }

    impl Drop for Source {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn no_name_leads_out() {
        let (source, fs) = Source::new("out");
        symlink("/etc", source.0.join("etc")).unwrap();
        let dir = fs.lookup(1, c"dir").unwrap().node;
        for (parent, name) in [(1, c".."), (1, c"/etc"), (dir, c"../.."), (1, c"dir/../..")] {
            assert!(fs.lookup(parent, name).is_err(), "{name:?}");
        }
        // The link is a node of its own; neither it nor a name below it is followed.
        let link = fs.lookup(1, c"etc").unwrap();
        assert_eq!(link.attr.mode & libc::S_IFMT, libc::S_IFLNK);
        assert!(fs.lookup(link.node, c"passwd").is_err());
        assert!(fs.open(link.node, 0).is_err() && fs.opendir(link.node).is_err());
        let by = Caller { uid: 0, gid: 0 };
        assert!(fs.create(by, 1, c"../escaped", 0o600, libc::O_RDWR as u32).is_err());
    }

    #[test]
    fn without_a_buffer_the_length_is_told() {
        let (_source, fs) = Source::new("xattr");
        let node = fs.lookup(1, c"dir").unwrap().node;
        fs.setxattr(node, c"user.a", b"value", 0).unwrap();
        assert_eq!(fs.getxattr(node, c"user.a", &mut []).unwrap(), 5);
        assert_eq!(fs.listxattr(node, &mut []).unwrap(), "user.a\0".len());
    }

    #[test]
    fn a_node_lives_until_its_last_lookup_is_forgotten() {
        let (_source, fs) = Source::new("forget");
        let node = fs.lookup(1, c"dir").unwrap().node;
        assert_eq!(fs.lookup(1, c"dir").unwrap().node, node);
        assert_eq!(fs.nodes.len(), 2);
        fs.forget(node, 1);
        assert!(fs.getattr(node, None).is_ok());
        fs.forget(node, 1);
        assert_eq!(fs.getattr(node, None).unwrap_err().raw(), libc::ESTALE);
        fs.forget(1, 100);
        assert_eq!(fs.nodes.len(), 1);
        assert_ne!(fs.lookup(1, c"dir").unwrap().node, node);
    }

    #[test]
    fn listing_with_entries_counts_exactly_what_it_returns() {
        let (source, fs) = Source::new("plus");
        (0..20).for_each(|n| drop(std::fs::File::create(source.0.join(format!("f{n}"))).unwrap()));
        let dir = fs.opendir(1).unwrap().handle;
        let reply = |_: &Entry| Default::default();
        let (mut offset, mut listed) = (0, 0);
        loop {
            let mut space = [0u8; 600];
            let mut out = DirBuffer::new(&mut space, Some(&reply));
            fs.readdir(1, dir, offset, &mut out).unwrap();
            listed += out.used() / 160;
            match out.last() {
                Some(last) => offset = last,
                None => break,
            }
        }
        fs.releasedir(1, dir).unwrap();
        assert_eq!(listed, 23);
        assert_eq!(fs.nodes.len(), 22);
    }
}
