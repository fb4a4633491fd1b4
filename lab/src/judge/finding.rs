//! One thing that is wrong with a case, and the choice of the worst of them.

use super::evidence::Judgement;
use super::snapshot::Pending;
use super::verdict::{Owner, Verdict};
use crate::report::escape::clip;

/// Characters of a cause.
const MAX_CAUSE: usize = 300;
/// Characters of a line of evidence.
const MAX_LINE: usize = 240;
/// Lines of evidence.
const MAX_LINES: usize = 60;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finding {
    pub(super) verdict: Verdict,
    pub(super) owner: Option<Owner>,
    pub(super) cause: String,
    pub(super) evidence: Vec<String>,
}

impl Finding {
    pub(super) fn new(verdict: Verdict, owner: Owner, cause: impl Into<String>) -> Finding {
        Finding { verdict, owner: Some(owner), cause: cause.into(), evidence: Vec::new() }
    }

    /// The kernel under test did not do what must hold.
    pub(super) fn fail(cause: impl Into<String>) -> Finding {
        Finding::new(Verdict::Fail, Owner::Kernel, cause)
    }

    /// The lab could not find out.
    pub(super) fn infra(cause: impl Into<String>) -> Finding {
        Finding::new(Verdict::Infra, Owner::Lab, cause)
    }

    pub(super) fn because(mut self, evidence: impl IntoIterator<Item = String>) -> Finding {
        self.evidence.extend(evidence);
        self
    }

    /// Greater is worse. A broken expectation is proof against the kernel; what the lab could
    /// not find out besides does not take it back.
    fn rank(&self) -> u8 {
        match self.verdict {
            Verdict::Kernel => 5,
            Verdict::Hang => 4,
            Verdict::Fail | Verdict::PerfReg => 3,
            Verdict::Infra => 2,
            Verdict::New => 1,
            _ => 0,
        }
    }
}

/// The judgement with one more finding. A pass with it is none.
pub(super) fn add(judgement: Judgement, finding: Finding) -> Judgement {
    let Judgement { verdict, owner, cause, evidence, .. } = judgement;
    let old = Finding { verdict, owner, cause, evidence };
    let mut findings = vec![finding];
    if old.rank() > 0 {
        findings.insert(0, old);
    }
    // What is judged wrong or in doubt is no candidate for a snapshot.
    conclude(findings, Vec::new())
}

/// The judgement that findings add up to: the worst decides, the first of equals, and the
/// others are named in its evidence. None is a pass.
pub(super) fn conclude(findings: Vec<Finding>, pending: Vec<Pending>) -> Judgement {
    let worst = findings.iter().map(Finding::rank).max().unwrap_or(0);
    let first = findings.iter().position(|f| f.rank() == worst);
    let Some(first) = first else {
        return Judgement {
            verdict: Verdict::Pass,
            owner: None,
            cause: String::new(),
            evidence: Vec::new(),
            snapshot_new: pending,
        };
    };
    let mut others = findings;
    let decisive = others.remove(first);
    let also = others.iter().map(|f| format!("also {}: {}", f.verdict.word(), f.cause));
    let lines = decisive.evidence.into_iter().take(MAX_LINES - others.len().min(10));
    Judgement {
        verdict: decisive.verdict,
        owner: decisive.owner,
        cause: clip(&decisive.cause, MAX_CAUSE),
        evidence: lines.chain(also.take(10)).map(|l| clip(&l, MAX_LINE)).collect(),
        snapshot_new: pending,
    }
}
