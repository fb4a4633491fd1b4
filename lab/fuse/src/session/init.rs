//! INIT: reading the kernel's offer and deciding the answer.

use lab_proto::server::{Queues, ServerSpec};
use thiserror::Error;
use zerocopy::FromBytes;

use crate::abi::flags::init;
use crate::abi::header::{InHeader, MAJOR, MINOR, MINOR_MIN};
use crate::abi::opcode::Opcode;
use crate::abi::reply::InitOut;
use crate::abi::request::InitIn;
use crate::sys::map::PAGE;

/// What the kernel offered.
#[derive(Debug, Clone, Copy)]
pub struct Offer {
    /// Id of the INIT request.
    pub unique: u64,
    /// Protocol minor of the kernel.
    pub minor: u32,
    /// All offered flags, `flags2` in the high word.
    pub flags: u64,
    /// Largest readahead, bytes.
    pub max_readahead: u32,
}

impl Offer {
    /// Whether the kernel offers the ring.
    pub fn has_ring(&self) -> bool {
        self.flags & init::OVER_IO_URING != 0
    }

    /// Whether the kernel can do with fewer queues than possible CPUs.
    pub fn has_fewer_queues(&self) -> bool {
        self.flags & init::URING_REDUCED_Q != 0
    }
}

/// What was agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreed {
    /// Protocol minor.
    pub minor: u32,
    /// Flags the server answered with.
    pub flags: u64,
    /// Largest write, bytes.
    pub max_write: u32,
}

/// Why the first request is not an INIT that can be answered.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum InitError {
    /// Shorter than its header or fixed part.
    #[error("init request of {0} bytes is too short")]
    Short(usize),
    /// Something else came first.
    #[error("the first request is opcode {0}, not init")]
    NotInit(u32),
    /// A protocol this server does not speak.
    #[error("kernel speaks fuse {major}.{minor}, this server needs {MAJOR}.{MINOR_MIN} or newer")]
    Version {
        /// Kernel's major.
        major: u32,
        /// Kernel's minor.
        minor: u32,
    },
}

/// Reads an INIT request.
///
/// # Errors
/// When it is short, is no INIT, or comes from a kernel too old.
pub fn parse_init(bytes: &[u8]) -> Result<Offer, InitError> {
    let (header, rest) =
        InHeader::read_from_prefix(bytes).map_err(|_| InitError::Short(bytes.len()))?;
    if header.opcode != Opcode::Init as u32 {
        return Err(InitError::NotInit(header.opcode));
    }
    // Kernels before 7.36 send 16 bytes, without flags2.
    let mut full = [0u8; size_of::<InitIn>()];
    let given = rest.len().min(full.len());
    if given < 16 {
        return Err(InitError::Short(bytes.len()));
    }
    full[..given].copy_from_slice(&rest[..given]);
    let offer = InitIn::read_from_bytes(&full).map_err(|_| InitError::Short(bytes.len()))?;
    if offer.major != MAJOR || offer.minor < MINOR_MIN {
        return Err(InitError::Version { major: offer.major, minor: offer.minor });
    }
    let extended = u64::from(offer.flags) & init::INIT_EXT != 0;
    let high = if extended { u64::from(offer.flags2) << 32 } else { 0 };
    Ok(Offer {
        unique: header.unique,
        minor: offer.minor,
        flags: u64::from(offer.flags) | high,
        max_readahead: offer.max_readahead,
    })
}

/// Bytes a payload buffer must have for a spec: what a reply to INIT made here lets the
/// kernel ask for.
pub fn payload_len(spec: &ServerSpec) -> usize {
    (max_write(spec) as usize).next_multiple_of(PAGE).max(2 * PAGE)
}

fn max_write(spec: &ServerSpec) -> u32 {
    spec.max_write.max(PAGE as u32)
}

/// The answer to an offer. `ring` claims the ring, which the caller must be able to serve.
pub fn answer_init(offer: &Offer, spec: &ServerSpec, ring: bool) -> (Agreed, InitOut) {
    let max_write = max_write(spec);
    let flags = offer.flags & wanted(spec, ring);
    let agreed = Agreed { minor: offer.minor.min(MINOR), flags, max_write };
    let max_pages = (max_write as usize).div_ceil(PAGE).min(usize::from(u16::MAX)) as u16;
    let reply = InitOut {
        major: MAJOR,
        minor: agreed.minor,
        max_readahead: offer.max_readahead,
        flags: flags as u32,
        flags2: (flags >> 32) as u32,
        max_background: spec.max_background,
        congestion_threshold: (u32::from(spec.max_background) * 3 / 4) as u16,
        max_write,
        time_gran: 1,
        max_pages,
        ..InitOut::default()
    };
    (agreed, reply)
}

fn wanted(spec: &ServerSpec, ring: bool) -> u64 {
    let mut wanted = init::ASYNC_READ
        | init::ATOMIC_O_TRUNC
        | init::BIG_WRITES
        | init::DO_READDIRPLUS
        | init::READDIRPLUS_AUTO
        | init::ASYNC_DIO
        | init::PARALLEL_DIROPS
        | init::ABORT_ERROR
        | init::MAX_PAGES
        | init::SETXATTR_EXT
        | init::INIT_EXT;
    // With the writeback cache the kernel's size and times lead; else the server's do.
    wanted |= if spec.writeback { init::WRITEBACK_CACHE } else { init::AUTO_INVAL_DATA };
    if spec.cache_ms > 0 {
        wanted |= init::CACHE_SYMLINKS;
    }
    if spec.direct_io {
        wanted |= init::DIRECT_IO_ALLOW_MMAP;
    }
    if ring {
        wanted |= init::OVER_IO_URING;
        if spec.queues != Queues::All {
            wanted |= init::URING_REDUCED_Q;
        }
    }
    wanted
}

#[cfg(test)]
pub(super) mod tests {
    use lab_proto::server::{FileSystem, Queues, Transport};
    use zerocopy::IntoBytes;

    use super::*;

    pub(in crate::session) fn spec() -> ServerSpec {
        ServerSpec {
            name: "t".into(),
            mount_point: "/t".into(),
            transport: Transport::Ring,
            fallback: false,
            file_system: FileSystem::Memory,
            depth: 8,
            max_write: 1 << 20,
            max_background: 64,
            cache_ms: 1000,
            direct_io: false,
            writeback: false,
            queues: Queues::All,
            fault: None,
        }
    }

    fn init(major: u32, minor: u32, flags: u64) -> Vec<u8> {
        let header = InHeader { opcode: 26, unique: 2, ..InHeader::default() };
        let body = InitIn {
            major,
            minor,
            flags: flags as u32,
            flags2: (flags >> 32) as u32,
            ..InitIn::default()
        };
        [header.as_bytes(), body.as_bytes()].concat()
    }

    #[test]
    fn the_high_word_counts_only_with_init_ext() {
        let ring = init::OVER_IO_URING;
        assert!(parse_init(&init(7, 46, ring | init::INIT_EXT)).unwrap().has_ring());
        assert!(!parse_init(&init(7, 46, ring)).unwrap().has_ring());
    }

    #[test]
    fn short_foreign_and_old_requests_are_refused() {
        assert_eq!(parse_init(&[0; 39]).unwrap_err(), InitError::Short(39));
        assert_eq!(parse_init(&init(7, 46, 0)[..50]).unwrap_err(), InitError::Short(50));
        assert_eq!(parse_init(&[0; 104]).unwrap_err(), InitError::NotInit(0));
        assert!(matches!(parse_init(&init(7, 12, 0)), Err(InitError::Version { .. })));
        assert!(parse_init(&init(7, 23, 0)[..56]).is_ok());
    }

    #[test]
    fn only_offered_flags_are_answered_and_the_ring_only_when_claimed() {
        let all = Offer { unique: 2, minor: 99, flags: u64::MAX, max_readahead: 0 };
        let (agreed, reply) = answer_init(&all, &spec(), true);
        assert_eq!(agreed.minor, MINOR);
        assert_ne!(reply.flags2 & (1 << 9), 0);
        assert_ne!(u64::from(reply.flags) & init::INIT_EXT, 0);
        let (agreed, _) = answer_init(&all, &spec(), false);
        assert_eq!(agreed.flags & init::OVER_IO_URING, 0);
        let none = Offer { flags: 0, ..all };
        assert_eq!(answer_init(&none, &spec(), true).0.flags, 0);
    }

    #[test]
    fn sizes_follow_the_spec() {
        let offer = Offer { unique: 2, minor: 46, flags: u64::MAX, max_readahead: 0 };
        let small = ServerSpec { max_write: 10_000, ..spec() };
        let (_, reply) = answer_init(&offer, &small, false);
        assert_eq!((reply.max_write, reply.max_pages), (10_000, 3));
        assert_eq!(payload_len(&small), 3 * PAGE);
        assert_eq!(payload_len(&ServerSpec { max_write: 1, ..spec() }), 2 * PAGE);
    }
}
