//! The steps of one case in a VM that answered the hello. What is seen is kept whatever
//! happens next: an observation is never lost to a later failure.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lab_proto::message::{Command, FaultKind, Reply};
use lab_proto::observe::{Facts, Observation};
use lab_proto::server::ServerStats;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::escalate::{Escalation, Questions};
use super::events::Event;
use super::log::EventLog;
use crate::agent::AgentError;
use crate::config::scenario::NamedStep;
use crate::judge::CaseEnd;
use crate::judge::layout;
use crate::plan::Case;
use crate::vm::Limits;
use crate::vm::VmError;
use crate::vm::machine::Machine;

/// Largest artifact that is read back for judging, bytes.
const MAX_ARTIFACT: u64 = 64 << 20;

/// A guest that does not answer what it was asked must not get past a check by it.
const OTHER_ANSWER: &str = "the agent answered another question";

/// What was seen of one case.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) facts: Option<Facts>,
    pub(super) topology_mismatch: Option<String>,
    pub(super) observations: Vec<(String, Observation)>,
    pub(super) artifacts: Vec<(String, Vec<u8>)>,
    pub(super) final_stats: Vec<ServerStats>,
    pub(super) taint_after: Option<u64>,
    pub(super) escalation: Option<Escalation>,
    pub(super) end: CaseEnd,
}

impl Seen {
    /// Nothing was seen but the end.
    pub(super) fn only(end: CaseEnd) -> Seen {
        Seen {
            facts: None,
            topology_mismatch: None,
            observations: Vec::new(),
            artifacts: Vec::new(),
            final_stats: Vec::new(),
            taint_after: None,
            escalation: None,
            end,
        }
    }
}

/// A case in its VM.
pub(super) struct Session<'a> {
    pub(super) case: &'a Case,
    pub(super) machine: &'a Machine,
    pub(super) limits: Limits,
    pub(super) log: &'a Arc<EventLog>,
    pub(super) cancel: &'a CancellationToken,
    /// Where the vmcore of a hang goes, where one is wanted.
    pub(super) vmcore: Option<PathBuf>,
}

impl Session<'_> {
    /// Runs the case to its end. Bounded by the case limit and the limits of the steps.
    pub(super) async fn run(&self) -> Seen {
        let mut seen = Seen::only(CaseEnd::Completed);
        if let Err(end) = self.steps(&mut seen).await {
            seen.end = end;
        }
        seen
    }

    async fn steps(&self, seen: &mut Seen) -> Result<(), CaseEnd> {
        let deadline = Instant::now() + self.stretch(self.case.scenario.case_limit);
        self.look_around(seen).await?;
        if seen.topology_mismatch.is_some() {
            return Ok(());
        }
        for step in &self.case.scenario.steps {
            let observation = self.step(step, deadline, seen).await?;
            self.fetch_artifact(&observation, step, seen).await?;
            seen.observations.push((step.name.clone(), observation));
        }
        self.settle(seen).await
    }

    /// Facts and layout, before anything is tested.
    async fn look_around(&self, seen: &mut Seen) -> Result<(), CaseEnd> {
        let Reply::Facts(facts) = self.ask(Command::Facts, "facts", seen).await? else {
            return Err(self.lost("facts", OTHER_ANSWER));
        };
        seen.facts = Some(facts);
        let Reply::Topology(report) = self.ask(Command::Topology, "topology", seen).await? else {
            return Err(self.lost("topology", OTHER_ANSWER));
        };
        seen.topology_mismatch = layout::mismatch(&self.case.topology, &report);
        Ok(())
    }

    /// A limit of the scenario on this host.
    fn stretch(&self, limit: Duration) -> Duration {
        self.limits.slowdown.stretch(limit)
    }

    async fn step(
        &self,
        named: &NamedStep,
        deadline: Instant,
        seen: &mut Seen,
    ) -> Result<Observation, CaseEnd> {
        let scenario = &self.case.scenario;
        let event = Event::StepStarted { case: self.case.id.clone(), step: named.name.clone() };
        // A full disk ends the run elsewhere; the step itself needs no record to be right.
        let _ = self.log.emit(event);
        let own = self.stretch(named.limit.unwrap_or(scenario.step_limit));
        let limit = own.min(deadline.saturating_duration_since(Instant::now()));
        let command = Command::Step {
            step: named.step.clone(),
            seed: self.case.seed,
            call_limit_ms: millis(self.stretch(scenario.call_limit)),
        };
        let reply = tokio::select! {
            biased;
            reply = self.machine.request(command, limit, self.cancel) => reply,
            silent = self.silent() => Err(silent),
        };
        match reply {
            Ok(Reply::Observed(observation)) => Ok(observation),
            Ok(_) => Err(self.lost(&named.name, OTHER_ANSWER)),
            Err(VmError::Agent(AgentError::Timeout { .. })) => {
                Err(self.hang(&named.name, None, self.diagnosis(), seen).await)
            }
            Err(e @ VmError::Silent { .. }) => {
                Err(self.hang(&named.name, Some(e.to_string()), None, seen).await)
            }
            // The guest noticed first, and the task still waits.
            Err(VmError::Agent(AgentError::Fault(f))) if f.kind == FaultKind::Hang => {
                Err(self.hang(&named.name, Some(f.text), self.diagnosis(), seen).await)
            }
            Err(e) => Err(self.failed(&named.name, e)),
        }
    }

    /// Returns when neither agent nor console gave a sign of life for the limit; else never.
    async fn silent(&self) -> VmError {
        let limit = self.stretch(self.case.scenario.silence_limit);
        let console = self.machine.console();
        loop {
            let total = console.total();
            tokio::time::sleep(limit).await;
            let answer = self.machine.request(Command::Facts, limit, self.cancel).await;
            let dead = matches!(answer, Err(VmError::Agent(AgentError::Timeout { .. })));
            if dead && console.total() == total {
                return VmError::Silent { limit };
            }
        }
    }

    /// Limit of the agent's own diagnosis.
    fn diagnosis(&self) -> Option<Duration> {
        Some(self.limits.request * 2)
    }

    /// Where everything waits, while it still does. The agent is asked within its limit, or not
    /// where it is known to be silent.
    async fn hang(
        &self,
        step: &str,
        said: Option<String>,
        agent: Option<Duration>,
        seen: &mut Seen,
    ) -> CaseEnd {
        let memory = self.case.topology.memory_bytes();
        let questions = Questions {
            machine: self.machine,
            cancel: self.cancel,
            agent_limit: agent,
            vmcore: self.vmcore.clone().map(|file| (file, memory)),
        };
        let escalation = seen.escalation.insert(questions.ask().await);
        let diagnosis = escalation.diagnosis.clone();
        if self.cancel.is_cancelled() {
            return CaseEnd::Cancelled;
        }
        CaseEnd::StepTimeout { step: step.into(), said, diagnosis }
    }

    async fn fetch_artifact(
        &self,
        observation: &Observation,
        step: &NamedStep,
        seen: &mut Seen,
    ) -> Result<(), CaseEnd> {
        let Observation::Fio(fio) = observation else { return Ok(()) };
        let agent = self.machine.agent().map_err(|e| self.failed(&step.name, e.into()))?;
        let limit = self.limits.request * 2;
        let waiting = self.machine.guard(self.cancel, agent.artifact(&fio.artifact, limit)).await;
        let path = match waiting {
            Ok(Ok(path)) => path,
            Ok(Err(e)) => return Err(self.failed(&step.name, e.into())),
            Err(e) => return Err(self.failed(&step.name, e)),
        };
        let bytes = read_bounded(&path).map_err(|e| self.lost(&step.name, &e.to_string()))?;
        seen.artifacts.push((fio.artifact.clone(), bytes));
        Ok(())
    }

    /// Telemetry of what is still mounted, and a console that is known to be drained.
    async fn settle(&self, seen: &mut Seen) -> Result<(), CaseEnd> {
        let Reply::Stats(stats) = self.ask(Command::Stats, "stats", seen).await? else {
            return Err(self.lost("stats", OTHER_ANSWER));
        };
        seen.final_stats = stats;
        let marker = format!("lab-end-{:016x}", unforeseen());
        let mark = Command::Mark { marker: marker.clone() };
        let Reply::Marked { tainted } = self.ask(mark, "mark", seen).await? else {
            return Err(self.lost("mark", OTHER_ANSWER));
        };
        seen.taint_after = Some(tainted);
        let drained = self.machine.console().wait_for(&marker, self.limits.request).await;
        drained.map(|_| ()).map_err(|e| self.lost("mark", &e.to_string()))
    }

    async fn ask(&self, command: Command, what: &str, seen: &mut Seen) -> Result<Reply, CaseEnd> {
        match self.machine.request(command, self.limits.request, self.cancel).await {
            Ok(reply) => Ok(reply),
            // The agent may hang for the same reason as any other task.
            Err(VmError::Agent(AgentError::Timeout { .. })) => {
                Err(self.hang(what, None, self.diagnosis(), seen).await)
            }
            Err(e) => Err(self.failed(what, e)),
        }
    }

    fn lost(&self, step: &str, how: &str) -> CaseEnd {
        CaseEnd::AgentLost { step: step.into(), how: how.into() }
    }

    fn failed(&self, step: &str, error: VmError) -> CaseEnd {
        end_of(step, error)
    }
}

/// What an error of the VM means for the case.
pub(super) fn end_of(step: &str, error: VmError) -> CaseEnd {
    match error {
        VmError::Cancelled => CaseEnd::Cancelled,
        VmError::Agent(AgentError::Fault(fault)) => CaseEnd::StepFault { step: step.into(), fault },
        VmError::Agent(e) => CaseEnd::AgentLost { step: step.into(), how: e.to_string() },
        VmError::NoAgent { .. } => CaseEnd::AgentLost { step: step.into(), how: error.to_string() },
        VmError::QemuExited { status, .. } if status.success() => CaseEnd::GuestPoweredOff,
        other => CaseEnd::VmFailed { text: chain(&other) },
    }
}

/// An error and its causes in one line. A cause that the text has already is not repeated.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        source = cause.source();
    }
    text
}

/// A number that no guest can know before it is told: one that foretold its marker would have
/// its console believed drained.
fn unforeseen() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    let size = std::fs::metadata(path)?.len();
    if size > MAX_ARTIFACT {
        let text = format!("artifact of {size} bytes, the bound is {MAX_ARTIFACT}");
        return Err(std::io::Error::other(text));
    }
    std::fs::read(path)
}

/// Milliseconds, saturating.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
