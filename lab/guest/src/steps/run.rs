//! From a step to its observation.

use std::sync::Arc;
use std::time::Duration;

use lab_proto::message::{Fault, FaultKind};
use lab_proto::observe::Observation;
use lab_proto::step::Step;

use super::{fio, mounts, place, sabotage, serve, teardown, tree};
use crate::agent::{Bulk, Case, Link, Server};

/// Limit of a question to a server that is not itself under test at that moment, guest time.
pub(super) const ASK_LIMIT: Duration = Duration::from_secs(2);

/// What every step can use.
pub(crate) struct Context<'a> {
    /// The way to the host.
    pub(crate) link: &'a Link,
    /// The way for artifacts.
    pub(crate) bulk: &'a Bulk,
    /// Servers of the case.
    pub(crate) case: &'a Case,
    /// Session of the request.
    pub(crate) session: u64,
    /// Seed of every choice.
    pub(crate) seed: u64,
    /// Limit of one client call.
    pub(crate) call_limit: Duration,
}

impl Context<'_> {
    /// The server mounted at `path`.
    ///
    /// # Errors
    /// Unsupported when there is none.
    pub(super) fn server(&self, path: &str) -> Result<Arc<Server>, Fault> {
        let text = || format!("no server of this case is mounted at {path}");
        self.case.server(path).ok_or_else(|| fault(FaultKind::Unsupported, text()))
    }
}

/// A fault of `kind`.
pub(super) fn fault(kind: FaultKind, text: impl Into<String>) -> Fault {
    Fault { kind, text: text.into() }
}

/// Runs one step.
///
/// # Errors
/// A fault says why there is no observation.
pub(crate) fn run(step: Step, context: &Context<'_>) -> Result<Observation, Fault> {
    match step {
        Step::Serve(spec) => serve::run(&spec, context),
        Step::Tmpfs { mount_point } => mounts::tmpfs(&mount_point),
        Step::Unmount { mount_point } => mounts::unmount(&mount_point, context),
        Step::Tree { path } => tree::run(&path, context),
        Step::Place { path, requests, background } => {
            place::run(&path, requests, background, context)
        }
        Step::Teardown { path, ending, clients, load_ms } => {
            teardown::run(&teardown::Plan { path, ending, clients, load_ms }, context)
        }
        Step::Fio { .. } => fio::run(&step, context),
        Step::Sabotage { what } => sabotage::run(what, context),
    }
}
