//! What the console of a case said, by whether the lab asked for it.

use super::escalate::Escalation;
use crate::detect::{self, Fault, Kind};

/// The faults on the console of a case.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// What the kernel said unasked, from its boot on.
    unasked: Vec<Fault>,
    /// Lines before the first question.
    lines: usize,
    /// What it said after the lab had asked it for its tasks and CPUs; without an end that the
    /// lab forced upon it.
    asked: Vec<Fault>,
}

impl Heard {
    /// All of them were unasked.
    pub(super) fn unasked(faults: Vec<Fault>) -> Heard {
        Heard { unasked: faults, ..Heard::default() }
    }

    /// The log of a VM that did not come up.
    pub(super) fn log(log: &[u8]) -> Heard {
        Heard::unasked(detect::scan(log))
    }

    /// Those of a VM that was escalated, and those since the first question.
    pub(super) fn escalated(escalation: &Escalation, since: Vec<Fault>) -> Heard {
        let (unasked, lines) = escalation.before_faults.clone();
        let asked = if escalation.nmi { escalation.answer_faults.clone() } else { since };
        Heard { unasked, lines, asked }
    }

    /// The faults, in order. Backtraces that were asked for look like reports; of what came
    /// after the question only the end of a kernel or of a task counts.
    pub(super) fn faults(&self) -> Vec<Fault> {
        let mut faults = self.unasked.clone();
        let ends = |f: &&Fault| matches!(f.kind, Kind::Panic | Kind::Oops);
        faults.extend(self.asked.iter().filter(ends).map(|f| Fault {
            first_line: f.first_line + self.lines,
            follows: None,
            ..f.clone()
        }));
        faults.truncate(detect::MAX_FAULTS);
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALL: &str = "[    9.000000] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:\n";
    const PANIC: &str = "[    9.000000] Kernel panic - not syncing: a\n";

    fn faults(text: &str) -> Vec<Fault> {
        detect::scan(text.as_bytes())
    }

    #[test]
    fn what_was_asked_for_is_no_fault_but_an_end_is() {
        let kinds = |heard: &Heard| {
            heard.faults().into_iter().map(|f| (f.kind, f.first_line)).collect::<Vec<_>>()
        };
        let unasked = Heard::unasked(faults(&format!("boot\n{STALL}")));
        assert_eq!(kinds(&unasked), [(Kind::RcuStall, 2)]);
        let asked = faults(&(STALL.to_owned() + PANIC));
        let escalation = Escalation { before_faults: (Vec::new(), 2), ..Escalation::default() };
        assert_eq!(kinds(&Heard::escalated(&escalation, asked)), [(Kind::Panic, 4)]);
    }

    #[test]
    fn a_panic_that_the_lab_forced_is_no_fault() {
        let mut escalation = Escalation { nmi: true, ..Escalation::default() };
        assert!(Heard::escalated(&escalation, faults(PANIC)).faults().is_empty());
        escalation.answer_faults = faults(PANIC);
        assert_eq!(Heard::escalated(&escalation, Vec::new()).faults().len(), 1);
        escalation.nmi = false;
        assert_eq!(Heard::escalated(&escalation, faults(PANIC)).faults().len(), 1);
    }
}
