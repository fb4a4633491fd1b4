//! The failure that is hunted, and whether a run shows it. Pure, over the events of runs.

use std::collections::BTreeSet;

use crate::judge::verdict::{Tally, Verdict};
use crate::run::events::{Event, Record};

/// What one failure looks like on any kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// Topology and scenario.
    pub place: String,
    /// Word of the verdict.
    pub verdict: String,
    /// Fingerprints of what the kernel said; empty where it said nothing.
    pub fingerprints: BTreeSet<String>,
    /// Whether the kernel did not come up.
    pub boot: bool,
    /// Cause, for people.
    pub cause: String,
}

/// What a run of one step says about the failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judged {
    /// It is not there.
    Good,
    /// It is there.
    Bad,
    /// The kernel fails otherwise, or does not boot: that tells nothing.
    Other(String),
    /// The lab or the host failed.
    Infra(String),
}

/// A case of a record that ended.
struct End<'a> {
    place: String,
    verdict: &'a Verdict,
    cause: &'a str,
    signature: Signature,
}

fn ends(records: &[Record]) -> Vec<End<'_>> {
    records
        .iter()
        .filter_map(|record| match &record.event {
            Event::CaseFinished { case, kernel, verdict, cause, attempts, .. } => {
                let place = case.get(kernel.len() + 1..).unwrap_or(case);
                // Repeats are one case.
                let place = place.split('#').next().unwrap_or(place).to_owned();
                let began =
                    |e: &Event| matches!(e, Event::StepStarted { case: c, .. } if c == case);
                let boot = *attempts > 0 && !records.iter().any(|r| began(&r.event));
                let marks = records.iter().filter_map(|r| match &r.event {
                    Event::CaseFaults { case: c, faults, .. } if c == case => Some(faults),
                    _ => None,
                });
                let fingerprints = marks
                    .flatten()
                    .filter(|mark| !mark.follows)
                    .map(|mark| mark.fingerprint.clone())
                    .collect();
                let signature = Signature {
                    place: place.clone(),
                    verdict: verdict.word().to_owned(),
                    fingerprints,
                    boot,
                    cause: cause.clone(),
                };
                Some(End { place, verdict, cause, signature })
            }
            _ => None,
        })
        .collect()
}

fn is_failure(verdict: &Verdict) -> bool {
    verdict.tally(false) == Tally::Failed && *verdict != Verdict::Infra
}

/// Whether nothing but boots failed: no case of the run came as far as a step of its scenario.
pub fn only_boots_failed(records: &[Record]) -> bool {
    let all = ends(records);
    let mut failed = all.iter().filter(|end| is_failure(end.verdict)).peekable();
    failed.peek().is_some() && failed.all(|end| end.signature.boot)
}

/// The failure that a run of the bad end shows: the first one.
pub fn hunted(records: &[Record]) -> Option<Signature> {
    ends(records).into_iter().find(|end| is_failure(end.verdict)).map(|end| end.signature)
}

/// Holds a run against the failure. One match is enough; good is only what passed each time.
pub fn judge(records: &[Record], wanted: &Signature) -> Judged {
    let all = ends(records);
    let own: Vec<&End<'_>> = all.iter().filter(|end| end.place == wanted.place).collect();
    let matches = |end: &&&End<'_>| {
        let seen = &end.signature;
        is_failure(end.verdict)
            && seen.verdict == wanted.verdict
            && seen.boot == wanted.boot
            && (wanted.fingerprints.is_empty()
                || !wanted.fingerprints.is_disjoint(&seen.fingerprints))
    };
    if own.iter().any(|end| matches(&end)) {
        return Judged::Bad;
    }
    if let Some(end) = own.iter().find(|end| *end.verdict == Verdict::Infra) {
        return Judged::Infra(end.cause.to_owned());
    }
    if let Some(end) = own.iter().find(|end| is_failure(end.verdict)) {
        let what = if end.signature.boot { "does not boot" } else { "fails otherwise" };
        return Judged::Other(format!("{what}: {} {}", end.verdict, end.cause));
    }
    match own.iter().all(|end| end.verdict.tally(false) == Tally::Passed) && !own.is_empty() {
        true => Judged::Good,
        false => Judged::Other("the case is skipped on it".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::Mark;
    use crate::run::samples;

    const PLACE: &str = "2x2/teardown/abort";

    fn run(kernel: &str, verdict: Verdict, fingerprints: &[&str], booted: bool) -> Vec<Record> {
        let case = format!("{kernel}/{PLACE}");
        let mut records = vec![samples::case_started(&case)];
        if booted {
            records.push(samples::at(Event::StepStarted { case: case.clone(), step: "s".into() }));
        }
        let mark = |fingerprint: &&str| Mark {
            title: "t".into(),
            fingerprint: (*fingerprint).into(),
            follows: false,
        };
        records.push(samples::at(Event::CaseFaults {
            case: case.clone(),
            attempt: 1,
            faults: fingerprints.iter().map(mark).collect(),
            ending: String::new(),
        }));
        records.push(samples::finished(&case, verdict, None, "cause"));
        records
    }

    #[test]
    fn the_same_failure_is_bad_and_another_one_tells_nothing() {
        let wanted = hunted(&run("k8", Verdict::Kernel, &["BUG f"], true)).unwrap();
        assert_eq!((wanted.place.as_str(), wanted.boot), (PLACE, false));
        let judged = |verdict, fingerprints: &[&str], booted| {
            judge(&run("k4", verdict, fingerprints, booted), &wanted)
        };
        assert_eq!(judged(Verdict::Kernel, &["WARN g", "BUG f"], true), Judged::Bad);
        assert_eq!(judged(Verdict::Pass, &[], true), Judged::Good);
        assert!(matches!(judged(Verdict::Kernel, &["BUG h"], true), Judged::Other(_)));
        assert!(matches!(judged(Verdict::Hang, &[], true), Judged::Other(_)));
        assert!(matches!(judged(Verdict::Infra, &[], true), Judged::Infra(_)));
        let Judged::Other(why) = judged(Verdict::Kernel, &["BUG f"], false) else { panic!() };
        assert!(why.starts_with("does not boot"), "{why}");
        assert!(matches!(judge(&[], &wanted), Judged::Other(_)));
    }

    #[test]
    fn a_boot_that_fails_can_be_hunted() {
        let wanted = hunted(&run("k8", Verdict::Kernel, &["panic"], false)).unwrap();
        assert!(wanted.boot);
        let bad = judge(&run("k4", Verdict::Kernel, &["panic"], false), &wanted);
        assert_eq!(bad, Judged::Bad);
        assert!(hunted(&run("k8", Verdict::Pass, &[], true)).is_none());
        assert!(hunted(&run("k8", Verdict::Infra, &[], true)).is_none());
    }

    #[test]
    fn one_match_in_many_repeats_is_bad() {
        let wanted = hunted(&run("k8", Verdict::Fail, &[], true)).unwrap();
        let mut records = run("k4", Verdict::Pass, &[], true);
        let second = format!("k4/{PLACE}#2");
        records.push(samples::at(Event::StepStarted { case: second.clone(), step: "s".into() }));
        records.push(samples::finished(&second, Verdict::Fail, None, "cause"));
        assert_eq!(judge(&records, &wanted), Judged::Bad);
    }
}
