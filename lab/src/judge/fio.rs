//! What a fio step left behind, judged for sanity only; speed is compared elsewhere.

use lab_proto::observe::{FioObservation, Observation};
use lab_proto::step::Step;

use super::evidence::Evidence;
use super::finding::Finding;
use crate::perf::fio::{self, FioRun};

/// Output that is no result is the lab's failure, whatever else was expected of the step.
pub(super) fn artifacts(evidence: &Evidence<'_>) -> Vec<Finding> {
    let broken = |(step, observation): &(String, Observation)| match observation {
        // A fio that failed has written why instead; the rule on the step tells of it.
        Observation::Fio(f) if f.exit == "exit 0" => parse(evidence, f)
            .err()
            .map(|why| Finding::infra(format!("step `{step}`: {why}")).because(stderr(f))),
        _ => None,
    };
    evidence.observations.iter().filter_map(broken).collect()
}

/// Exit 0, I/Os in each direction of the job, no errors, nothing short or dropped.
pub(super) fn sane(evidence: &Evidence<'_>, step: &str, seen: &FioObservation) -> Option<Finding> {
    if seen.exit != "exit 0" {
        let finding = Finding::fail(format!("fio ended with {}", seen.exit));
        return Some(finding.because(stderr(seen)));
    }
    // What cannot be parsed is found by `artifacts`.
    let run = parse(evidence, seen).ok()?;
    let job = run.jobs.iter().find(|j| j.error != 0);
    let (short, drop) = (run.sum(|d| d.short_ios), run.sum(|d| d.drop_ios));
    let wrong = if let Some(job) = job {
        format!("fio job `{}` failed with errno {}", job.name, job.error)
    } else if let Some(direction) = idle(evidence, step, &run) {
        format!("fio made no {direction}")
    } else if short > 0 || drop > 0 {
        format!("fio had {short} short and {drop} dropped I/Os")
    } else {
        return None;
    };
    Some(Finding::fail(wrong).because(stderr(seen)))
}

/// The direction that the job asks for and did nothing in.
fn idle(evidence: &Evidence<'_>, step: &str, run: &FioRun) -> Option<&'static str> {
    let named = evidence.scenario.steps.iter().find(|s| s.name == step)?;
    let Step::Fio { rw, .. } = &named.step else { return None };
    let reads = run.jobs.iter().any(|j| j.read.total_ios > 0);
    let writes = run.jobs.iter().any(|j| j.write.total_ios > 0);
    let mixed = rw.contains("rw") || rw.contains("readwrite");
    if (mixed || rw.contains("read")) && !reads {
        return Some("reads");
    }
    ((mixed || rw.contains("write")) && !writes).then_some("writes")
}

fn parse(evidence: &Evidence<'_>, seen: &FioObservation) -> Result<FioRun, String> {
    let found = evidence.artifacts.iter().find(|(name, _)| *name == seen.artifact);
    let (_, bytes) = found.ok_or_else(|| format!("artifact `{}` did not arrive", seen.artifact))?;
    if bytes.len() as u64 != seen.artifact_bytes {
        let (got, of) = (bytes.len(), seen.artifact_bytes);
        return Err(format!("artifact `{}` has {got} of {of} bytes", seen.artifact));
    }
    fio::parse(bytes).map_err(|e| e.to_string())
}

fn stderr(seen: &FioObservation) -> Vec<String> {
    let lines: Vec<&str> = seen.stderr.lines().collect();
    lines[lines.len().saturating_sub(10)..].iter().map(|l| format!("fio: {l}")).collect()
}
