//! What the host asks of the agent and what the agent answers, as JSON bodies of frames.

use serde::{Deserialize, Serialize};

use crate::observe::{Diagnosis, Facts, Observation, TopologyReport};
use crate::server::ServerStats;
use crate::step::Step;

/// First frame of every session, host to guest. The session number of the frame is the nonce.
///
/// A clone of a template VM is told apart from its siblings by this frame alone: the agent
/// adopts the session, sets the wall clock and feeds the seed to the kernel's RNG.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Wall clock, nanoseconds since the Unix epoch.
    pub wall_time_ns: u64,
    /// Fresh entropy for this VM, credited to the guest kernel.
    pub rng_seed: [u8; 32],
}

/// Answer to [`Hello`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelloReply {
    /// Version of the guest binary's package.
    pub agent_version: String,
    /// Guest CLOCK_BOOTTIME in nanoseconds when the hello was handled.
    pub boottime_ns: u64,
}

/// A request from the host. Each is answered by exactly one [`Response`] with the same id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Chosen by the host, unique within the session.
    pub id: u32,
    /// What to do.
    pub command: Command,
}

/// What a request asks for. Requests run concurrently; `Diagnose` is answered while a step hangs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// Report the CPU and NUMA layout from sysfs.
    Topology,
    /// Report kernel release, command line, taint and the state of the subject.
    Facts,
    /// Run one step of a scenario.
    Step {
        /// The step.
        step: Step,
        /// Seed of every random choice in the step.
        seed: u64,
        /// Limit of any single client call, milliseconds of guest time.
        call_limit_ms: u64,
    },
    /// Telemetry of every server that is up.
    Stats,
    /// Where every task waits, and the state of every FUSE connection.
    Diagnose,
    /// Write `marker` to the kernel log so that the host can see that the console is drained,
    /// and report the taint.
    Mark {
        /// Text that the host waits for on the console, at most 64 bytes of `[a-z0-9-]`.
        marker: String,
    },
    /// Power the machine off.
    PowerOff,
}

/// Answer to a [`Request`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// Id of the request.
    pub id: u32,
    /// The reply, or why there is none.
    pub result: Result<Reply, Fault>,
}

/// A successful answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(clippy::large_enum_variant)] // one value per request, never stored in bulk
pub enum Reply {
    /// To [`Command::Topology`].
    Topology(TopologyReport),
    /// To [`Command::Facts`].
    Facts(Facts),
    /// To [`Command::Step`].
    Observed(Observation),
    /// To [`Command::Stats`].
    Stats(Vec<ServerStats>),
    /// To [`Command::Diagnose`].
    Diagnosis(Diagnosis),
    /// To [`Command::Mark`]: `/proc/sys/kernel/tainted`.
    Marked {
        /// Taint bits.
        tainted: u64,
    },
    /// To [`Command::PowerOff`].
    PoweringOff,
}

/// Why a request could not be carried out. A fault is an observation, not a verdict: the
/// host decides who owns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Which part of the guest it concerns.
    pub kind: FaultKind,
    /// One line, lower case, no trailing full stop.
    pub text: String,
}

/// Part of the guest that a [`Fault`] concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The transport asked for could not be had (ring not offered, not ready, refused).
    Transport,
    /// The FUSE server failed or died.
    Server,
    /// The step cannot be done in this guest (missing program, path or kernel feature).
    Unsupported,
    /// A call on the mount did not return within the limit; the task still waits, so a
    /// diagnosis shows where.
    Hang,
    /// The agent itself failed.
    Agent,
}

/// Body of a frame on the bulk port, host-bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkHeader {
    /// Artifact name, `[a-z0-9][a-z0-9._-]{0,63}`; the host refuses any other.
    pub name: String,
    /// Offset of this chunk in the artifact, bytes.
    pub offset: u64,
    /// Whether this is the last chunk.
    pub last: bool,
}
