//! The typed steps of a scenario, as the guest runs them.

use serde::{Deserialize, Serialize};

use crate::server::ServerSpec;

/// One step. Each yields one observation of the same name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Step {
    /// Start a server and mount it.
    Serve(ServerSpec),
    /// Mount a tmpfs, to compare with.
    Tmpfs {
        /// Absolute mount point; made when missing.
        mount_point: String,
    },
    /// Unmount a mount of the case, and end its server.
    Unmount {
        /// Absolute mount point.
        mount_point: String,
    },
    /// A fixed tree of file operations.
    Tree {
        /// Directory to work in: a mount point.
        path: String,
    },
    /// Requests from a client pinned to each CPU.
    Place {
        /// Mount point of a server of the case.
        path: String,
        /// Requests per CPU, 1 to 1024.
        requests: u32,
        /// Whether they are background requests: asynchronous direct reads of a file that the
        /// step makes, one at a time.
        background: bool,
    },
    /// Clients under load while the mount is torn down.
    Teardown {
        /// Mount point of a server of the case.
        path: String,
        /// How it ends.
        ending: Ending,
        /// Client threads, spread over the CPUs, 1 to 256.
        clients: u32,
        /// Load before the ending, milliseconds; a seeded part of it again is added.
        load_ms: u64,
    },
    /// One fio run.
    Fio {
        /// Directory to work in.
        path: String,
        /// `readwrite` of the job, e.g. `randread`.
        rw: String,
        /// Block size, bytes.
        block_size: u64,
        /// File size, bytes.
        size: u64,
        /// I/O depth.
        iodepth: u32,
        /// Jobs.
        jobs: u32,
        /// ioengine, e.g. `io_uring`.
        engine: String,
        /// O_DIRECT.
        direct: bool,
        /// Measured time, milliseconds.
        runtime_ms: u64,
        /// Time before it that is not counted, milliseconds.
        ramp_ms: u64,
    },
    /// Deliberate damage, so that the lab's own detection can be tested.
    Sabotage {
        /// What to break.
        what: Sabotage,
    },
}

impl Step {
    /// The name of the step's kind, as in scenario files.
    pub fn kind(&self) -> &'static str {
        match self {
            Step::Serve(_) => "serve",
            Step::Tmpfs { .. } => "tmpfs",
            Step::Unmount { .. } => "unmount",
            Step::Tree { .. } => "tree",
            Step::Place { .. } => "place",
            Step::Teardown { .. } => "teardown",
            Step::Fio { .. } => "fio",
            Step::Sabotage { .. } => "sabotage",
        }
    }
}

/// How a teardown step ends the mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// SIGKILL to the server process.
    KillServer,
    /// A write to `abort` of its fusectl directory.
    Abort,
    /// umount2 with MNT_FORCE.
    ForcedUmount,
}

/// What a sabotage step breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sabotage {
    /// A kernel panic by sysrq-c.
    Panic,
    /// The agent process ends.
    KillAgent,
    /// The machine powers off in mid-step.
    PowerOff,
    /// The agent writes garbage to the control port.
    GarbageFrames,
    /// The step never ends, while the agent stays responsive.
    Sleep,
    /// The agent is stopped: the guest lives and nobody in it answers.
    StopAgent,
    /// Every server of the case is stopped: its process lives and answers nothing.
    StopServers,
}
