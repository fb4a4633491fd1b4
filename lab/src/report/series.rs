//! A series as its events tell it: each patch, the first bad one, what changed since an earlier
//! version. Pure; the reporters draw it.

use std::collections::BTreeSet;

use super::escape::clip;
use super::fold::{CaseState, RunFold};
use crate::judge::verdict::{Tally, Verdict};
use crate::run::events::Event;

/// Characters of a line of foreign text.
const MAX_LINE: usize = 160;
/// Problems of a patch that are shown.
const MAX_SHOWN: usize = 8;

/// A patch before its kernel ran.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchState {
    /// Name of the series.
    pub series: String,
    /// Which, from 1.
    pub number: u32,
    /// Of how many.
    pub of: u32,
    /// Title.
    pub title: String,
    /// Name of its kernel.
    pub kernel: String,
    /// `built`, or why not.
    pub result: String,
    /// Warnings, failed configurations, errors of the build.
    pub problems: Vec<String>,
    /// Milliseconds.
    pub duration_ms: u64,
}

impl PatchState {
    /// What a `patch_built` event says.
    pub(super) fn of(event: &Event) -> Option<PatchState> {
        let Event::PatchBuilt {
            series,
            number,
            of,
            title,
            kernel,
            result,
            new_warnings,
            matrix,
            detail,
            duration_ms,
        } = event
        else {
            return None;
        };
        let warnings = new_warnings.iter().map(|text| format!("new warning: {text}"));
        let failed = matrix.iter().map(|text| format!("configuration {text}"));
        Some(PatchState {
            series: series.clone(),
            number: *number,
            of: *of,
            title: title.clone(),
            kernel: kernel.clone(),
            result: result.clone(),
            problems: detail.iter().cloned().chain(warnings).chain(failed).collect(),
            duration_ms: *duration_ms,
        })
    }
}

/// A patch with what its kernel came to.
#[derive(Debug)]
pub(super) struct Judged<'a> {
    pub(super) patch: &'a PatchState,
    cases: Vec<&'a CaseState>,
    strict: bool,
}

impl Judged<'_> {
    fn count(&self, tally: Tally) -> usize {
        let of = |case: &&&CaseState| match &case.end {
            Some(end) => end.verdict.tally(self.strict) == tally,
            None => (tally == Tally::Failed) == case.started,
        };
        self.cases.iter().filter(of).count()
    }

    /// What is wrong with it, worst first; empty for a good one.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = match self.patch.result.as_str() {
            "built" => Vec::new(),
            other => vec![other.to_owned()],
        };
        problems.extend(self.patch.problems.iter().cloned());
        for case in &self.cases {
            let Some(end) = &case.end else { continue };
            // What the host did says nothing about a patch.
            if end.verdict.tally(self.strict) == Tally::Failed && end.verdict != Verdict::Infra {
                problems.push(format!("{} {}: {}", end.verdict, place(case), end.cause));
            }
        }
        problems
    }

    pub(super) fn is_good(&self) -> bool {
        self.problems().is_empty()
    }
}

/// A case without its kernel.
fn place(case: &CaseState) -> &str {
    case.case.get(case.kernel.len() + 1..).unwrap_or(&case.case)
}

/// Every patch of every series of the run.
pub(super) fn judged(fold: &RunFold) -> Vec<Judged<'_>> {
    let of = |patch: &PatchState| -> Vec<&CaseState> {
        fold.cases.iter().filter(|case| !case.base && case.kernel == patch.kernel).collect()
    };
    let judge = |patch| Judged { patch, cases: of(patch), strict: fold.strict };
    fold.patches.iter().map(judge).collect()
}

/// The table, the first bad patch, and the comparison; nothing where no series was tested.
pub(super) fn lines(fold: &RunFold) -> Vec<String> {
    let all = judged(fold);
    let mut names: Vec<&str> = Vec::new();
    for judged in &all {
        if !names.contains(&judged.patch.series.as_str()) {
            names.push(&judged.patch.series);
        }
    }
    let mut lines = Vec::new();
    for name in names {
        let own: Vec<&Judged<'_>> = all.iter().filter(|j| j.patch.series == name).collect();
        lines.push(format!("series {name}"));
        lines.extend(own.iter().map(|judged| row(judged)));
        if let Some(bad) = own.iter().find(|judged| !judged.is_good()) {
            lines.extend(first_bad(bad));
        }
        let good = own.iter().filter(|judged| judged.is_good()).count();
        lines.push(format!("{good} of {} patches good", own.len()));
    }
    if let Some((series, against)) = &fold.compared {
        lines.extend(compared(&all, series, against));
    }
    lines
}

/// `  3/8  built   10 s   6 passed 0 failed 0 skipped  title`
fn row(judged: &Judged<'_>) -> String {
    let patch = judged.patch;
    let cases = match judged.cases.len() {
        0 => String::from("-"),
        _ => format!(
            "{} passed {} failed {} skipped",
            judged.count(Tally::Passed),
            judged.count(Tally::Failed),
            judged.count(Tally::Skipped)
        ),
    };
    let mark = if judged.is_good() { "good" } else { "BAD" };
    format!(
        "  {:>2}/{} {mark:<4} {:<11} {:>4} s  {cases:<30} {}",
        patch.number,
        patch.of,
        patch.result,
        patch.duration_ms / 1000,
        clip(&patch.title, MAX_LINE)
    )
}

fn first_bad(bad: &Judged<'_>) -> Vec<String> {
    let patch = bad.patch;
    let title = clip(&patch.title, MAX_LINE);
    let mut lines = vec![format!("first bad: patch {}/{} {title}", patch.number, patch.of)];
    let problems = bad.problems();
    let shown = problems.iter().flat_map(|p| p.lines()).take(MAX_SHOWN);
    lines.extend(shown.map(|line| format!("  | {}", clip(line, MAX_LINE))));
    lines
}

/// Two versions by what is wrong with each: with any of its patches, and with its cases. A patch
/// is known by its title, a case by its place.
fn compared(all: &[Judged<'_>], series: &str, against: &str) -> Vec<String> {
    let of = |name: &str| -> BTreeSet<String> {
        let own: Vec<&Judged<'_>> = all.iter().filter(|j| j.patch.series == name).collect();
        let mut problems = BTreeSet::new();
        for judged in &own {
            if judged.patch.result != "built" {
                problems.insert(format!("{}: {}", judged.patch.result, judged.patch.title));
            }
            problems.extend(judged.patch.problems.iter().filter(|p| p.contains(": ")).cloned());
        }
        // Of the earlier version only the whole ran; it is the whole that is compared.
        let tip = own.iter().filter(|j| j.patch.number == j.patch.of);
        for case in tip.flat_map(|judged| judged.cases.iter()) {
            let failed = |v: &Verdict| v.tally(true) == Tally::Failed && *v != Verdict::Infra;
            if let Some(end) = case.end.as_ref().filter(|end| failed(&end.verdict)) {
                problems.insert(format!("{} {}", end.verdict, place(case)));
            }
        }
        problems
    };
    let (new, old) = (of(series), of(against));
    let told = |what: &str, set: Vec<&String>| -> Vec<String> {
        let head = format!("{what}: {}", set.len());
        let rest = set.into_iter().take(40).map(|p| format!("  {}", clip(p, MAX_LINE)));
        std::iter::once(head).chain(rest).collect()
    };
    let mut lines = vec![format!("{series} against {against}")];
    lines.extend(told("fixed", old.difference(&new).collect()));
    lines.extend(told("new", new.difference(&old).collect()));
    lines.extend(told("remaining", new.intersection(&old).collect()));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::samples;

    fn built(series: &str, number: u32, result: &str, warnings: &[&str]) -> Event {
        Event::PatchBuilt {
            series: series.into(),
            number,
            of: 2,
            title: format!("fuse: part {number}"),
            kernel: format!("{series}-{number}of2"),
            result: result.into(),
            new_warnings: warnings.iter().map(|w| (*w).into()).collect(),
            matrix: vec![],
            detail: vec![],
            duration_ms: 9000,
        }
    }

    fn text(events: Vec<crate::run::events::Record>) -> String {
        lines(&RunFold::of(&events)).join("\n")
    }

    #[test]
    fn the_first_bad_patch_is_the_one_that_brings_it() {
        let text = text(vec![
            samples::started(2),
            samples::at(built("v4", 1, "built", &[])),
            samples::at(built("v4", 2, "built", &["fs/a.c:1: x"])),
            samples::finished("v4-1of2/2x2/perf/a", Verdict::Pass, None, ""),
            samples::finished("v4-2of2/2x2/perf/a", Verdict::Kernel, None, "BUG in f"),
        ]);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_patch_that_does_not_apply_ends_the_series() {
        let text = text(vec![
            samples::at(built("v4", 1, "no-apply", &[])),
            samples::at(built("v4", 2, "not-reached", &[])),
        ]);
        assert!(text.contains("first bad: patch 1/2 fuse: part 1\n  | no-apply"), "{text}");
        assert!(text.ends_with("0 of 2 patches good"), "{text}");
    }

    #[test]
    fn two_versions_are_compared_by_what_is_wrong() {
        let case = |kernel: &str, scenario: &str| {
            let id = format!("{kernel}-2of2/2x2/{scenario}");
            samples::finished(&id, Verdict::Fail, None, "x")
        };
        let text = text(vec![
            samples::at(built("v5", 1, "built", &["fs/a.c:1: x"])),
            samples::at(built("v5", 2, "built", &[])),
            samples::at(built("v4", 1, "built", &[])),
            samples::at(built("v4", 2, "built", &[])),
            samples::at(Event::SeriesCompared { series: "v5".into(), against: "v4".into() }),
            case("v5", "perf/same"),
            case("v4", "perf/same"),
            case("v4", "perf/gone"),
        ]);
        let end = &text[text.find("v5 against v4").unwrap()..];
        assert_eq!(
            end,
            "v5 against v4\nfixed: 1\n  FAIL 2x2/perf/gone\nnew: 1\n  new warning: fs/a.c:1: x\n\
             remaining: 1\n  FAIL 2x2/perf/same"
        );
    }
}
