//! What a case came to, and whose doing it is.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a case came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// All that was expected held.
    Pass,
    /// An expectation did not hold.
    Fail,
    /// The kernel printed a splat, panicked or got tainted.
    Kernel,
    /// All that the kernel said is known on the base: neither a pass nor this kernel's failure.
    Known,
    /// Something did not return within its limit.
    Hang,
    /// Slower than the margin allows.
    PerfReg,
    /// Faster beyond the margin.
    PerfImp,
    /// The noise does not allow a decision.
    Undecided,
    /// Different verdicts in repeated attempts.
    Flaky {
        /// Attempts that passed.
        passed: u32,
        /// Attempts.
        of: u32,
    },
    /// No snapshot to compare with yet.
    New,
    /// Not run.
    Skip {
        /// Why.
        reason: String,
    },
    /// The lab or the host failed; says nothing about the kernel.
    Infra,
}

impl Verdict {
    /// The word shown to people.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Pass => "PASS",
            Verdict::Fail => "FAIL",
            Verdict::Kernel => "KERNEL",
            Verdict::Known => "KNOWN",
            Verdict::Hang => "HANG",
            Verdict::PerfReg => "PERF-REG",
            Verdict::PerfImp => "PERF-IMP",
            Verdict::Undecided => "UNDECIDED",
            Verdict::Flaky { .. } => "FLAKY",
            Verdict::New => "NEW",
            Verdict::Skip { .. } => "SKIP",
            Verdict::Infra => "INFRA",
        }
    }

    /// Reads what [`Verdict`] displays as: `PASS`, `FLAKY 2/3`, `SKIP reason`.
    pub fn parse(text: &str) -> Option<Verdict> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        Some(match word {
            "PASS" => Verdict::Pass,
            "FAIL" => Verdict::Fail,
            "KERNEL" => Verdict::Kernel,
            "KNOWN" => Verdict::Known,
            "HANG" => Verdict::Hang,
            "PERF-REG" => Verdict::PerfReg,
            "PERF-IMP" => Verdict::PerfImp,
            "UNDECIDED" => Verdict::Undecided,
            "NEW" => Verdict::New,
            "INFRA" => Verdict::Infra,
            "SKIP" => Verdict::Skip { reason: rest.into() },
            "FLAKY" => {
                let (passed, of) = rest.split_once('/')?;
                Verdict::Flaky { passed: passed.parse().ok()?, of: of.parse().ok()? }
            }
            _ => return None,
        })
    }

    /// How the last line of a run counts it. `strict` is set under CI.
    pub fn tally(&self, strict: bool) -> Tally {
        match self {
            Verdict::Pass | Verdict::PerfImp | Verdict::Undecided => Tally::Passed,
            Verdict::Flaky { .. } | Verdict::New if !strict => Tally::Passed,
            Verdict::Skip { .. } | Verdict::Known => Tally::Skipped,
            _ => Tally::Failed,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        match self {
            Verdict::Flaky { passed, of } => write!(f, " {passed}/{of}"),
            Verdict::Skip { reason } => write!(f, " {reason}"),
            _ => Ok(()),
        }
    }
}

impl Owner {
    /// The word shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Owner::Kernel => "kernel",
            Owner::Server => "server",
            Owner::Scenario => "scenario",
            Owner::Lab => "lab",
            Owner::Host => "host",
        }
    }
}

/// A column of the last line of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tally {
    /// Counts as passed.
    Passed,
    /// Counts as failed.
    Failed,
    /// Was not run, or shows nothing beyond what the base does.
    Skipped,
}

/// Whose doing a verdict is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Owner {
    /// The kernel under test.
    Kernel,
    /// The FUSE server.
    Server,
    /// The scenario or its snapshot.
    Scenario,
    /// The lab.
    Lab,
    /// The machine the lab runs on.
    Host,
}
