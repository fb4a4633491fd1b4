//! Headers of requests and replies on both transports, and the ring's commands.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::layout;

/// Major protocol version.
pub const MAJOR: u32 = 7;
/// Newest minor protocol version known here.
pub const MINOR: u32 = 46;
/// The oldest kernel minor whose structures all have the sizes used here.
pub const MINOR_MIN: u32 = 23;
/// Node id of the root directory.
pub const ROOT: u64 = 1;

/// Begins each request.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct InHeader {
    pub len: u32,
    pub opcode: u32,
    pub unique: u64,
    pub nodeid: u64,
    pub uid: u32,
    pub gid: u32,
    pub pid: u32,
    pub total_extlen: u16,
    pub padding: u16,
}
layout!(InHeader, 40, opcode @ 4, unique @ 8, nodeid @ 16, uid @ 24, pid @ 32, total_extlen @ 36);

/// Begins each reply.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct OutHeader {
    pub len: u32,
    pub error: i32,
    pub unique: u64,
}
layout!(OutHeader, 16, error @ 4, unique @ 8);

/// The ring's own part of an entry's header.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct EntryInOut {
    pub flags: u64,
    pub commit_id: u64,
    pub payload_sz: u32,
    pub offset: u32,
    pub reserved: u64,
}
layout!(EntryInOut, 32, commit_id @ 8, payload_sz @ 16, offset @ 20, reserved @ 24);

/// Bytes of the area for an opcode's fixed part.
pub const OP_AREA: usize = 128;

/// Header buffer of one ring entry.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RingHeader {
    pub in_out: [u8; 128],
    pub op: [u8; OP_AREA],
    pub entry: EntryInOut,
}
layout!(RingHeader, 288, op @ 128, entry @ 256);

/// `cmd_op`: give an entry to the kernel for the first time.
pub const CMD_REGISTER: u32 = 1;
/// `cmd_op`: reply, and take the next request into the same entry.
pub const CMD_COMMIT_AND_FETCH: u32 = 2;

/// Command area of the 128-byte SQE. Kernels before 7.46 read the first 24 bytes.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RingCommand {
    pub flags: u64,
    pub commit_id: u64,
    pub qid: u16,
    pub padding: [u8; 6],
    pub bufpool_addr: u64,
    pub bufpool_len: u32,
    pub bufpool_reserved: u32,
}
layout!(RingCommand, 40, commit_id @ 8, qid @ 16, bufpool_addr @ 24, bufpool_len @ 32);
