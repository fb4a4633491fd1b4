//! What happens in a run, as one stream. The one record: every report is a fold over it.
//!
//! One JSON object a line in `events.jsonl`, its kind under `event`. The types live here; how
//! they become lines is `wire`, who writes them is `log`. The schema is documented in
//! `lab/docs/events.md`, and a test compares the two.

use serde::{Deserialize, Serialize};

use super::options::Manner;
use crate::detect::Mark;
use crate::judge::verdict::{Owner, Verdict};

/// Version of the event schema, in [`Event::RunStarted`].
pub const SCHEMA: u32 = 1;

/// One line of `events.jsonl`; [`super::wire`] turns it into text and back.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// When, RFC 3339 with milliseconds, UTC.
    pub time: String,
    /// What.
    pub event: Event,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// First event of a run.
    RunStarted {
        /// [`SCHEMA`].
        schema: u32,
        /// Version of lab.
        lab: String,
        /// Command line as given.
        argv: Vec<String>,
        /// Kernels as given, paths made absolute; empty for the default.
        #[serde(default)]
        kernels: Vec<String>,
        /// Kernel to compare with as given, a path made absolute.
        #[serde(default)]
        base: Option<String>,
        /// Seed of the run.
        seed: u64,
        /// Planned cases.
        planned: u32,
        /// Profile name.
        profile: String,
        /// Whether NEW and FLAKY fail the run.
        strict: bool,
        /// Host: kernel release, CPUs, memory MiB.
        host: String,
        /// How the cases are run.
        #[serde(default)]
        manner: Manner,
    },
    /// A run that was cut off goes on.
    RunResumed {
        /// Cases that had finished.
        finished: u32,
        /// Cases that are left.
        left: u32,
    },
    /// The run tests a series; before its cases are planned.
    SeriesPlanned {
        /// Name.
        series: String,
        /// Name of the kernel that it is put onto.
        onto: String,
        /// Who said so.
        chosen: String,
        /// Titles of the patches, in order.
        patches: Vec<String>,
    },
    /// A patch of the series was applied and built, or not.
    PatchBuilt {
        /// Name of the series.
        series: String,
        /// Which patch, from 1.
        number: u32,
        /// Of how many.
        of: u32,
        /// Its title.
        title: String,
        /// Name of the kernel with it and all before it.
        kernel: String,
        /// `built`, `no-apply`, `no-config`, `no-build`, `not-reached`.
        result: String,
        /// Warnings in the files that it touches and that were not there before.
        new_warnings: Vec<String>,
        /// Other configurations and checks that fail.
        matrix: Vec<String>,
        /// Why it is not built, or its rejects.
        detail: Vec<String>,
        /// Milliseconds.
        duration_ms: u64,
    },
    /// The run compares two versions of a series.
    SeriesCompared {
        /// The new one.
        series: String,
        /// The earlier one.
        against: String,
    },
    /// A case is part of the plan. All of them come before the first case starts.
    CasePlanned {
        /// Case id.
        case: String,
        /// Kernel name as given.
        kernel: String,
        /// Topology name.
        topology: String,
        /// Scenario name, with `#N` behind it from the second repeat on.
        scenario: String,
        /// Seed of the case.
        seed: u64,
        /// It runs on the base kernel and does not count.
        #[serde(default)]
        base: bool,
        /// SHA-256 of all that decides what is done: scenario, topology, kernel arguments.
        #[serde(default)]
        digest: Option<String>,
    },
    /// A kernel image is at hand.
    KernelReady {
        /// Kernel name as given.
        kernel: String,
        /// Release, e.g. `7.3.4+deb13-cloud-amd64`.
        release: String,
        /// SHA-256 of the image, hex.
        sha256: String,
        /// Where it came from.
        origin: String,
    },
    /// A template VM answered, or cases of this key will boot cold.
    VmReady {
        /// Kernel name as given.
        kernel: String,
        /// Topology name.
        topology: String,
        /// `clone` or `boot`.
        isolation: String,
        /// Why not `clone`, where it was asked for.
        reason: Option<String>,
        /// `kvm` or `tcg`.
        accel: String,
        /// QEMU version.
        qemu: String,
        /// Spawn to agent-ready of the boot, milliseconds.
        boot_ms: u64,
    },
    /// A case begins; on disk before its VM is spawned.
    CaseStarted {
        /// Case id.
        case: String,
        /// Attempt, from 1.
        attempt: u32,
        /// Directory, relative to the run.
        dir: String,
    },
    /// A step of a running case begins.
    StepStarted {
        /// Case id.
        case: String,
        /// Step name.
        step: String,
    },
    /// What the kernel said of itself in one attempt; before the end of the case.
    CaseFaults {
        /// Case id.
        case: String,
        /// Attempt, from 1.
        attempt: u32,
        /// All faults, in order.
        faults: Vec<Mark>,
        /// What the case would have come to without them.
        ending: String,
    },
    /// An attempt was held against the same case on the base; before the end of the case.
    CaseCompared {
        /// Case id.
        case: String,
        /// Attempt, from 1.
        attempt: u32,
        /// Id of the case on the base.
        base: String,
        /// What came of that; absent when it has no end.
        base_verdict: Option<String>,
        /// Whether the two could be compared.
        comparable: bool,
        /// Titles of faults on both.
        known: Vec<String>,
        /// Titles of faults on the kernel under test only.
        new: Vec<String>,
        /// Titles of faults on the base only.
        gone: Vec<String>,
        /// Whether the attempt does not count against the kernel under test.
        excused: bool,
    },
    /// A case ended.
    CaseFinished {
        /// Case id.
        case: String,
        /// Kernel name as given.
        kernel: String,
        /// Topology name.
        topology: String,
        /// Scenario name, with `#N` behind it from the second repeat on.
        scenario: String,
        /// What it came to.
        #[serde(with = "verdict_text")]
        verdict: Verdict,
        /// Whose doing; absent for a pass or skip.
        owner: Option<Owner>,
        /// Cause in one line; empty for a pass.
        cause: String,
        /// Console lines that decided it.
        evidence: Vec<String>,
        /// From case_started, milliseconds.
        duration_ms: u64,
        /// Attempts made.
        attempts: u32,
        /// `clone` or `boot`.
        isolation: String,
        /// `kvm` or `tcg`.
        accel: String,
        /// Directory, relative to the run.
        dir: String,
        /// Seed of the case.
        seed: u64,
    },
    /// Something worth a line that decides nothing (accelerator chosen, template refused).
    Note {
        /// One line.
        text: String,
    },
    /// Last event of a run that was not cut off.
    RunFinished {
        /// Cases that passed.
        passed: u32,
        /// Cases that failed.
        failed: u32,
        /// Cases that were skipped.
        skipped: u32,
        /// Cases that were planned and have no end.
        #[serde(default)]
        unfinished: u32,
        /// Exit code.
        exit_code: u8,
        /// From run_started, milliseconds.
        duration_ms: u64,
    },
}

/// A verdict as one string, as people see it: `PASS`, `FLAKY 2/3`, `SKIP reason`.
mod verdict_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use super::Verdict;

    pub(super) fn serialize<S: Serializer>(verdict: &Verdict, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(verdict)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Verdict, D::Error> {
        let text = String::deserialize(d)?;
        Verdict::parse(&text).ok_or_else(|| D::Error::custom(format!("unknown verdict `{text}`")))
    }
}
