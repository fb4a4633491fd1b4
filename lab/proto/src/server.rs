//! What the FUSE server is asked to be, what it says it became, and its telemetry.
//!
//! The server is a role of the guest binary and a process of its own. It reads one line of
//! JSON ([`ServerSpec`]) from standard input, answers with one [`ServerLine`], and from then
//! on answers each [`ServerAsk`] line with one [`ServerLine`]. End of input means: unmount.

use serde::{Deserialize, Serialize};

/// How requests reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// FUSE over io_uring.
    Ring,
    /// read and write on /dev/fuse.
    Classic,
}

impl Transport {
    /// The name used in scenarios, reports and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Ring => "ring",
            Transport::Classic => "classic",
        }
    }
}

/// Which file system the server offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum FileSystem {
    /// In memory, deterministic inode numbers from 2 upward.
    Memory,
    /// A directory of the guest.
    Passthrough {
        /// Absolute path of the directory served.
        source: String,
    },
}

/// A misbehaviour that the server is told to show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum ServerFault {
    /// Never answer the n-th request (from 1) of an opcode.
    DropReply {
        /// Opcode name as in the kernel's header without prefix, lower case (`lookup`, `read`).
        opcode: String,
        /// Which one.
        nth: u64,
    },
}

/// Which CPUs have a queue of the ring. Fewer than all of them need a kernel that offers it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Queues {
    /// Every possible one.
    #[default]
    All,
    /// The first so many.
    First {
        /// How many, at least 1.
        count: u32,
    },
    /// Those named, ascending.
    Of {
        /// CPU numbers, which are queue ids.
        cpus: Vec<u32>,
    },
    /// The first of each NUMA node.
    PerNode,
}

/// Everything that decides how a server starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSpec {
    /// Name of the server within the case, also the FUSE `fsname`.
    pub name: String,
    /// Absolute mount point; made when missing.
    pub mount_point: String,
    /// Transport asked for.
    pub transport: Transport,
    /// Whether /dev/fuse may serve when the ring cannot be had. Off: that is an error.
    pub fallback: bool,
    /// File system served.
    pub file_system: FileSystem,
    /// Queues of the ring.
    #[serde(default)]
    pub queues: Queues,
    /// Ring entries per queue, 1 to 4096; threads in classic mode come from the CPUs.
    pub depth: u32,
    /// Largest write and payload, bytes.
    pub max_write: u32,
    /// FUSE_INIT max_background.
    pub max_background: u16,
    /// Entry and attribute cache time, milliseconds; 0 makes every stat a request.
    pub cache_ms: u64,
    /// Answer open and create with FOPEN_DIRECT_IO.
    pub direct_io: bool,
    /// Ask for FUSE_WRITEBACK_CACHE.
    pub writeback: bool,
    /// Planted misbehaviour.
    pub fault: Option<ServerFault>,
}

impl ServerSpec {
    /// The default depth, entries per queue.
    pub const DEPTH: u32 = 8;
    /// The default payload, bytes.
    pub const MAX_WRITE: u32 = 1 << 20;
}

/// What the server became, told once when the mount answers requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerReport {
    /// Server name from the spec.
    pub name: String,
    /// Mount point from the spec.
    pub mount_point: String,
    /// Process id in the guest.
    pub pid: u32,
    /// Transport in use.
    pub transport: Transport,
    /// Why it is not the one asked for, when fallback was allowed and taken.
    pub fallback_reason: Option<String>,
    /// Registered queues (ring) or reader threads (classic).
    pub queues: u32,
    /// Entries per queue; 1 in classic mode.
    pub depth: u32,
    /// Protocol version of the kernel, e.g. 46 for 7.46.
    pub kernel_minor: u32,
    /// Protocol minor agreed on.
    pub minor: u32,
    /// INIT flags the kernel offered (low word, then flags2 in the high word).
    pub offered_flags: u64,
    /// INIT flags the server answered with.
    pub accepted_flags: u64,
    /// Agreed max_write, bytes.
    pub max_write: u32,
    /// fusectl connection number: the minor of the mount's device.
    pub connection: u32,
}

/// Counts of one queue, or of one reader thread in classic mode.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueStats {
    /// Queue id.
    pub queue: u32,
    /// Requests that arrived, by opcode name, sorted by name.
    pub arrived: Vec<(String, u64)>,
    /// Replies committed.
    pub replied: u64,
    /// Requests in the server at this moment.
    pub in_flight: u32,
}

/// One request as the server saw it arrive. The last [`ServerStats::MAX_ARRIVALS`] are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    /// Request id, as in the kernel's tracepoints.
    pub unique: u64,
    /// Opcode name.
    pub opcode: String,
    /// Queue it arrived on.
    pub queue: u32,
    /// CPU that ran the server thread.
    pub server_cpu: u32,
    /// Caller's thread id as the kernel told it.
    pub pid: u32,
}

/// Telemetry, readable at any time, also while a mount hangs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerStats {
    /// Server name.
    pub name: String,
    /// fusectl connection number.
    pub connection: u32,
    /// Per queue, ascending.
    pub queues: Vec<QueueStats>,
    /// Requests read from /dev/fuse by opcode name; in ring mode after the ring was ready.
    pub dev_fuse: Vec<(String, u64)>,
    /// The latest arrivals, oldest first.
    pub arrivals: Vec<Arrival>,
    /// Arrivals no longer kept.
    pub arrivals_lost: u64,
}

impl ServerStats {
    /// Bound of [`ServerStats::arrivals`].
    pub const MAX_ARRIVALS: usize = 4096;
}

/// What the agent may ask a running server, one JSON line each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerAsk {
    /// Telemetry since the start or the last reset.
    Stats,
    /// Set all counts and arrivals to zero.
    Reset,
    /// Unmount and exit.
    Stop,
}

/// What a server says, one JSON line each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerLine {
    /// Mounted and answering.
    Ready(ServerReport),
    /// Could not start; the process exits after this line.
    Failed {
        /// Whether the reason is the transport asked for.
        transport: bool,
        /// One line.
        text: String,
    },
    /// To [`ServerAsk::Stats`].
    Stats(ServerStats),
    /// To [`ServerAsk::Reset`].
    Done,
    /// To [`ServerAsk::Stop`], after the unmount.
    Stopped,
}
