//! Which fault is a consequence of which.

use super::fault::Fault;
use super::report::Report;
use super::rule::{Kind, Stage};

/// What a panic says that another fault called for, and the kinds of that fault.
const PANICS: &[(&str, &[Kind])] = &[
    ("Fatal exception", &[Kind::Oops]),
    ("Attempted to kill init!", &[Kind::Oops]),
    ("Aiee, killing interrupt handler!", &[Kind::Oops]),
    ("Attempted to kill the idle task!", &[Kind::Oops]),
    ("panic_on_warn set", &[Kind::Warning, Kind::Lockdep, Kind::Bug]),
    ("hung_task: blocked tasks", &[Kind::HungTask]),
    ("softlockup: hung tasks", &[Kind::SoftLockup]),
    ("Hard LOCKUP", &[Kind::HardLockup]),
    ("RCU Stall", &[Kind::RcuStall]),
    ("Out of memory", &[Kind::OutOfMemory]),
    ("out of memory", &[Kind::OutOfMemory]),
    ("System is deadlocked on memory", &[Kind::OutOfMemory]),
];

/// The index of the fault before that led to this report.
pub(super) fn cause(report: &Report, earlier: &[Fault]) -> Option<usize> {
    let last = |kinds: &[Kind]| earlier.iter().rposition(|fault| kinds.contains(&fault.kind));
    if report.kind == Kind::Panic {
        let called = PANICS.iter().find(|(text, _)| report.message.contains(text));
        return called.and_then(|(_, kinds)| last(kinds));
    }
    if report.kind == Kind::OutOfMemory && report.rule.stage == Stage::Tail {
        return last(&[Kind::OutOfMemory]);
    }
    // The kernel says that it went on after an oops: locks may be held for ever.
    report.after_oops.then(|| last(&[Kind::Oops])).flatten()
}
