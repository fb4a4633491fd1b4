//! A cold boot up to the agent's first answer, and what the kernel tells when it does not come.

use std::path::Path;
use std::sync::Arc;

use super::context::Context;
use super::escalate::{Escalation, Questions};
use super::heard::Heard;
use super::session::{Seen, end_of, millis};
use crate::detect::Fault;
use crate::judge::CaseEnd;
use crate::vm::machine::{CONSOLE_LOG, Machine};
use crate::vm::spec::VmSpec;
use crate::vm::{End, Limits, VmError};

/// File name of a vmcore in the record of its VM.
pub(super) const VMCORE: &str = "vmcore";

/// Console lines kept of a boot that came to nothing.
const LAST_LINES: usize = 20;

/// A VM that did not come up.
#[derive(Debug)]
pub(super) struct Broken {
    /// What that means for a case.
    pub(super) end: CaseEnd,
    /// Its console, whole.
    pub(super) console: Vec<u8>,
    /// What was asked of a kernel that hangs, and what it said after that.
    asked: Option<(Escalation, Vec<Fault>)>,
}

impl Broken {
    /// For an error of a VM whose console is in `record`.
    pub(super) fn new(error: VmError, record: &Path) -> Broken {
        Broken::asked(error, record, None)
    }

    /// For a clone: its kernel came up once, so that it did not hang in its boot.
    pub(super) fn clone(error: VmError, record: &Path) -> Broken {
        let end = end_of("boot", error);
        Broken { end, ..Broken::new(VmError::Cancelled, record) }
    }

    fn asked(error: VmError, record: &Path, asked: Option<(Escalation, Vec<Fault>)>) -> Broken {
        let console = std::fs::read(record.join(CONSOLE_LOG)).unwrap_or_default();
        let text = String::from_utf8_lossy(&console);
        let own = asked.as_ref().map_or(&*text, |(escalation, _)| &escalation.before);
        let end = boot_end(error, own, asked.as_ref().map(|(escalation, _)| escalation));
        Broken { end, console, asked }
    }

    /// As seen by a case.
    pub(super) fn seen(&self) -> Seen {
        let mut seen = Seen::only(self.end.clone());
        seen.escalation = self.asked.as_ref().map(|(escalation, _)| escalation.clone());
        seen
    }

    /// Its console by whether the lab asked.
    pub(super) fn heard(&self) -> Heard {
        match &self.asked {
            Some((escalation, since)) => Heard::escalated(escalation, since.clone()),
            None => Heard::log(&self.console),
        }
    }
}

/// Boots `spec` up to the agent. A kernel that hangs on the way is asked where; a vmcore, where
/// one is wanted, goes to `record`.
pub(super) async fn boot(
    context: &Context,
    spec: &VmSpec,
    record: &Path,
    limits: &Limits,
) -> Result<Machine, Broken> {
    let cancel = &context.cancel;
    let started = Machine::start(spec, record, limits, cancel).await;
    let mut machine = started.map_err(|e| Broken::new(e, record))?;
    let error = match machine.agent_hello(limits.boot, cancel).await {
        Ok(_) => return Ok(machine),
        Err(error) => error,
    };
    if !matches!(error, VmError::NoAgent { .. } | VmError::Silent { .. }) {
        // What it said last is read to the end before it is looked at.
        let console = Arc::clone(machine.console());
        drop(machine);
        console.drained(limits.end).await;
        return Err(Broken::new(error, record));
    }
    let memory = spec.topology.memory_bytes();
    let questions = Questions {
        machine: &machine,
        cancel,
        agent_limit: None,
        vmcore: context.vmcore.then(|| (record.join(VMCORE), memory)),
    };
    let escalation = questions.ask().await;
    let console = Arc::clone(machine.console());
    machine.end(End::Quit).await;
    if cancel.is_cancelled() {
        return Err(Broken::new(VmError::Cancelled, record));
    }
    Err(Broken::asked(error, record, Some((escalation, console.faults()))))
}

/// What an error of a cold boot means: a kernel that stays silent hangs. `console` is what the
/// kernel said unasked.
fn boot_end(error: VmError, console: &str, escalation: Option<&Escalation>) -> CaseEnd {
    let mut last: Vec<String> = console.lines().rev().take(LAST_LINES).map(Into::into).collect();
    last.reverse();
    match error {
        VmError::NoAgent { limit } | VmError::Silent { limit } => {
            let diagnosis = escalation.and_then(|e| e.diagnosis.clone());
            CaseEnd::BootTimeout { limit_ms: millis(limit), last, diagnosis }
        }
        VmError::QemuExited { status, .. } if status.success() => CaseEnd::BootEnded { last },
        other => end_of("boot", other),
    }
}
