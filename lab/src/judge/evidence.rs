//! What a case is judged by, and what comes out. Data only.

use lab_proto::message::Fault;
use lab_proto::observe::{Diagnosis, Facts, Observation};
use lab_proto::server::ServerStats;

use super::snapshot::{Pending, SnapshotSet};
use super::verdict::{Owner, Verdict};
use crate::config::scenario::Scenario;
use crate::config::topology::Topology;
use crate::detect;

/// Everything that is known of a case when it ends.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// What was to be done.
    pub scenario: &'a Scenario,
    /// Queue policy that the kernel entry declares.
    pub queue_policy: Option<&'a str>,
    /// Layout that was asked for.
    pub topology: &'a Topology,
    /// What the guest's kernel said of itself, when it came that far.
    pub facts: Option<&'a Facts>,
    /// Step name and observation, in order.
    pub observations: &'a [(String, Observation)],
    /// Bulk artifacts by name.
    pub artifacts: &'a [(String, Vec<u8>)],
    /// Telemetry of the servers that were up at the end.
    pub final_stats: &'a [ServerStats],
    /// How the case ended.
    pub end: &'a CaseEnd,
    /// What the console told, after it was drained.
    pub faults: &'a [detect::Fault],
    /// The day, by UTC.
    pub today: jiff::civil::Date,
    /// Taint bits before the first step.
    pub taint_before: Option<u64>,
    /// Taint bits after the last step.
    pub taint_after: Option<u64>,
    /// How the guest's layout differs from the one asked for.
    pub topology_mismatch: Option<&'a str>,
    /// Snapshots as they were read before the run.
    pub snapshots: &'a SnapshotSet,
    /// Under CI: nothing may be written below `snapshots/`.
    pub strict: bool,
}

/// How a case ended, before anything is judged.
#[derive(Debug, Clone, PartialEq)]
pub enum CaseEnd {
    /// Every step was answered.
    Completed,
    /// A step was not answered within its limit, while the agent was.
    StepTimeout {
        /// Step name.
        step: String,
        /// What the guest said of a call that did not return, when it noticed first.
        said: Option<String>,
        /// Where everything waits, when the agent could still tell.
        diagnosis: Option<Diagnosis>,
    },
    /// The agent could not carry a step out.
    StepFault {
        /// Step name.
        step: String,
        /// Why.
        fault: Fault,
    },
    /// A kernel that was booted did not bring the agent up within the limit.
    BootTimeout {
        /// The limit, milliseconds.
        limit_ms: u64,
        /// The end of the console.
        last: Vec<String>,
        /// Where everything waits, by the kernel's own word.
        diagnosis: Option<Diagnosis>,
    },
    /// A guest that was booted reset or powered off before its agent answered.
    BootEnded {
        /// The end of the console.
        last: Vec<String>,
    },
    /// The agent stopped answering, or answered with garbage.
    AgentLost {
        /// Step name, or what the agent was asked for.
        step: String,
        /// What was seen.
        how: String,
    },
    /// The VM could not be started, or QEMU died.
    VmFailed {
        /// One line.
        text: String,
    },
    /// The guest powered off or reset by itself.
    GuestPoweredOff,
    /// The user interrupted the run.
    Cancelled,
}

/// What a case came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Whose doing it is; none for a pass or skip.
    pub owner: Option<Owner>,
    /// One line without control characters; empty for a pass.
    pub cause: String,
    /// The lines that decided it, without control characters, at most 60.
    pub evidence: Vec<String>,
    /// Snapshots to be written for review; always empty when strict.
    pub snapshot_new: Vec<Pending>,
}
