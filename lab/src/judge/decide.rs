//! Which kind of end a case had, in the order in which the kinds win over each other.

use lab_proto::message::{Fault as StepFault, FaultKind};
use lab_proto::observe::Diagnosis;

use super::allowed::{self, Declared};
use super::completed;
use super::evidence::{CaseEnd, Evidence, Judgement};
use super::finding::{Finding, add, conclude};
use super::hang;
use super::taint;
use super::verdict::{Owner, Verdict};
use crate::detect::Fault;

/// Judges one case.
///
/// 1. What the kernel said of itself: a splat explains a lost agent and a broken expectation,
///    never the other way round.
/// 2. A guest with another layout than the one asked for: nothing that it did means anything.
/// 3. A taint that came up without a message.
/// 4. An end other than the last step.
/// 5. What must hold after the last step.
///
/// Splats that the scenario allows are told and do not count.
pub fn judge(evidence: &Evidence<'_>) -> Judgement {
    whole(evidence, allowed::sort(evidence))
}

/// Judges the case as if the kernel had said nothing: what else is wrong with it.
pub(super) fn without_faults(evidence: &Evidence<'_>) -> Judgement {
    let mut declared = allowed::sort(evidence);
    for fault in std::mem::take(&mut declared.undeclared) {
        declared.taint_bits |= fault.kind.taint_bits();
    }
    whole(evidence, declared)
}

fn whole(evidence: &Evidence<'_>, declared: Declared<'_>) -> Judgement {
    let mut judgement = decide(evidence, &declared);
    if *evidence.end != CaseEnd::Cancelled {
        let findings = declared.expired.iter().cloned();
        judgement = findings.fold(judgement, add);
    }
    judgement.evidence.extend(declared.notes);
    judgement
}

fn decide(evidence: &Evidence<'_>, declared: &Declared<'_>) -> Judgement {
    if let Some(finding) = splat(&declared.undeclared).or_else(|| mismatch(evidence)) {
        return conclude(vec![finding], Vec::new());
    }
    if let Some(finding) = taint::changed(evidence, declared.taint_bits) {
        return conclude(vec![finding], Vec::new());
    }
    let finding = match evidence.end {
        CaseEnd::Completed => return completed::judge(evidence),
        CaseEnd::Cancelled => return cancelled(),
        CaseEnd::StepTimeout { step, said, diagnosis } => {
            hang::timeout(step, said.as_deref(), diagnosis.as_ref())
        }
        CaseEnd::BootTimeout { limit_ms, last, diagnosis } => {
            boot_timeout(*limit_ms, last, diagnosis.as_ref())
        }
        CaseEnd::BootEnded { last } => boot_ended(last),
        CaseEnd::StepFault { step, fault } => fault_finding(evidence, step, fault),
        CaseEnd::AgentLost { step, how } => {
            Finding::infra(format!("agent lost in step `{step}`: {how}"))
        }
        CaseEnd::VmFailed { text } => Finding::new(Verdict::Infra, Owner::Host, text.as_str()),
        // A kernel that resets without a word cannot be told from a lab that powers off.
        CaseEnd::GuestPoweredOff => Finding::infra(format!(
            "guest went off by itself {}, nothing on the console says why",
            where_it_was(evidence)
        )),
    };
    conclude(vec![finding], Vec::new())
}

fn splat(undeclared: &[&Fault]) -> Option<Finding> {
    let first = undeclared.first()?;
    let told = |f: &&Fault| {
        let link = if f.follows.is_some() { " (a consequence)" } else { "" };
        format!("then{link}: {}", f.title)
    };
    let later = undeclared[1..].iter().take(8).map(told);
    let cause = match &first.place {
        Some(place) => format!("{} ({place})", first.title),
        None => first.title.clone(),
    };
    Some(
        Finding::new(Verdict::Kernel, Owner::Kernel, cause)
            .because(first.lines.iter().cloned())
            .because(later),
    )
}

/// A kernel that neither comes up nor says why hangs, as far as anybody can see.
fn boot_timeout(limit_ms: u64, last: &[String], diagnosis: Option<&Diagnosis>) -> Finding {
    let task = diagnosis.and_then(|d| hang::in_boot(&d.tasks));
    let mut cause = match last.last() {
        Some(line) => format!("kernel did not come up in {limit_ms} ms; its last line: {line}"),
        None => format!("kernel did not come up in {limit_ms} ms and printed nothing"),
    };
    if let Some(task) = task {
        cause = format!("{cause}; {}", hang::describe(task));
    }
    Finding::new(Verdict::Hang, Owner::Kernel, cause)
        .because(last.iter().cloned())
        .because(task.into_iter().flat_map(hang::stack_lines))
}

/// The image and the lab's own binary are the same for every kernel: one that goes off before
/// it reached them did not boot.
fn boot_ended(last: &[String]) -> Finding {
    let words = last.last().map_or("it printed nothing".into(), |l| format!("last line: {l}"));
    let cause = format!("kernel did not boot: the guest went off by itself; {words}");
    Finding::new(Verdict::Fail, Owner::Kernel, cause).because(last.iter().cloned())
}

fn mismatch(evidence: &Evidence<'_>) -> Option<Finding> {
    let text = evidence.topology_mismatch?;
    let name = &evidence.topology.name;
    Some(Finding::infra(format!("guest is not laid out as topology `{name}` says: {text}")))
}

fn cancelled() -> Judgement {
    let verdict = Verdict::Skip { reason: "interrupted".into() };
    conclude(
        vec![Finding { verdict, owner: None, cause: "interrupted".into(), evidence: vec![] }],
        Vec::new(),
    )
}

/// The step after the last one that was observed.
fn where_it_was(evidence: &Evidence<'_>) -> String {
    match evidence.scenario.steps.get(evidence.observations.len()) {
        Some(next) => format!("in step `{}`", next.name),
        None => "after the last step".into(),
    }
}

fn fault_finding(evidence: &Evidence<'_>, step: &str, fault: &StepFault) -> Finding {
    let text = &fault.text;
    match fault.kind {
        FaultKind::Transport => transport_fault(evidence, step, text),
        FaultKind::Server => {
            Finding::new(Verdict::Fail, Owner::Server, format!("server in step `{step}`: {text}"))
        }
        FaultKind::Unsupported => Finding::new(
            Verdict::Infra,
            Owner::Scenario,
            format!("step `{step}` cannot be done in this guest: {text}"),
        ),
        FaultKind::Hang => hang::timeout(step, Some(text), None),
        FaultKind::Agent => Finding::infra(format!("agent failed in step `{step}`: {text}")),
    }
}

/// The transport that was asked for was not had. A kernel that does not offer it owns that;
/// a kernel that offers it and a server that does not get it is the server's doing until shown
/// otherwise.
fn transport_fault(evidence: &Evidence<'_>, step: &str, text: &str) -> Finding {
    let (owner, offer) = match evidence.facts.map(|f| f.enable_uring) {
        Some(Some(true)) => (Owner::Server, "the kernel offers it"),
        Some(Some(false)) => (Owner::Kernel, "fuse.enable_uring is off"),
        Some(None) => (Owner::Kernel, "the kernel has no fuse.enable_uring"),
        None => (Owner::Server, "what the kernel offers is not known"),
    };
    let cause = format!("step `{step}` did not get the transport it asked for ({offer}): {text}");
    Finding::new(Verdict::Fail, owner, cause)
}
