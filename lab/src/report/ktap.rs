//! KTAP version 1, nested by kernel and topology. Written at the end, as its plan comes first.

use super::escape::clip;
use super::fold::{CaseState, RunFold};
use super::reporter::Reporter;
use super::series::{self, Judged};
use super::sink::Sink;
use crate::judge::verdict::{Tally, Verdict};
use crate::run::events::Record;

/// Characters of a diagnostic line.
const MAX_LINE: usize = 240;

/// The reporter for what reads kernel test results.
pub struct Ktap {
    sink: Sink,
    fold: RunFold,
}

impl Ktap {
    /// Reports to `sink`.
    pub fn new(sink: Sink) -> Ktap {
        Ktap { sink, fold: RunFold::default() }
    }
}

impl Reporter for Ktap {
    fn on(&mut self, record: &Record) {
        self.fold.on(record);
    }

    fn finish(&mut self) {
        let text = render(&self.fold);
        self.sink.text(&text);
    }
}

/// A result of any level.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Ok,
    Skip,
    NotOk,
}

impl Outcome {
    /// Of a level from what it holds: all skipped is a skip, any failure a failure.
    fn of(parts: &[Outcome]) -> Outcome {
        if parts.contains(&Outcome::NotOk) {
            Outcome::NotOk
        } else if parts.iter().all(|o| *o == Outcome::Skip) {
            Outcome::Skip
        } else {
            Outcome::Ok
        }
    }
}

fn render(fold: &RunFold) -> String {
    let mut out = vec!["KTAP version 1".to_string()];
    let kernels = groups(fold.cases.iter(), |c| &c.kernel);
    let patches = series::judged(fold);
    let first = usize::from(!patches.is_empty());
    out.push(format!("1..{}", kernels.len() + first));
    if first == 1 {
        let (lines, outcome) = patch_lines(&patches);
        out.extend(lines.into_iter().map(|l| format!("  {l}")));
        out.push(result(0, "patches", outcome, None));
    }
    for (index, (kernel, cases)) in kernels.iter().enumerate() {
        let (lines, outcome) = kernel_lines(kernel, cases, fold.strict);
        out.extend(lines.into_iter().map(|l| format!("  {l}")));
        out.push(result(index + first, kernel, outcome, None));
    }
    if fold.exit_code.is_none() {
        out.push("# the run was cut off".into());
    }
    let counts = fold.counts();
    out.push(format!(
        "# Totals: pass:{} fail:{} skip:{} error:0",
        counts.passed, counts.failed, counts.skipped
    ));
    out.push(String::new());
    out.join("\n")
}

/// The patches of a series: applied, built, and good as far as their own cases say.
fn patch_lines(patches: &[Judged<'_>]) -> (Vec<String>, Outcome) {
    let mut out = head("patches", patches.len());
    let mut outcomes = Vec::new();
    for (index, judged) in patches.iter().enumerate() {
        let problems = judged.problems();
        let lines = problems.iter().flat_map(|problem| problem.lines());
        out.extend(lines.map(|l| format!("# {}", clip(l, MAX_LINE)).trim_end().to_string()));
        let outcome = if problems.is_empty() { Outcome::Ok } else { Outcome::NotOk };
        let patch = judged.patch;
        let name = format!("{} {}/{} {}", patch.series, patch.number, patch.of, patch.title);
        out.push(result(index, &name, outcome, None));
        outcomes.push(outcome);
    }
    (out, Outcome::of(&outcomes))
}

fn kernel_lines(kernel: &str, cases: &[&CaseState], strict: bool) -> (Vec<String>, Outcome) {
    let topologies = groups(cases.iter().copied(), |c| &c.topology);
    let mut out = head(kernel, topologies.len());
    let mut outcomes = Vec::new();
    for (index, (topology, cases)) in topologies.iter().enumerate() {
        out.extend(head(topology, cases.len()).into_iter().map(|l| format!("  {l}")));
        let results: Vec<Outcome> = cases.iter().map(|c| outcome(c, strict)).collect();
        for (at, (case, result)) in cases.iter().zip(&results).enumerate() {
            out.extend(case_lines(at, case, *result).into_iter().map(|l| format!("  {l}")));
        }
        outcomes.push(Outcome::of(&results));
        out.push(result(index, topology, Outcome::of(&results), None));
    }
    (out, Outcome::of(&outcomes))
}

fn head(name: &str, plan: usize) -> Vec<String> {
    vec!["KTAP version 1".into(), format!("# Subtest: {}", label(name)), format!("1..{plan}")]
}

fn outcome(case: &CaseState, strict: bool) -> Outcome {
    match &case.end {
        Some(end) => match end.verdict.tally(strict) {
            Tally::Passed => Outcome::Ok,
            Tally::Skipped => Outcome::Skip,
            // A failure of the base is none of the kernel under test.
            Tally::Failed if case.base => Outcome::Skip,
            Tally::Failed => Outcome::NotOk,
        },
        None if case.started && !case.base => Outcome::NotOk,
        None => Outcome::Skip,
    }
}

/// Diagnostics come before the result that they belong to.
fn case_lines(index: usize, case: &CaseState, outcome: Outcome) -> Vec<String> {
    let mut lines = Vec::new();
    let mut reason = None;
    if !case.compared.is_empty() {
        lines.push(format!("base: {}", case.compared));
    }
    match &case.end {
        Some(end) => {
            if let Verdict::Skip { reason: why } = &end.verdict {
                reason = Some(why.as_str());
            } else if end.verdict != Verdict::Pass {
                let owner = end.owner.map(|o| format!(" ({})", o.name())).unwrap_or_default();
                lines.push(format!("{}{owner}: {}", end.verdict, end.cause));
                lines.extend(end.evidence.iter().cloned());
                if end.verdict == Verdict::Known {
                    reason = Some(end.cause.as_str());
                } else if case.base {
                    reason = Some("base, does not count");
                }
            }
        }
        None if case.started => lines.push("not finished".into()),
        None => reason = Some("not started"),
    }
    let mut out: Vec<String> =
        lines.iter().map(|l| format!("# {}", clip(l, MAX_LINE)).trim_end().to_string()).collect();
    out.push(result(index, case.name(), outcome, reason));
    out
}

fn result(index: usize, name: &str, outcome: Outcome, reason: Option<&str>) -> String {
    let word = if outcome == Outcome::NotOk { "not ok" } else { "ok" };
    let skip = match (outcome, reason) {
        (Outcome::Skip, Some(reason)) => {
            format!(" # SKIP {}", clip(reason, MAX_LINE).replace('#', "@"))
        }
        (Outcome::Skip, None) => " # SKIP".into(),
        _ => String::new(),
    };
    format!("{word} {} {}{skip}", index + 1, label(name))
}

/// A name without `#`, which begins a directive: `tree#2` becomes `tree@2`.
fn label(name: &str) -> String {
    clip(name, MAX_LINE).replace('#', "@")
}

/// Cases by a key, in the order in which the keys come first.
fn groups<'a>(
    cases: impl Iterator<Item = &'a CaseState>,
    key: impl Fn(&CaseState) -> &String,
) -> Vec<(String, Vec<&'a CaseState>)> {
    let mut groups: Vec<(String, Vec<&CaseState>)> = Vec::new();
    for case in cases {
        let name = key(case);
        match groups.iter_mut().find(|(known, _)| known == name) {
            Some((_, members)) => members.push(case),
            None => groups.push((name.clone(), vec![case])),
        }
    }
    groups
}
