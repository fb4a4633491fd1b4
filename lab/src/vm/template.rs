//! A VM that booted once, saved, and its clones.
//!
//! The template's RAM lies in memory files of the lab; its devices' state in another. A clone
//! maps the RAM privately, so that it starts where the template stopped and writes to itself
//! alone. Clones are told apart by the nonce of their hello.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lab_proto::message::{Command, Reply};
use lab_proto::observe::{Facts, TopologyReport};
use qapi::qmp;
use tokio_util::sync::CancellationToken;

use super::console::Console;
use super::end::End;
use super::error::VmError;
use super::limits::Limits;
use super::machine::Machine;
use super::memory::{MemFile, files_of};
use super::spec::{Ram, VmSpec};
use crate::agent::AgentError;

/// Pause between questions how a save or load goes.
const POLL: Duration = Duration::from_millis(2);

/// A saved VM. Its memory goes with it.
#[derive(Debug)]
pub struct Template {
    spec: VmSpec,
    ram: Vec<MemFile>,
    state: MemFile,
    facts: Facts,
    topology: TopologyReport,
    boot: Duration,
    save: Duration,
    console: Arc<Console>,
}

/// A VM that is to be saved: its memory lies in files of the lab from the start.
#[derive(Debug)]
pub struct Draft {
    spec: VmSpec,
    ram: Vec<MemFile>,
    state: MemFile,
}

impl Draft {
    /// Makes the files. The memory of `spec` is replaced.
    ///
    /// Errors: no room for them.
    pub fn new(spec: &VmSpec) -> Result<Draft, VmError> {
        let ram = files_of(&spec.topology)?;
        let state = MemFile::new("lab-state", 0)?;
        let mut spec = spec.clone();
        spec.ram = Ram::Files { paths: ram.iter().map(MemFile::path).collect(), shared: true };
        spec.incoming = false;
        Ok(Draft { spec, ram, state })
    }

    /// What is to be booted.
    pub fn spec(&self) -> &VmSpec {
        &self.spec
    }

    /// Asks the booted VM for facts and layout, saves it and ends it.
    ///
    /// Errors: [`VmError`]; with [`VmError::State`] and [`VmError::Qmp`] a cold boot will do.
    pub async fn save(
        self,
        machine: Machine,
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> Result<Template, VmError> {
        let Draft { spec, ram, state } = self;
        let boot = machine.ready_after().unwrap_or_default();
        let (facts, topology) = ask(&machine, limits, cancel).await?;
        let begin = Instant::now();
        save(&machine, &state, limits, cancel).await?;
        let save = begin.elapsed();
        let console = Arc::clone(machine.console());
        machine.end(End::Quit).await;
        for file in ram.iter().chain([&state]) {
            file.seal()?;
        }
        Ok(Template { spec, ram, state, facts, topology, boot, save, console })
    }
}

impl Template {
    /// Boots `spec`, waits for its agent, asks for facts and layout, saves it and ends it.
    ///
    /// `record` gets the console's log. The memory of `spec` is replaced. Errors: [`VmError`];
    /// with [`VmError::State`] and [`VmError::Qmp`] the VM booted and a cold boot will do.
    pub async fn make(
        spec: &VmSpec,
        record: &Path,
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> Result<Template, VmError> {
        let draft = Draft::new(spec)?;
        let mut machine = Machine::start(draft.spec(), record, limits, cancel).await?;
        machine.agent_hello(limits.boot, cancel).await?;
        draft.save(machine, limits, cancel).await
    }

    /// Starts a clone, lets it run, and shakes hands with it under a nonce of its own.
    ///
    /// `dir` gets its sockets, `record` its console and artifacts. Errors: [`VmError`].
    pub async fn clone_into(
        &self,
        name: &str,
        dir: &Path,
        record: &Path,
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> Result<Machine, VmError> {
        let paths = self.ram.iter().map(MemFile::path).collect();
        let spec = VmSpec {
            name: name.into(),
            dir: dir.into(),
            ram: Ram::Files { paths, shared: false },
            incoming: true,
            ..self.spec.clone()
        };
        let mut machine = Machine::start(&spec, record, limits, cancel).await?;
        machine.console().go_on_from(self.console.scan());
        load(&machine, &self.state, limits, cancel).await?;
        machine.command(qmp::cont {}, cancel).await?;
        machine.agent_hello(limits.wake, cancel).await?;
        Ok(machine)
    }

    /// What the guest knows of its kernel.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The layout that the guest got.
    pub fn topology(&self) -> &TopologyReport {
        &self.topology
    }

    /// What the boot printed.
    pub fn boot_text(&self) -> String {
        self.console.text()
    }

    /// From the start of QEMU to the agent's first answer.
    pub fn boot_time(&self) -> Duration {
        self.boot
    }

    /// From the end of the questions to the saved state.
    pub fn save_time(&self) -> Duration {
        self.save
    }
}

async fn ask(
    machine: &Machine,
    limits: &Limits,
    cancel: &CancellationToken,
) -> Result<(Facts, TopologyReport), VmError> {
    let odd = || AgentError::Lost("the agent answered another question".into());
    let facts = machine.request(Command::Facts, limits.request, cancel).await?;
    let topology = machine.request(Command::Topology, limits.request, cancel).await?;
    match (facts, topology) {
        (Reply::Facts(facts), Reply::Topology(topology)) => Ok((facts, topology)),
        _ => Err(odd().into()),
    }
}

/// Only what is not in the shared memory files goes through the stream.
fn ignore_shared() -> qmp::migrate_set_capabilities {
    let capability = qmp::MigrationCapability::x_ignore_shared;
    let capabilities = vec![qmp::MigrationCapabilityStatus { capability, state: true }];
    qmp::migrate_set_capabilities { capabilities }
}

async fn save(
    machine: &Machine,
    state: &MemFile,
    limits: &Limits,
    cancel: &CancellationToken,
) -> Result<(), VmError> {
    machine.command(qmp::stop {}, cancel).await?;
    machine.command(ignore_shared(), cancel).await?;
    let uri = Some(format!("file:{}", state.path().display()));
    let migrate = qmp::migrate { uri, channels: None, detach: None, resume: None };
    machine.command(migrate, cancel).await?;
    settled("save", machine, limits, cancel).await
}

async fn load(
    machine: &Machine,
    state: &MemFile,
    limits: &Limits,
    cancel: &CancellationToken,
) -> Result<(), VmError> {
    machine.command(ignore_shared(), cancel).await?;
    let uri = Some(format!("file:{}", state.path().display()));
    let incoming = qmp::migrate_incoming { uri, channels: None, exit_on_error: None };
    machine.command(incoming, cancel).await?;
    settled("load", machine, limits, cancel).await
}

/// Waits until QEMU says that the state went over, or why it did not.
async fn settled(
    what: &'static str,
    machine: &Machine,
    limits: &Limits,
    cancel: &CancellationToken,
) -> Result<(), VmError> {
    let done = async {
        loop {
            let info = machine.command(qmp::query_migrate {}, cancel).await?;
            match info.status {
                Some(qmp::MigrationStatus::completed) => return Ok(()),
                Some(qmp::MigrationStatus::failed | qmp::MigrationStatus::cancelled) => {
                    let reason = info.error_desc.unwrap_or_else(|| machine.stderr_tail());
                    return Err(VmError::State { what, reason });
                }
                _ => tokio::time::sleep(POLL).await,
            }
        }
    };
    tokio::time::timeout(limits.state, done).await.unwrap_or_else(|_| {
        let reason = format!("not done after {} ms", limits.state.as_millis());
        Err(VmError::State { what, reason })
    })
}
