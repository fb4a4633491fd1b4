//! Tests of the memory file system through its trait.

use std::ffi::CStr;

use crate::errno::Errno;
use crate::fs::{Caller, DirBuffer, Entry, FileSystem, SetAttr};

use super::Memory;

const ROOT: u64 = 1;
const BY: Caller = Caller { uid: 5, gid: 6 };

fn file(fs: &Memory, parent: u64, name: &CStr) -> u64 {
    fs.mknod(BY, parent, name, libc::S_IFREG | 0o644, 0).unwrap().node
}

fn dir(fs: &Memory, parent: u64, name: &CStr) -> u64 {
    fs.mkdir(BY, parent, name, 0o755).unwrap().node
}

fn nlink(fs: &Memory, node: u64) -> u32 {
    fs.getattr(node, None).unwrap().nlink
}

#[test]
fn inode_numbers_count_from_two_and_are_not_reused() {
    let fs = Memory::new();
    assert_eq!((file(&fs, ROOT, c"a"), dir(&fs, ROOT, c"b")), (2, 3));
    fs.unlink(ROOT, c"a").unwrap();
    fs.forget(2, 1);
    assert_eq!(file(&fs, ROOT, c"a"), 4);
    assert_eq!(fs.getattr(4, None).unwrap().uid, 5);
}

#[test]
fn an_unlinked_file_lives_while_it_is_open_or_known() {
    let fs = Memory::new();
    let node = file(&fs, ROOT, c"a");
    fs.open(node, 0).unwrap();
    fs.write(node, node, 0, b"data").unwrap();
    fs.unlink(ROOT, c"a").unwrap();
    fs.forget(node, 1);
    let mut out = [0; 8];
    assert_eq!(fs.read(node, node, 0, &mut out), Ok(4));
    fs.release(node, node).unwrap();
    assert!(fs.getattr(node, None).is_err());
}

#[test]
fn link_counts_follow_names_and_subdirectories() {
    let fs = Memory::new();
    let node = file(&fs, ROOT, c"a");
    fs.link(node, ROOT, c"b").unwrap();
    assert_eq!(nlink(&fs, node), 2);
    let top = dir(&fs, ROOT, c"top");
    let sub = dir(&fs, top, c"sub");
    assert_eq!((nlink(&fs, ROOT), nlink(&fs, top), nlink(&fs, sub)), (3, 3, 2));
    fs.rename((top, c"sub"), (ROOT, c"sub"), 0).unwrap();
    assert_eq!((nlink(&fs, ROOT), nlink(&fs, top)), (4, 2));
    assert_eq!(fs.link(sub, ROOT, c"hard").unwrap_err(), Errno::EPERM);
}

#[test]
fn rename_replaces_refuses_and_exchanges() {
    let fs = Memory::new();
    let (a, b) = (file(&fs, ROOT, c"a"), file(&fs, ROOT, c"b"));
    assert_eq!(fs.rename((ROOT, c"a"), (ROOT, c"b"), 1), Err(Errno::EEXIST));
    fs.rename((ROOT, c"a"), (ROOT, c"b"), 2).unwrap();
    assert_eq!(fs.lookup(ROOT, c"a").unwrap().node, b);
    fs.rename((ROOT, c"a"), (ROOT, c"b"), 0).unwrap();
    assert_eq!(fs.lookup(ROOT, c"b").unwrap().node, b);
    assert_eq!(fs.lookup(ROOT, c"a").unwrap_err(), Errno::ENOENT);
    assert_eq!(nlink(&fs, a), 0);
    assert_eq!(fs.rename((ROOT, c"b"), (ROOT, c"x"), 2), Err(Errno::ENOENT));
    assert_eq!(fs.rename((ROOT, c"b"), (ROOT, c"x"), 4), Err(Errno::EINVAL));
}

#[test]
fn a_directory_is_not_moved_into_itself_nor_replaced_while_full() {
    let fs = Memory::new();
    let top = dir(&fs, ROOT, c"top");
    let sub = dir(&fs, top, c"sub");
    assert_eq!(fs.rename((ROOT, c"top"), (sub, c"x"), 0), Err(Errno::EINVAL));
    assert_eq!(fs.rename((ROOT, c"top"), (top, c"sub"), 2), Err(Errno::EINVAL));
    dir(&fs, ROOT, c"other");
    assert_eq!(fs.rename((ROOT, c"other"), (ROOT, c"top"), 0), Err(Errno::ENOTEMPTY));
    file(&fs, ROOT, c"f");
    assert_eq!(fs.rename((ROOT, c"f"), (ROOT, c"top"), 0), Err(Errno::EISDIR));
    assert_eq!(fs.rename((ROOT, c"top"), (ROOT, c"f"), 0), Err(Errno::ENOTDIR));
    assert_eq!(fs.rmdir(ROOT, c"top"), Err(Errno::ENOTEMPTY));
}

#[test]
fn nothing_is_made_in_a_removed_directory() {
    let fs = Memory::new();
    let gone = dir(&fs, ROOT, c"gone");
    fs.rmdir(ROOT, c"gone").unwrap();
    assert_eq!(fs.mkdir(BY, gone, c"sub", 0o755).unwrap_err(), Errno::ENOENT);
    let node = file(&fs, ROOT, c"f");
    assert_eq!(fs.link(node, gone, c"f").unwrap_err(), Errno::ENOENT);
    assert_eq!(fs.rename((ROOT, c"f"), (gone, c"f"), 0), Err(Errno::ENOENT));
}

#[test]
fn a_listing_goes_on_where_it_stopped_though_names_went() {
    let fs = Memory::new();
    for name in [c"a", c"b", c"c", c"d"] {
        file(&fs, ROOT, name);
    }
    let list = |offset, size: usize| {
        let mut space = vec![0; size];
        let mut out = DirBuffer::new(&mut space, None);
        fs.readdir(ROOT, ROOT, offset, &mut out).unwrap();
        (out.used() / 32, out.last())
    };
    let (count, last) = list(0, 4 * 32);
    assert_eq!(count, 4);
    fs.unlink(ROOT, c"a").unwrap();
    fs.unlink(ROOT, c"c").unwrap();
    assert_eq!(list(last.unwrap(), 4 * 32).0, 1);
}

#[test]
fn entries_of_a_listing_are_lookups() {
    let fs = Memory::new();
    let node = file(&fs, ROOT, c"a");
    let reply = |_: &Entry| Default::default();
    let mut space = [0; 1000];
    fs.readdir(ROOT, ROOT, 0, &mut DirBuffer::new(&mut space, Some(&reply))).unwrap();
    fs.unlink(ROOT, c"a").unwrap();
    fs.forget(node, 1);
    assert!(fs.getattr(node, None).is_ok());
    fs.forget(node, 1);
    assert!(fs.getattr(node, None).is_err());
}

#[test]
fn extended_attributes_obey_size_and_flags() {
    let fs = Memory::new();
    let node = file(&fs, ROOT, c"a");
    assert_eq!(fs.setxattr(node, c"user.x", b"12345", 2), Err(Errno::ENODATA));
    fs.setxattr(node, c"user.x", b"12345", 1).unwrap();
    assert_eq!(fs.setxattr(node, c"user.x", b"1", 1), Err(Errno::EEXIST));
    assert_eq!(fs.getxattr(node, c"user.x", &mut []), Ok(5));
    assert_eq!(fs.getxattr(node, c"user.x", &mut [0; 4]), Err(Errno::ERANGE));
    let mut out = [0; 16];
    assert_eq!(fs.listxattr(node, &mut out), Ok(7));
    assert_eq!(&out[..7], b"user.x\0");
    fs.removexattr(node, c"user.x").unwrap();
    assert_eq!(fs.getxattr(node, c"user.x", &mut out), Err(Errno::ENODATA));
}

#[test]
fn sizes_are_set_and_ranges_punched() {
    let fs = Memory::new();
    let node = file(&fs, ROOT, c"a");
    fs.write(node, node, 0, &[9; 12288]).unwrap();
    fs.fallocate(node, node, (4096, 4096), 3).unwrap();
    assert_eq!(fs.lseek(node, node, 0, libc::SEEK_HOLE as u32), Ok(4096));
    let attr = fs.setattr(node, &SetAttr { size: Some(5), ..SetAttr::default() }).unwrap();
    assert_eq!((attr.size, attr.blocks), (5, 8));
    fs.open(node, libc::O_TRUNC as u32).unwrap();
    assert_eq!(fs.getattr(node, None).unwrap().size, 0);
}
