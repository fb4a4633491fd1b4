//! What the console of a case said, by whether the lab asked for it.

use super::escalate::Escalation;
use crate::detect::{self, Fault, Kind};
use crate::vm::console::FILE_MAX;

/// The console of a case in parts.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// What the kernel said unasked.
    pub(super) unasked: String,
    /// What it said after the lab had asked it for its tasks and CPUs; without an end that the
    /// lab forced upon it.
    pub(super) asked: String,
    /// Bytes in the middle that were not kept.
    pub(super) lost_bytes: u64,
}

impl Heard {
    /// All of it was unasked.
    pub(super) fn unasked(text: String) -> Heard {
        Heard { unasked: text, ..Heard::default() }
    }

    /// The log of a VM that did not come up; it ends at its bound.
    pub(super) fn log(log: &[u8]) -> Heard {
        let lost_bytes = (log.len() as u64).saturating_sub(FILE_MAX);
        Heard { lost_bytes, ..Heard::unasked(String::from_utf8_lossy(log).into_owned()) }
    }

    /// The console of a VM that was escalated, and what it said since.
    pub(super) fn escalated(escalation: &Escalation, since: &str) -> Heard {
        let since = if escalation.nmi { "" } else { since };
        Heard {
            unasked: escalation.before.clone(),
            asked: escalation.answer.clone() + since,
            lost_bytes: 0,
        }
    }

    /// The faults, in order. Backtraces that were asked for look like reports; of what came
    /// after the question only the end of a kernel or of a task counts.
    pub(super) fn faults(&self, boot: &str) -> Vec<Fault> {
        let before = boot.to_owned() + &self.unasked;
        let mut faults = detect::scan(before.as_bytes());
        let lines = before.lines().count();
        let after = detect::scan(self.asked.as_bytes()).into_iter();
        faults.extend(
            after.filter(|f| matches!(f.kind, Kind::Panic | Kind::Oops)).map(|f| Fault {
                first_line: f.first_line + lines,
                follows: None,
                ..f
            }),
        );
        faults.truncate(detect::MAX_FAULTS);
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALL: &str = "[    9.000000] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:\n";
    const PANIC: &str = "[    9.000000] Kernel panic - not syncing: a\n";

    #[test]
    fn what_was_asked_for_is_no_fault_but_an_end_is() {
        let titles = |heard: &Heard| {
            heard.faults("boot\n").into_iter().map(|f| (f.kind, f.first_line)).collect::<Vec<_>>()
        };
        let unasked = Heard::unasked(STALL.into());
        assert_eq!(titles(&unasked), [(Kind::RcuStall, 2)]);
        let asked = Heard { unasked: "x\n".into(), asked: STALL.to_owned() + PANIC, lost_bytes: 0 };
        assert_eq!(titles(&asked), [(Kind::Panic, 4)]);
    }

    #[test]
    fn a_panic_that_the_lab_forced_is_no_fault() {
        let mut escalation = Escalation { nmi: true, ..Escalation::default() };
        assert!(Heard::escalated(&escalation, PANIC).faults("").is_empty());
        escalation.nmi = false;
        assert_eq!(Heard::escalated(&escalation, PANIC).faults("").len(), 1);
    }
}
