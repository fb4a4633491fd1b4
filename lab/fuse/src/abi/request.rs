//! Fixed parts of requests, by opcode.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::layout;

/// What the kernel offers.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct InitIn {
    pub major: u32,
    pub minor: u32,
    pub max_readahead: u32,
    pub flags: u32,
    pub flags2: u32,
    pub unused: [u32; 11],
}
layout!(InitIn, 64, minor @ 4, max_readahead @ 8, flags @ 12, flags2 @ 16, unused @ 20);

/// Lookups given back for one node.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ForgetIn {
    pub nlookup: u64,
}
layout!(ForgetIn, 8);

/// One element of a batch of forgets.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ForgetOne {
    pub nodeid: u64,
    pub nlookup: u64,
}
layout!(ForgetOne, 16, nlookup @ 8);

/// Begins a batch of forgets.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct BatchForgetIn {
    pub count: u32,
    pub dummy: u32,
}
layout!(BatchForgetIn, 8, dummy @ 4);

/// Attributes by node or handle.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct GetattrIn {
    pub getattr_flags: u32,
    pub dummy: u32,
    pub fh: u64,
}
layout!(GetattrIn, 16, dummy @ 4, fh @ 8);

/// Attributes to set; `valid` says which.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SetattrIn {
    pub valid: u32,
    pub padding: u32,
    pub fh: u64,
    pub size: u64,
    pub lock_owner: u64,
    pub atime: u64,
    pub mtime: u64,
    pub ctime: u64,
    pub atimensec: u32,
    pub mtimensec: u32,
    pub ctimensec: u32,
    pub mode: u32,
    pub unused4: u32,
    pub uid: u32,
    pub gid: u32,
    pub unused5: u32,
}
layout!(SetattrIn, 88, padding @ 4, fh @ 8, size @ 16, lock_owner @ 24, atime @ 32, mtime @ 40, ctime @ 48, atimensec @ 56, mtimensec @ 60, ctimensec @ 64, mode @ 68, unused4 @ 72, uid @ 76, gid @ 80, unused5 @ 84);

/// A node of any kind; its name follows.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MknodIn {
    pub mode: u32,
    pub rdev: u32,
    pub umask: u32,
    pub padding: u32,
}
layout!(MknodIn, 16, rdev @ 4, umask @ 8, padding @ 12);

/// A directory; its name follows.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MkdirIn {
    pub mode: u32,
    pub umask: u32,
}
layout!(MkdirIn, 8, umask @ 4);

/// Both names follow.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RenameIn {
    pub newdir: u64,
}
layout!(RenameIn, 8);

/// With flags; both names follow.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Rename2In {
    pub newdir: u64,
    pub flags: u32,
    pub padding: u32,
}
layout!(Rename2In, 16, flags @ 8, padding @ 12);

/// The new name follows.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct LinkIn {
    pub oldnodeid: u64,
}
layout!(LinkIn, 8);

/// For files and directories.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct OpenIn {
    pub flags: u32,
    pub open_flags: u32,
}
layout!(OpenIn, 8, open_flags @ 4);

/// Create and open; the name follows.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CreateIn {
    pub flags: u32,
    pub mode: u32,
    pub umask: u32,
    pub open_flags: u32,
}
layout!(CreateIn, 16, mode @ 4, umask @ 8, open_flags @ 12);

/// For files and directories.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ReadIn {
    pub fh: u64,
    pub offset: u64,
    pub size: u32,
    pub read_flags: u32,
    pub lock_owner: u64,
    pub flags: u32,
    pub padding: u32,
}
layout!(ReadIn, 40, offset @ 8, size @ 16, read_flags @ 20, lock_owner @ 24, flags @ 32, padding @ 36);

/// The data follows.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct WriteIn {
    pub fh: u64,
    pub offset: u64,
    pub size: u32,
    pub write_flags: u32,
    pub lock_owner: u64,
    pub flags: u32,
    pub padding: u32,
}
layout!(WriteIn, 40, offset @ 8, size @ 16, write_flags @ 20, lock_owner @ 24, flags @ 32, padding @ 36);

/// For files and directories.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ReleaseIn {
    pub fh: u64,
    pub flags: u32,
    pub release_flags: u32,
    pub lock_owner: u64,
}
layout!(ReleaseIn, 24, flags @ 8, release_flags @ 12, lock_owner @ 16);

/// Sent at each close.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FlushIn {
    pub fh: u64,
    pub unused: u32,
    pub padding: u32,
    pub lock_owner: u64,
}
layout!(FlushIn, 24, unused @ 8, padding @ 12, lock_owner @ 16);

/// For files and directories.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FsyncIn {
    pub fh: u64,
    pub fsync_flags: u32,
    pub padding: u32,
}
layout!(FsyncIn, 16, fsync_flags @ 8, padding @ 12);

/// Extended form; name and value follow.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SetxattrIn {
    pub size: u32,
    pub flags: u32,
    pub setxattr_flags: u32,
    pub padding: u32,
}
layout!(SetxattrIn, 16, flags @ 4, setxattr_flags @ 8, padding @ 12);

/// Also for listing; size 0 asks for the size.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct GetxattrIn {
    pub size: u32,
    pub padding: u32,
}
layout!(GetxattrIn, 8, padding @ 4);

/// A mask as in access(2).
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct AccessIn {
    pub mask: u32,
    pub padding: u32,
}
layout!(AccessIn, 8, padding @ 4);

/// The request that a signal interrupted.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct InterruptIn {
    pub unique: u64,
}
layout!(InterruptIn, 8);

/// A range and a mode as in fallocate(2).
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FallocateIn {
    pub fh: u64,
    pub offset: u64,
    pub length: u64,
    pub mode: u32,
    pub padding: u32,
}
layout!(FallocateIn, 32, offset @ 8, length @ 16, mode @ 24, padding @ 28);

/// For SEEK_DATA and SEEK_HOLE.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct LseekIn {
    pub fh: u64,
    pub offset: u64,
    pub whence: u32,
    pub padding: u32,
}
layout!(LseekIn, 24, offset @ 8, whence @ 16, padding @ 20);
