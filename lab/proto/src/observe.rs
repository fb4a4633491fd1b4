//! What the guest saw. Observations only: the host judges.

use serde::{Deserialize, Serialize};

use crate::server::{ServerReport, ServerStats};

/// What one step saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(clippy::large_enum_variant)] // one value per step, never stored in bulk
pub enum Observation {
    /// A server is up.
    Served(ServeObservation),
    /// A tmpfs is mounted.
    Mounted,
    /// A mount is gone.
    Unmounted(UnmountObservation),
    /// Results of the tree of operations.
    Tree(TreeObservation),
    /// Where requests arrived.
    Placed(PlaceObservation),
    /// How a teardown went.
    TornDown(TeardownObservation),
    /// fio ran.
    Fio(FioObservation),
    /// A sabotage step that left the agent alive.
    Sabotaged,
}

/// A server, by its own word and by the kernel's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServeObservation {
    /// What the server says.
    pub report: ServerReport,
    /// io_uring instances among the server's open files, from /proc.
    pub uring_fds: u32,
    /// `/sys/module/fuse/parameters/enable_uring`, absent when the kernel has no such parameter.
    pub enable_uring: Option<bool>,
    /// Possible CPUs of the guest.
    pub possible_cpus: u32,
}

/// The end of a mount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnmountObservation {
    /// Telemetry at the end; absent for a mount without a server of ours.
    pub stats: Option<ServerStats>,
    /// Exit status of the server: `0`, or `signal N`; absent without a server.
    pub server_exit: Option<String>,
    /// Whether the fusectl directory is gone.
    pub connection_gone: bool,
}

/// One line per operation: name and result, without addresses, times or device numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeObservation {
    /// At most 4096 lines of at most 200 bytes.
    pub lines: Vec<String>,
}

/// Where the CPU of a submission was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuSource {
    /// Tracepoint `fuse_request_send`, matched by the request's unique id.
    Tracepoint,
    /// The kernel does not trace: the CPU that the client was pinned to.
    Pinned,
}

/// One cell of the placement matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PlaceCell {
    /// CPU that submitted.
    pub cpu: u32,
    /// Queue the request arrived on.
    pub queue: u32,
    /// Requests.
    pub count: u32,
}

/// Where requests arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceObservation {
    /// Where `PlaceCell::cpu` comes from.
    pub cpu_source: CpuSource,
    /// CPUs that had a client, ascending.
    pub client_cpus: Vec<u32>,
    /// Requests sent by each client.
    pub requests: u32,
    /// Non-zero cells, sorted.
    pub cells: Vec<PlaceCell>,
    /// Traced requests of the connection that the server never saw.
    pub traced_not_arrived: u32,
    /// Arrivals that the kernel did not trace; 0 where it does not trace at all.
    pub arrived_not_traced: u32,
    /// Client calls that failed, as `cpu N: errno name`.
    pub errors: Vec<String>,
    /// Telemetry of the step.
    pub stats: ServerStats,
}

/// One client of a teardown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientEnd {
    /// Thread id.
    pub tid: u32,
    /// CPU it was pinned to.
    pub cpu: u32,
    /// Calls that succeeded before the ending.
    pub calls: u64,
    /// Whether its last call returned within the limit.
    pub returned: bool,
    /// errno name of the last call, `ok`, or empty when it never returned.
    pub last: String,
    /// From the ending to the return of the last call, milliseconds.
    pub wait_ms: u64,
    /// Kernel stack of a client that did not return, innermost first, at most 32 lines.
    pub stack: Vec<String>,
}

/// How a teardown went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeardownObservation {
    /// Each client.
    pub clients: Vec<ClientEnd>,
    /// Telemetry right before the ending.
    pub stats: Option<ServerStats>,
    /// fusectl `waiting` right before the ending.
    pub waiting_before: Option<u64>,
    /// fusectl `waiting` after all clients ended; absent when the directory was gone already.
    pub waiting_after: Option<u64>,
    /// Results of the umount calls, errno names or `ok`, in order.
    pub umounts: Vec<String>,
    /// Whether the fusectl directory went away within the limit.
    pub connection_gone: bool,
    /// How the server ended: `exit N`, `signal N`, or `running`.
    pub server_exit: String,
    /// Tasks in uninterruptible sleep at the end.
    pub d_tasks: Vec<TaskReport>,
    /// Delay before the ending that the seed chose, microseconds.
    pub delay_us: u64,
}

/// One fio run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FioObservation {
    /// Arguments.
    pub argv: Vec<String>,
    /// `exit N` or `signal N`.
    pub exit: String,
    /// Name of the bulk artifact with fio's standard output.
    pub artifact: String,
    /// Size of that artifact, bytes.
    pub artifact_bytes: u64,
    /// Last lines of standard error, at most 4 KiB.
    pub stderr: String,
    /// Telemetry of every server during the run.
    pub stats: Vec<ServerStats>,
}

/// One NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReport {
    /// Node id.
    pub id: u32,
    /// Online CPUs, ascending.
    pub cpus: Vec<u32>,
    /// MemTotal of the node, KiB.
    pub mem_kib: u64,
    /// Distance row.
    pub distances: Vec<u32>,
}

/// One online CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuReport {
    /// CPU number.
    pub cpu: u32,
    /// `physical_package_id`.
    pub package: i32,
    /// `core_id`.
    pub core: i32,
    /// `thread_siblings_list`, ascending.
    pub siblings: Vec<u32>,
}

/// CPU and NUMA layout from sysfs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopologyReport {
    /// `/sys/devices/system/cpu/possible`.
    pub possible: Vec<u32>,
    /// `/sys/devices/system/cpu/present`.
    pub present: Vec<u32>,
    /// `/sys/devices/system/cpu/online`.
    pub online: Vec<u32>,
    /// Each online CPU.
    pub cpus: Vec<CpuReport>,
    /// Each NUMA node, ascending by id; empty where the kernel has no NUMA.
    pub nodes: Vec<NodeReport>,
}

/// What the guest knows of its kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    /// `/proc/cmdline`.
    pub cmdline: String,
    /// `/proc/sys/kernel/tainted`.
    pub tainted: u64,
    /// `/sys/module/fuse/parameters/enable_uring`.
    pub enable_uring: Option<bool>,
    /// Whether tracepoint fuse_request_send exists.
    pub traces_fuse: bool,
    /// First line of `fio --version`, absent when the image has no fio.
    pub fio: Option<String>,
}

/// A task and where it waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskReport {
    /// Thread id.
    pub tid: u32,
    /// Process id.
    pub pid: u32,
    /// comm.
    pub name: String,
    /// State letter.
    pub state: String,
    /// Kernel stack, innermost first, at most 32 lines.
    pub stack: Vec<String>,
    /// `/proc/TID/syscall`: number and arguments, or `running`; empty where it was not read.
    pub syscall: String,
}

/// A FUSE connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionReport {
    /// fusectl directory name.
    pub connection: u32,
    /// `waiting`.
    pub waiting: Option<u64>,
    /// `max_background`.
    pub max_background: Option<u64>,
    /// `congestion_threshold`.
    pub congestion_threshold: Option<u64>,
}

/// A server process, as the agent knows it without asking it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSeen {
    /// Server name.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// fusectl connection number.
    pub connection: u32,
    /// Queues that it registered, by its word when it was ready.
    pub queues: u32,
}

/// An io_uring instance of some process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingReport {
    /// Process that has it open.
    pub pid: u32,
    /// comm of that process.
    pub name: String,
    /// File descriptor.
    pub fd: u32,
    /// What its fdinfo says, at most 64 lines of at most 200 bytes.
    pub lines: Vec<String>,
}

/// Where everything waits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// User tasks other than the agent, those that wait in the kernel's FUSE code first; at most 256.
    pub tasks: Vec<TaskReport>,
    /// FUSE connections.
    pub connections: Vec<ConnectionReport>,
    /// Telemetry of every server that still answers.
    pub servers: Vec<ServerStats>,
    /// Every server that was started and not ended by a step; at most 16.
    pub processes: Vec<ServerSeen>,
    /// io_uring instances; at most 64.
    pub rings: Vec<RingReport>,
    /// What could not be read, and why.
    pub gaps: Vec<String>,
}
