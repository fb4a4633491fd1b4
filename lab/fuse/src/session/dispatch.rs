//! From opcode to file-system call and back into the reply's structure.

use std::ffi::CStr;

use crate::abi::flags::{FSYNC_DATA_ONLY, GETATTR_FH, setattr};
use crate::abi::opcode::Opcode;
use crate::abi::reply::{EntryOut, GetxattrOut, LseekOut, OpenOut, WriteOut};
use crate::abi::request as req;
use crate::errno::{Errno, Result};
use crate::fs::{Caller, DirBuffer, Entry, SetAttr, SetTime};

use super::handler::Handler;
use super::request::Request;

/// Longest attribute name, with its zero byte.
const XATTR_NAME_MAX: usize = 256;

impl Handler {
    /// Calls the file system for a request with a reply; the length of the reply's payload.
    pub(super) fn dispatch(&self, opcode: Opcode, r: &mut Request<'_>) -> Result<usize> {
        let node = r.header.nodeid;
        match opcode {
            Opcode::Read => self.read(r),
            Opcode::Write => self.write(r),
            Opcode::Lookup => {
                let found = self.fs.lookup(node, r.name()?);
                self.put_entry(r, found)
            }
            Opcode::Getattr => self.getattr(r),
            Opcode::Setattr => self.setattr(r),
            Opcode::Readlink => self.fs.readlink(node, r.room(libc::PATH_MAX as u32 - 1)),
            Opcode::Open | Opcode::Opendir => self.open(opcode, r),
            Opcode::Readdir | Opcode::Readdirplus => self.readdir(opcode, r),
            Opcode::Statfs => {
                let figures = self.fs.statfs(node)?;
                Ok(r.put_at(0, &figures))
            }
            Opcode::Access => {
                self.fs.access(caller(r), node, r.fixed::<req::AccessIn>()?.mask).map(|()| 0)
            }
            Opcode::Symlink
            | Opcode::Mknod
            | Opcode::Mkdir
            | Opcode::Link
            | Opcode::Create
            | Opcode::Unlink
            | Opcode::Rmdir
            | Opcode::Rename
            | Opcode::Rename2 => self.dispatch_names(opcode, r),
            Opcode::Release
            | Opcode::Releasedir
            | Opcode::Flush
            | Opcode::Fsync
            | Opcode::Fsyncdir
            | Opcode::Fallocate
            | Opcode::Lseek => self.dispatch_handles(opcode, r),
            Opcode::Getxattr | Opcode::Setxattr | Opcode::Listxattr | Opcode::Removexattr => {
                self.dispatch_xattrs(opcode, r)
            }
            Opcode::Destroy => Ok(0),
            _ => Err(Errno::ENOSYS),
        }
    }

    /// Requests that change directories.
    fn dispatch_names(&self, opcode: Opcode, r: &mut Request<'_>) -> Result<usize> {
        let node = r.header.nodeid;
        let made = match opcode {
            Opcode::Symlink => {
                let (name, target) = r.names()?;
                self.fs.symlink(caller(r), node, name, target)
            }
            Opcode::Mknod => {
                let arg: req::MknodIn = r.fixed()?;
                self.fs.mknod(caller(r), node, r.name()?, arg.mode, arg.rdev)
            }
            Opcode::Mkdir => {
                let arg: req::MkdirIn = r.fixed()?;
                self.fs.mkdir(caller(r), node, r.name()?, arg.mode)
            }
            Opcode::Link => self.fs.link(r.fixed::<req::LinkIn>()?.oldnodeid, node, r.name()?),
            Opcode::Create => return self.create(r),
            Opcode::Unlink => return self.fs.unlink(node, r.name()?).map(|()| 0),
            Opcode::Rmdir => return self.fs.rmdir(node, r.name()?).map(|()| 0),
            Opcode::Rename => return self.rename(r, r.fixed::<req::RenameIn>()?.newdir, 0),
            _ => {
                let arg: req::Rename2In = r.fixed()?;
                return self.rename(r, arg.newdir, arg.flags);
            }
        };
        self.put_entry(r, made)
    }

    /// Requests on open handles but for reading and writing.
    fn dispatch_handles(&self, opcode: Opcode, r: &mut Request<'_>) -> Result<usize> {
        let node = r.header.nodeid;
        let done = match opcode {
            Opcode::Release => self.fs.release(node, r.fixed::<req::ReleaseIn>()?.fh),
            Opcode::Releasedir => self.fs.releasedir(node, r.fixed::<req::ReleaseIn>()?.fh),
            Opcode::Flush => self.fs.flush(node, r.fixed::<req::FlushIn>()?.fh),
            Opcode::Fsync | Opcode::Fsyncdir => {
                let arg: req::FsyncIn = r.fixed()?;
                let data_only = arg.fsync_flags & FSYNC_DATA_ONLY != 0;
                if opcode == Opcode::Fsync {
                    self.fs.fsync(node, arg.fh, data_only)
                } else {
                    self.fs.fsyncdir(node, arg.fh, data_only)
                }
            }
            Opcode::Fallocate => {
                let arg: req::FallocateIn = r.fixed()?;
                self.fs.fallocate(node, arg.fh, (arg.offset, arg.length), arg.mode)
            }
            _ => {
                let arg: req::LseekIn = r.fixed()?;
                let offset = self.fs.lseek(node, arg.fh, arg.offset, arg.whence)?;
                return Ok(r.put_at(0, &LseekOut { offset }));
            }
        };
        done.map(|()| 0)
    }

    fn dispatch_xattrs(&self, opcode: Opcode, r: &mut Request<'_>) -> Result<usize> {
        let node = r.header.nodeid;
        match opcode {
            Opcode::Setxattr => {
                let arg: req::SetxattrIn = r.fixed()?;
                let (name, value) = r.name_and_rest()?;
                let value = value.get(..arg.size as usize).ok_or(Errno::EINVAL)?;
                self.fs.setxattr(node, name, value, arg.flags).map(|()| 0)
            }
            Opcode::Removexattr => self.fs.removexattr(node, r.name()?).map(|()| 0),
            Opcode::Listxattr => {
                let size = r.fixed::<req::GetxattrIn>()?.size;
                let len = self.fs.listxattr(node, r.room(size))?;
                Ok(put_size(r, size, len))
            }
            _ => {
                let size = r.fixed::<req::GetxattrIn>()?.size;
                // The value goes where the name is.
                let mut copy = [0u8; XATTR_NAME_MAX];
                let name = r.name()?.to_bytes_with_nul();
                copy.get_mut(..name.len()).ok_or(Errno::ERANGE)?.copy_from_slice(name);
                let name = CStr::from_bytes_until_nul(&copy).map_err(|_| Errno::EINVAL)?;
                let len = self.fs.getxattr(node, name, r.room(size))?;
                Ok(put_size(r, size, len))
            }
        }
    }

    fn read(&self, r: &mut Request<'_>) -> Result<usize> {
        let arg: req::ReadIn = r.fixed()?;
        self.fs.read(r.header.nodeid, arg.fh, arg.offset, r.room(arg.size))
    }

    fn write(&self, r: &mut Request<'_>) -> Result<usize> {
        let arg: req::WriteIn = r.fixed()?;
        let data = r.data()?.get(..arg.size as usize).ok_or(Errno::EINVAL)?;
        let size = self.fs.write(r.header.nodeid, arg.fh, arg.offset, data)? as u32;
        Ok(r.put_at(0, &WriteOut { size, padding: 0 }))
    }

    fn getattr(&self, r: &mut Request<'_>) -> Result<usize> {
        let arg: req::GetattrIn = r.fixed()?;
        let handle = (arg.getattr_flags & GETATTR_FH != 0).then_some(arg.fh);
        let attr = self.fs.getattr(r.header.nodeid, handle)?;
        Ok(r.put_at(0, &self.attr_out(attr)))
    }

    fn setattr(&self, r: &mut Request<'_>) -> Result<usize> {
        let set = attributes(&r.fixed()?);
        let attr = self.fs.setattr(r.header.nodeid, &set)?;
        Ok(r.put_at(0, &self.attr_out(attr)))
    }

    fn open(&self, opcode: Opcode, r: &mut Request<'_>) -> Result<usize> {
        let arg: req::OpenIn = r.fixed()?;
        if opcode == Opcode::Open {
            let opened = self.fs.open(r.header.nodeid, arg.flags)?;
            return Ok(r.put_at(0, &self.open_out(opened)));
        }
        let opened = self.fs.opendir(r.header.nodeid)?;
        Ok(r.put_at(0, &OpenOut { fh: opened.handle, ..OpenOut::default() }))
    }

    fn create(&self, r: &mut Request<'_>) -> Result<usize> {
        let arg: req::CreateIn = r.fixed()?;
        let node = r.header.nodeid;
        let (entry, opened) = self.fs.create(caller(r), node, r.name()?, arg.mode, arg.flags)?;
        let end = r.put_at(0, &self.entry_out(&entry));
        Ok(r.put_at(end, &self.open_out(opened)))
    }

    fn readdir(&self, opcode: Opcode, r: &mut Request<'_>) -> Result<usize> {
        let arg: req::ReadIn = r.fixed()?;
        let node = r.header.nodeid;
        let reply = |entry: &Entry| -> EntryOut { self.entry_out(entry) };
        let plus: Option<&dyn Fn(&Entry) -> EntryOut> =
            if opcode == Opcode::Readdirplus { Some(&reply) } else { None };
        let mut out = DirBuffer::new(r.room(arg.size), plus);
        self.fs.readdir(node, arg.fh, arg.offset, &mut out)?;
        Ok(out.used())
    }

    fn rename(&self, r: &Request<'_>, to: u64, flags: u32) -> Result<usize> {
        let (old, new) = r.names()?;
        self.fs.rename((r.header.nodeid, old), (to, new), flags).map(|()| 0)
    }

    fn put_entry(&self, r: &mut Request<'_>, entry: Result<Entry>) -> Result<usize> {
        Ok(r.put_at(0, &self.entry_out(&entry?)))
    }
}

fn caller(r: &Request<'_>) -> Caller {
    Caller { uid: r.header.uid, gid: r.header.gid }
}

/// Asked with size 0, the length itself is the reply.
fn put_size(r: &mut Request<'_>, size: u32, len: usize) -> usize {
    if size > 0 {
        return len;
    }
    r.put_at(0, &GetxattrOut { size: len as u32, padding: 0 })
}

fn attributes(arg: &req::SetattrIn) -> SetAttr {
    let has = |bit: u32| arg.valid & bit != 0;
    let time = |bit, now, seconds: u64, nanos| match (has(now), has(bit)) {
        (true, _) => Some(SetTime::Now),
        (false, true) => Some(SetTime::At(seconds as i64, nanos)),
        (false, false) => None,
    };
    SetAttr {
        mode: has(setattr::MODE).then_some(arg.mode & 0o7777),
        uid: has(setattr::UID).then_some(arg.uid),
        gid: has(setattr::GID).then_some(arg.gid),
        size: has(setattr::SIZE).then_some(arg.size),
        atime: time(setattr::ATIME, setattr::ATIME_NOW, arg.atime, arg.atimensec),
        mtime: time(setattr::MTIME, setattr::MTIME_NOW, arg.mtime, arg.mtimensec),
        handle: has(setattr::FH).then_some(arg.fh),
    }
}
