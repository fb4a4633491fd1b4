//! Fixed parts of replies.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::layout;

/// Attributes of a node.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Attr {
    pub ino: u64,
    pub size: u64,
    pub blocks: u64,
    pub atime: u64,
    pub mtime: u64,
    pub ctime: u64,
    pub atimensec: u32,
    pub mtimensec: u32,
    pub ctimensec: u32,
    pub mode: u32,
    pub nlink: u32,
    pub uid: u32,
    pub gid: u32,
    pub rdev: u32,
    pub blksize: u32,
    pub flags: u32,
}
layout!(Attr, 88, size @ 8, blocks @ 16, atime @ 24, mtime @ 32, ctime @ 40, atimensec @ 48, mtimensec @ 52, ctimensec @ 56, mode @ 60, nlink @ 64, uid @ 68, gid @ 72, rdev @ 76, blksize @ 80, flags @ 84);

/// A name looked up or made.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct EntryOut {
    pub nodeid: u64,
    pub generation: u64,
    pub entry_valid: u64,
    pub attr_valid: u64,
    pub entry_valid_nsec: u32,
    pub attr_valid_nsec: u32,
    pub attr: Attr,
}
layout!(EntryOut, 128, generation @ 8, entry_valid @ 16, attr_valid @ 24, entry_valid_nsec @ 32, attr_valid_nsec @ 36, attr @ 40);

/// Attributes with their cache time.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct AttrOut {
    pub attr_valid: u64,
    pub attr_valid_nsec: u32,
    pub dummy: u32,
    pub attr: Attr,
}
layout!(AttrOut, 104, attr_valid_nsec @ 8, dummy @ 12, attr @ 16);

/// A handle.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct OpenOut {
    pub fh: u64,
    pub open_flags: u32,
    pub backing_id: i32,
}
layout!(OpenOut, 16, open_flags @ 8, backing_id @ 12);

/// Bytes written.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct WriteOut {
    pub size: u32,
    pub padding: u32,
}
layout!(WriteOut, 8, padding @ 4);

/// Figures of the file system.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct KStatfs {
    pub blocks: u64,
    pub bfree: u64,
    pub bavail: u64,
    pub files: u64,
    pub ffree: u64,
    pub bsize: u32,
    pub namelen: u32,
    pub frsize: u32,
    pub padding: u32,
    pub spare: [u32; 6],
}
layout!(KStatfs, 80, bfree @ 8, bavail @ 16, files @ 24, ffree @ 32, bsize @ 40, namelen @ 44, frsize @ 48, padding @ 52, spare @ 56);

/// Size of a value or a list.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct GetxattrOut {
    pub size: u32,
    pub padding: u32,
}
layout!(GetxattrOut, 8, padding @ 4);

/// What the server agrees to.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct InitOut {
    pub major: u32,
    pub minor: u32,
    pub max_readahead: u32,
    pub flags: u32,
    pub max_background: u16,
    pub congestion_threshold: u16,
    pub max_write: u32,
    pub time_gran: u32,
    pub max_pages: u16,
    pub map_alignment: u16,
    pub flags2: u32,
    pub max_stack_depth: u32,
    pub request_timeout: u16,
    pub unused: [u16; 11],
}
layout!(InitOut, 64, minor @ 4, max_readahead @ 8, flags @ 12, max_background @ 16, congestion_threshold @ 18, max_write @ 20, time_gran @ 24, max_pages @ 28, map_alignment @ 30, flags2 @ 32, max_stack_depth @ 36, request_timeout @ 40, unused @ 42);

/// The position found.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct LseekOut {
    pub offset: u64,
}
layout!(LseekOut, 8);

/// Begins a directory record; the name follows, padded to 8 bytes.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Dirent {
    pub ino: u64,
    pub off: u64,
    pub namelen: u32,
    pub kind: u32,
}
layout!(Dirent, 24, off @ 8, namelen @ 16, kind @ 20);
