//! Verdicts to the exit code of a run.

use super::verdict::{Tally, Verdict};

/// All passed.
pub const PASSED: u8 = 0;
/// A case failed.
pub const FAILED: u8 = 1;
/// Usage or configuration.
pub const USAGE: u8 = 2;
/// The lab or the host failed.
pub const LAB: u8 = 3;
/// Nothing ran.
pub const NOTHING: u8 = 4;
/// Interrupted.
pub const INTERRUPTED: u8 = 130;

/// How a run went, apart from its verdicts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The user interrupted it.
    pub interrupted: bool,
    /// Usage or configuration was wrong.
    pub usage: bool,
    /// The lab could not do what it was asked for, apart from any case.
    pub lab_failed: bool,
    /// A patch of the series under test is bad by itself.
    pub patch_failed: bool,
    /// NEW and FLAKY fail.
    pub strict: bool,
    /// Whether a verdict on time counts: on KVM, or with `--gate-time`.
    pub gate_time: bool,
    /// Cases planned. A run that saw fewer, or more, has lost count.
    pub planned: usize,
}

/// The exit code: the first of 130, 2, 1, 3, 4 that holds, else 0.
pub fn exit_code(outcome: &Outcome, verdicts: &[Verdict]) -> u8 {
    let failed = |v: &Verdict| match v {
        Verdict::Infra => false,
        Verdict::PerfReg => outcome.gate_time,
        _ => v.tally(outcome.strict) == Tally::Failed,
    };
    let infra = || verdicts.contains(&Verdict::Infra) || verdicts.len() != outcome.planned;
    if outcome.interrupted {
        INTERRUPTED
    } else if outcome.usage {
        USAGE
    } else if outcome.patch_failed || verdicts.iter().any(failed) {
        FAILED
    } else if outcome.lab_failed || infra() {
        LAB
    } else if verdicts.iter().all(|v| matches!(v, Verdict::Skip { .. } | Verdict::Known)) {
        NOTHING
    } else {
        PASSED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(outcome: Outcome, verdicts: &[Verdict]) -> u8 {
        exit_code(&Outcome { planned: verdicts.len(), ..outcome }, verdicts)
    }

    #[test]
    fn each_verdict_alone() {
        let lax = Outcome::default();
        let strict = Outcome { strict: true, ..lax };
        let skip = Verdict::Skip { reason: "x".into() };
        let flaky = Verdict::Flaky { passed: 1, of: 3 };
        for (verdict, wanted, under_ci) in [
            (Verdict::Pass, 0, 0),
            (Verdict::PerfImp, 0, 0),
            (Verdict::Undecided, 0, 0),
            (Verdict::Fail, 1, 1),
            (Verdict::Kernel, 1, 1),
            (Verdict::Hang, 1, 1),
            (Verdict::PerfReg, 0, 0),
            (Verdict::New, 0, 1),
            (flaky, 0, 1),
            (skip, 4, 4),
            (Verdict::Known, 4, 4),
            (Verdict::Infra, 3, 3),
        ] {
            assert_eq!(code(lax, std::slice::from_ref(&verdict)), wanted, "{verdict}");
            assert_eq!(code(strict, std::slice::from_ref(&verdict)), under_ci, "{verdict}");
        }
        let gated = Outcome { gate_time: true, ..lax };
        assert_eq!(code(gated, &[Verdict::PerfReg]), 1);
    }

    #[test]
    fn the_first_that_holds_wins() {
        let all = [Verdict::Pass, Verdict::Infra, Verdict::Fail];
        let lax = Outcome::default();
        assert_eq!(code(Outcome { interrupted: true, usage: true, ..lax }, &all), 130);
        assert_eq!(code(Outcome { usage: true, ..lax }, &all), 2);
        assert_eq!(code(Outcome { lab_failed: true, ..lax }, &all), 1);
        assert_eq!(code(lax, &all[..2]), 3);
        assert_eq!(code(Outcome { lab_failed: true, ..lax }, &[]), 3);
        assert_eq!(code(lax, &[]), 4);
        assert_eq!(code(lax, &[Verdict::Pass, Verdict::Known]), 0);
    }

    #[test]
    fn a_lost_case_is_no_pass() {
        let outcome = Outcome { planned: 2, ..Outcome::default() };
        assert_eq!(exit_code(&outcome, &[Verdict::Pass]), 3);
        assert_eq!(exit_code(&outcome, &[Verdict::Fail]), 1);
    }
}
