//! What the verbs are asked to do, without a trace of how it was asked.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::scenario::Profile;
use crate::kernel::recipe::Patch;
use crate::plan::Selection;
use crate::run::events::Event;

/// Which accelerator to use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccelChoice {
    /// KVM where it is proven to run a guest, else TCG.
    #[default]
    Auto,
    /// KVM or an error.
    Kvm,
    /// TCG.
    Tcg,
}

/// How a case gets its VM.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// A clone of a template, where QEMU and kernel can do it.
    #[default]
    Clone,
    /// A cold boot for each case.
    Boot,
}

/// How results are shown on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Human,
    /// KTAP.
    Ktap,
    /// The events, one JSON object a line.
    Jsonl,
}

/// How cases are run: what a rerun and a resumed run take over from the record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manner {
    /// Accelerator asked for.
    pub accel: AccelChoice,
    /// How a case gets its VM.
    pub isolation: Isolation,
    /// Cases at a time, at least 1; none means by the CPUs and memory of the host.
    pub jobs: Option<u32>,
    /// Attempts beyond the first that a failed case gets; all of them count.
    pub retries: u32,
    /// Stop at the first failure.
    pub fail_fast: bool,
    /// Keep the memory of a guest that hangs, for crash and drgn.
    pub vmcore: bool,
}

/// What of a recorded [`Manner`] is to be another one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// Accelerator.
    pub accel: Option<AccelChoice>,
    /// How a case gets its VM.
    pub isolation: Option<Isolation>,
    /// Cases at a time.
    pub jobs: Option<u32>,
    /// Attempts beyond the first.
    pub retries: Option<u32>,
}

impl Manner {
    /// With changes.
    pub fn with(self, changes: Changes) -> Manner {
        Manner {
            accel: changes.accel.unwrap_or(self.accel),
            isolation: changes.isolation.unwrap_or(self.isolation),
            jobs: changes.jobs.or(self.jobs),
            retries: changes.retries.unwrap_or(self.retries),
            ..self
        }
    }
}

/// Options of `lab test`.
#[derive(Debug, Clone, PartialEq)]
pub struct TestOptions {
    /// What to run.
    pub selection: Selection,
    /// How.
    pub manner: Manner,
    /// Results on standard output.
    pub format: Format,
    /// JUnit file to write.
    pub junit: Option<PathBuf>,
    /// Show the plan and the QEMU commands, start nothing.
    pub dry_run: bool,
    /// Install what is missing first.
    pub setup: bool,
    /// Whether CI=true was set.
    pub ci: bool,
    /// Command line as given, for the record.
    pub argv: Vec<String>,
    /// What happened before the run has a record.
    pub begin: Begin,
}

/// What is told before the first case of a run is planned.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Begin {
    /// Events, in order.
    pub events: Vec<Event>,
    /// Patches that the record keeps, by the name of their series.
    pub patches: Vec<(String, Vec<Patch>)>,
}

impl TestOptions {
    /// Whether NEW and FLAKY fail the run and no snapshot is written.
    pub fn strict(&self) -> bool {
        self.ci || self.selection.profile == Profile::Ci
    }
}

/// Options of `lab rerun`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RerunOptions {
    /// A run directory, its name, or a case id: that of the newest run that has it.
    pub what: String,
    /// Go on with the run instead: only what has not finished, in the same record.
    pub resume: bool,
    /// Seed of the one case named, instead of the recorded one.
    pub seed: Option<u64>,
    /// What is to be done in another way than recorded.
    pub changes: Changes,
    /// Results on standard output.
    pub format: Format,
    /// Command line as given, for the record.
    pub argv: Vec<String>,
}

/// Options of `lab report`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportOptions {
    /// A run directory or its name; none means the latest run.
    pub run: Option<String>,
    /// Results on standard output.
    pub format: Format,
    /// JUnit file to write.
    pub junit: Option<PathBuf>,
}
