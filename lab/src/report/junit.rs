//! JUnit XML, one suite for each kernel and topology. Written at the end.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::escape::clip;
use super::fold::{CaseEnd, CaseState, RunFold};
use super::reporter::Reporter;
use super::series::{self, Judged};
use super::sink::Sink;
use crate::judge::verdict::{Tally, Verdict};
use crate::run::events::Record;

/// Characters of a line.
const MAX_LINE: usize = 400;

/// The reporter for CI systems.
pub struct Junit {
    sink: Sink,
    fold: RunFold,
}

impl Junit {
    /// Reports to `sink`.
    pub fn new(sink: Sink) -> Junit {
        Junit { sink, fold: RunFold::default() }
    }
}

impl Reporter for Junit {
    fn on(&mut self, record: &Record) {
        self.fold.on(record);
    }

    fn finish(&mut self) {
        // What is escaped is valid XML; the error of a writer in memory cannot happen.
        if let Ok(text) = render(&self.fold).to_string() {
            self.sink.text(&text);
        }
    }
}

fn render(fold: &RunFold) -> Report {
    let mut report = Report::new("lab");
    report.set_time(Duration::from_millis(fold.duration_ms.unwrap_or(0)));
    let mut suites: Vec<(String, TestSuite)> = Vec::new();
    for case in &fold.cases {
        let name = format!("{}/{}", clip(&case.kernel, MAX_LINE), clip(&case.topology, MAX_LINE));
        let test = test_case(case, &name, fold.strict);
        let index = suites.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            suites.push((name.clone(), TestSuite::new(name.as_str())));
            suites.len() - 1
        });
        suites[index].1.add_test_case(test);
    }
    let patches = series::judged(fold);
    if !patches.is_empty() {
        let mut suite = TestSuite::new("patches");
        suite.add_test_cases(patches.iter().map(patch_case));
        report.add_test_suite(suite);
    }
    report.add_test_suites(suites.into_iter().map(|(_, suite)| suite));
    report
}

fn patch_case(judged: &Judged<'_>) -> TestCase {
    let (patch, problems) = (judged.patch, judged.problems());
    let status = match problems.first() {
        None => TestCaseStatus::success(),
        Some(first) => failure(NonSuccessKind::Failure, &patch.result, first, &problems),
    };
    let name = format!("{} {}/{} {}", patch.series, patch.number, patch.of, patch.title);
    let mut test = TestCase::new(clip(&name, MAX_LINE), status);
    test.set_classname("patches");
    test.set_time(Duration::from_millis(patch.duration_ms));
    test
}

fn test_case(case: &CaseState, suite: &str, strict: bool) -> TestCase {
    let status = match &case.end {
        Some(end) if case.base && end.verdict.tally(strict) == Tally::Failed => {
            skipped(&format!("base, does not count: {} {}", end.verdict, end.cause))
        }
        Some(end) => ended(end, strict),
        None if case.base => skipped("base, not finished"),
        None if case.started => failure(NonSuccessKind::Error, "NOT-FINISHED", "not finished", &[]),
        None => skipped("not started"),
    };
    let mut test = TestCase::new(clip(case.name(), MAX_LINE), status);
    test.set_classname(suite);
    test.set_time(Duration::from_millis(case.end.as_ref().map_or(0, |e| e.duration_ms)));
    if let Some(dir) = &case.dir {
        test.set_system_out(format!(
            "directory {}, seed {}{}",
            clip(dir, MAX_LINE),
            case.seed,
            if case.compared.is_empty() {
                String::new()
            } else {
                format!("\nbase: {}", clip(&case.compared, MAX_LINE))
            }
        ));
    }
    test
}

fn ended(end: &CaseEnd, strict: bool) -> TestCaseStatus {
    let word = end.verdict.word();
    match (&end.verdict, end.verdict.tally(strict)) {
        (Verdict::Skip { reason }, _) => skipped(reason),
        (Verdict::Known, _) => skipped(&end.cause),
        (_, Tally::Passed) => TestCaseStatus::success(),
        (Verdict::Infra, _) => failure(NonSuccessKind::Error, word, &end.cause, &end.evidence),
        _ => failure(NonSuccessKind::Failure, word, &end.cause, &end.evidence),
    }
}

fn skipped(reason: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(clip(reason, MAX_LINE));
    status
}

fn failure(kind: NonSuccessKind, word: &str, cause: &str, evidence: &[String]) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(word).set_message(clip(cause, MAX_LINE));
    let lines: Vec<String> = evidence.iter().map(|l| clip(l, MAX_LINE)).collect();
    status.set_description(lines.join("\n"));
    status
}
