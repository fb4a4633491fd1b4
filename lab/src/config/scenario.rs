//! Scenarios, checked: what to run and what must hold.

use std::time::Duration;

use lab_proto::step::Step;

/// What a scenario is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Results of operations.
    Correctness,
    /// Which queue a request takes.
    Placement,
    /// The end of a mount under load.
    Teardown,
    /// Misuse of the ring protocol.
    Protocol,
    /// fio.
    Perf,
}

impl Kind {
    /// Every kind with its name in files, which is also that of its directory.
    pub const ALL: [(&'static str, Kind); 5] = [
        ("correctness", Kind::Correctness),
        ("placement", Kind::Placement),
        ("teardown", Kind::Teardown),
        ("protocol", Kind::Protocol),
        ("perf", Kind::Perf),
    ];
}

/// How much to run. Each profile contains the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// At most a minute.
    Quick,
    /// The gate of a series.
    Ci,
    /// At most half an hour.
    Full,
    /// Everything.
    Soak,
}

impl Profile {
    /// Every profile with its name in files and on the command line.
    pub const ALL: [(&'static str, Profile); 4] = [
        ("quick", Profile::Quick),
        ("ci", Profile::Ci),
        ("full", Profile::Full),
        ("soak", Profile::Soak),
    ];

    /// Its name in files and on the command line.
    pub fn name(self) -> &'static str {
        Profile::ALL[self as usize].0
    }
}

/// Layers of the guest image that a scenario needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ImageKind {
    /// The agent alone.
    Agent,
    /// The agent and fio.
    Fio,
    /// No image: the host's root, read-only, by virtme-ng.
    Host,
}

impl ImageKind {
    /// Every image with its name in files.
    pub const ALL: [(&'static str, ImageKind); 3] =
        [("agent", ImageKind::Agent), ("fio", ImageKind::Fio), ("host", ImageKind::Host)];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        ImageKind::ALL[self as usize].0
    }
}

/// One scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Path below `scenarios/` without suffix, e.g. `correctness/tree`.
    pub name: String,
    /// One line for people.
    pub summary: String,
    /// What it is about: its first directory, unless the file says otherwise.
    pub kind: Kind,
    /// The smallest profile that runs it.
    pub profile: Profile,
    /// Image it needs.
    pub image: ImageKind,
    /// What kernel and topology must offer.
    pub requires: Requires,
    /// Additions to the kernel command line, after those of the kernel entry.
    pub kernel_args: Vec<String>,
    /// Limit of a step that names none, before the slowdown factor.
    pub step_limit: Duration,
    /// Limit of the whole case, before the slowdown factor.
    pub case_limit: Duration,
    /// Limit of one client call inside a step, before the slowdown factor.
    pub call_limit: Duration,
    /// How long neither console nor agent may show life while a step runs.
    pub silence_limit: Duration,
    /// Steps in order.
    pub steps: Vec<NamedStep>,
    /// What must hold.
    pub expect: Vec<Expectation>,
    /// Splats that the case causes on purpose.
    pub allow: Vec<Allow>,
}

/// A splat that is no failure of the case that declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allow {
    /// Glob over titles of faults, such as `WARNING in fuse_uring_*`; always a valid one.
    pub title: String,
    /// Why it is to be expected.
    pub reason: String,
    /// Where it is discussed.
    pub link: String,
    /// Last day on which it is allowed.
    pub until: jiff::civil::Date,
}

/// A step and its name.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedStep {
    /// Unique in the scenario; the kind of the step when the file names none.
    pub name: String,
    /// The step.
    pub step: Step,
    /// Its own limit, before the slowdown factor.
    pub limit: Option<Duration>,
}

/// What kernel and topology must offer; what is missing is a SKIP with the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requires {
    /// Options that must be `y`, without `CONFIG_`.
    pub config: Vec<String>,
    /// What the kernel's entry must offer, e.g. `fewer-queues`.
    pub offers: Vec<String>,
    /// Least CPUs present.
    pub min_cpus: u32,
    /// Least NUMA nodes.
    pub min_nodes: u32,
}

/// What must hold after the steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expectation {
    /// The observation of each step equals its part of the snapshot.
    Snapshot {
        /// Step names.
        steps: Vec<String>,
        /// Whether each topology has its own snapshot.
        per_topology: bool,
        /// Whether it also depends on the queue policy; without a declared one it is not compared.
        per_policy: bool,
    },
    /// The observations of these steps are equal to each other.
    Equal {
        /// Step names.
        steps: Vec<String>,
    },
    /// A rule over the observation of one step.
    Rule {
        /// Step name.
        step: String,
        /// The rule.
        rule: Rule,
    },
}

/// Rules over observations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// place, of foreground requests: each arrives on the queue of the CPU that submitted it. Every
    /// policy keeps to this while all queues are registered.
    QueueIsSubmittingCpu,
    /// place, of background requests: each arrives on the queue that the declared policy of the
    /// kernel names. Nothing is held where none is declared.
    BackgroundFollowsPolicy,
    /// place: a CPU whose node has queues is served by one of them, and a CPU with a queue of its
    /// own by that one.
    QueueIsNear,
    /// place: every client CPU was served, no call failed, nothing was lost.
    NothingLost,
    /// teardown: each client's last call returned within the limit.
    EveryCallReturned,
    /// teardown: each client made calls before the ending.
    LoadWasReal,
    /// teardown: no task is left in uninterruptible sleep.
    NoTaskInD,
    /// teardown: `waiting` is 0 while its directory is there.
    WaitingZero,
    /// teardown: the fusectl directory went away.
    ConnectionGone,
    /// fio: exit 0, I/Os above 0, no errors, no short or dropped I/O.
    FioSane,
}

impl Rule {
    /// Every rule with its name in scenario files.
    pub const ALL: [(&'static str, Rule); 10] = [
        ("queue-is-submitting-cpu", Rule::QueueIsSubmittingCpu),
        ("background-follows-policy", Rule::BackgroundFollowsPolicy),
        ("queue-is-near", Rule::QueueIsNear),
        ("nothing-lost", Rule::NothingLost),
        ("every-call-returned", Rule::EveryCallReturned),
        ("load-was-real", Rule::LoadWasReal),
        ("no-task-in-d", Rule::NoTaskInD),
        ("waiting-zero", Rule::WaitingZero),
        ("connection-gone", Rule::ConnectionGone),
        ("fio-sane", Rule::FioSane),
    ];
}
