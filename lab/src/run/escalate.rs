//! A step that does not end: who waits where, from the mildest question to the last.
//!
//! The agent is asked first, then the kernel by its serial console, then, when that is silent,
//! its CPUs by NMI. Each question has a limit, and each is written down with what came of it.
//! Quit and KILL follow as the end of every VM.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use lab_proto::message::{Command, Reply};
use lab_proto::observe::Diagnosis;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::session::millis;
use crate::detect::Fault;
use crate::judge::dump;
use crate::vm::machine::Machine;
use crate::vm::{Break, VmError};

/// What part of the limit for the agent's diagnosis it has for a sign of life.
const ALIVE_PART: u32 = 4;

/// One question and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Asked {
    /// `agent`, `sysrq-w`, `sysrq-t`, `sysrq-l`, `nmi` or `vmcore`.
    pub(super) step: &'static str,
    /// How long it took, milliseconds.
    pub(super) took_ms: u64,
    /// Whether it was answered.
    pub(super) answered: bool,
    /// One line.
    pub(super) result: String,
}

/// What an escalation brought.
#[derive(Debug, Clone, Default)]
pub(super) struct Escalation {
    /// What was asked, in order.
    pub(super) asked: Vec<Asked>,
    /// The console up to the first question to the kernel.
    pub(super) before: String,
    /// The faults in it, and its lines.
    pub(super) before_faults: (Vec<Fault>, usize),
    /// The console from there, up to an NMI.
    pub(super) answer: String,
    /// The faults in that.
    pub(super) answer_faults: Vec<Fault>,
    /// Whether an NMI was sent: nothing that the kernel said after it is its own doing.
    pub(super) nmi: bool,
    /// Where everything waits, by the agent's word or else by the kernel's.
    pub(super) diagnosis: Option<Diagnosis>,
}

/// Who is asked, and how long each may take.
pub(super) struct Questions<'a> {
    pub(super) machine: &'a Machine,
    pub(super) cancel: &'a CancellationToken,
    /// Limit of the agent's diagnosis; none where it is known not to answer.
    pub(super) agent_limit: Option<Duration>,
    /// Where a vmcore goes, and the guest's memory in bytes; where one is wanted.
    pub(super) vmcore: Option<(PathBuf, u64)>,
}

impl Questions<'_> {
    /// Asks all of them.
    pub(super) async fn ask(self) -> Escalation {
        let mut done = Escalation::default();
        done.diagnosis = self.agent(&mut done.asked).await;
        let console = self.machine.console();
        (done.before, done.before_faults) = (console.cut(), console.cut_faults());
        let mut heard = false;
        for (step, question) in
            [("sysrq-w", Break::Blocked), ("sysrq-t", Break::Tasks), ("sysrq-l", Break::Cpus)]
        {
            heard |= self.sysrq(step, question, &mut done.asked).await;
        }
        (done.answer, done.answer_faults) = (console.cut(), console.faults());
        if !heard {
            done.nmi = true;
            self.nmi(&mut done.asked).await;
        }
        self.core(&mut done.asked).await;
        if done.diagnosis.is_none() {
            done.diagnosis = by_the_kernel(&done.answer);
        }
        done
    }

    async fn agent(&self, asked: &mut Vec<Asked>) -> Option<Diagnosis> {
        let limit = self.agent_limit?;
        let begin = Instant::now();
        // A short question first: an agent that does not answer it gets no long one.
        let alive = self.machine.request(Command::Facts, limit / ALIVE_PART, self.cancel).await;
        let reply = match alive {
            Ok(_) => self.machine.request(Command::Diagnose, limit, self.cancel).await,
            Err(e) => Err(e),
        };
        let (diagnosis, result) = match reply {
            Ok(Reply::Diagnosis(d)) => {
                let result =
                    format!("{} tasks, {} connections", d.tasks.len(), d.connections.len());
                (Some(d), result)
            }
            Ok(_) => (None, "answered another question".into()),
            Err(e) => (None, e.to_string()),
        };
        asked.push(Asked::new("agent", begin, diagnosis.is_some(), result));
        diagnosis
    }

    async fn sysrq(&self, step: &'static str, question: Break, asked: &mut Vec<Asked>) -> bool {
        let (begin, total) = (Instant::now(), self.machine.console().total());
        let heard = self.guarded(self.machine.sysrq(question)).await;
        let bytes = self.machine.console().total() - total;
        let (answered, result) = match heard {
            Ok(true) => (true, format!("{bytes} bytes on the console")),
            Ok(false) => (false, format!("the kernel did not take it, {bytes} bytes came")),
            Err(e) => (false, e.to_string()),
        };
        asked.push(Asked::new(step, begin, answered, result));
        answered
    }

    async fn nmi(&self, asked: &mut Vec<Asked>) {
        let begin = Instant::now();
        let (answered, result) = match self.guarded(self.machine.nmi()).await {
            Ok(bytes) => (bytes > 0, format!("{bytes} bytes on the console")),
            Err(e) => (false, e.to_string()),
        };
        asked.push(Asked::new("nmi", begin, answered, result));
    }

    async fn core(&self, asked: &mut Vec<Asked>) {
        let Some((file, memory)) = &self.vmcore else { return };
        let begin = Instant::now();
        let (answered, result) = match self.guarded(self.machine.vmcore(file, *memory)).await {
            Ok(bytes) => (true, format!("{bytes} bytes")),
            Err(e) => {
                // A core that is not whole misleads; QEMU may have been stopped while it wrote.
                let _ = std::fs::remove_file(file);
                (false, super::session::chain(&e))
            }
        };
        asked.push(Asked::new("vmcore", begin, answered, result));
    }

    async fn guarded<T>(
        &self,
        question: impl Future<Output = Result<T, VmError>>,
    ) -> Result<T, VmError> {
        self.machine.guard(self.cancel, question).await?
    }
}

impl Asked {
    fn new(step: &'static str, begin: Instant, answered: bool, result: String) -> Asked {
        Asked { step, took_ms: millis(begin.elapsed()), answered, result }
    }
}

/// A diagnosis from the kernel's own dump of tasks; none where it dumped none.
fn by_the_kernel(console: &str) -> Option<Diagnosis> {
    let tasks = dump::tasks(console);
    let gaps = vec!["the agent did not answer: tasks are those of the kernel's own dump".into()];
    let found = !tasks.is_empty();
    found.then_some(Diagnosis { tasks, gaps, ..Diagnosis::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_is_a_diagnosis_and_silence_is_none() {
        assert_eq!(by_the_kernel("[    1.000000] nothing of tasks\n"), None);
        let head = "[    1.000000] task:cat             state:D stack:0     pid:7     ppid:1\n";
        let text = format!("{head}[    1.000001]  request_wait_answer+0x1/0x2\n");
        let diagnosis = by_the_kernel(&text).unwrap();
        assert_eq!(diagnosis.tasks[0].stack, ["request_wait_answer+0x1/0x2"]);
        assert!(diagnosis.gaps[0].contains("did not answer"));
    }
}
