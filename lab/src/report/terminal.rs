//! For people: a line for each case as it ends, the failures again at the end, and the counts.

use std::path::PathBuf;

use anstyle::Style;
use indicatif::ProgressDrawTarget;

use super::bar::Bar;
use super::color::{self, paint};
use super::escape::clip;
use super::fold::{CaseState, RunFold};
use super::reporter::Reporter;
use super::series;
use super::sink::Sink;
use crate::judge::verdict::Verdict;
use crate::run::events::{Event, Record};

/// Characters of a line of foreign text.
const MAX_LINE: usize = 200;
/// Deciding lines of a failure that are shown; the directory has the rest.
const MAX_EVIDENCE: usize = 12;
/// Cases that were never begun and are named.
const MAX_NOT_STARTED: usize = 20;

/// How to show.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Whether to colour.
    pub color: bool,
    /// Whether standard error is a terminal and shall show a bar.
    pub bar: bool,
    /// Whether notes are left out: a run that goes on has told them on standard error.
    pub quiet_notes: bool,
    /// The run's directory, put before the directories of cases.
    pub run_dir: PathBuf,
}

/// The reporter for people. Results go to the sink, the bar to standard error.
pub struct Terminal {
    sink: Sink,
    options: Options,
    bar: Option<Bar>,
    fold: RunFold,
}

impl Terminal {
    /// Reports to `sink`.
    pub fn new(sink: Sink, options: Options) -> Terminal {
        let bar = options.bar.then(|| Bar::new(ProgressDrawTarget::stderr()));
        Terminal { sink, options, bar, fold: RunFold::default() }
    }

    fn line(&mut self, line: &str) {
        let sink = &mut self.sink;
        match &self.bar {
            Some(bar) => bar.suspend(|| sink.line(line)),
            None => sink.line(line),
        }
    }

    /// `    PASS   1.234s  (1/9) case  cause`
    fn case_line(&self, case: &CaseState) -> Option<String> {
        let end = case.end.as_ref()?;
        // A skip's reason is its cause; in the column it would push everything away.
        let text = match &end.verdict {
            Verdict::Skip { .. } => "SKIP".to_string(),
            other => other.to_string(),
        };
        let cause = match &end.verdict {
            Verdict::Skip { reason } if end.cause.is_empty() => reason,
            _ => &end.cause,
        };
        let word = paint(&format!("{text:>9}"), color::verdict(&end.verdict), self.options.color);
        let base = if case.base { " [base]" } else { "" };
        let cause = if case.compared.is_empty() {
            clip(cause, MAX_LINE)
        } else {
            format!("{} ({})", clip(cause, MAX_LINE), clip(&case.compared, MAX_LINE))
        };
        let line = format!(
            "{word} {:>8}  ({}/{}) {}{base}  {}",
            seconds(end.duration_ms),
            self.fold.finished(),
            self.fold.planned,
            clip(&case.case, MAX_LINE),
            cause.trim()
        );
        Some(line.trim_end().to_string())
    }

    /// A failure again, with all that is needed to go on.
    fn failure(&self, case: &CaseState) -> Vec<String> {
        let id = clip(&case.case, MAX_LINE);
        let (word, cause, evidence) = match &case.end {
            Some(end) => {
                let word = paint(
                    &end.verdict.to_string(),
                    color::verdict(&end.verdict),
                    self.options.color,
                );
                let owner = end.owner.map(|o| format!(" ({})", o.name())).unwrap_or_default();
                (word, format!("{}{owner}", clip(&end.cause, MAX_LINE)), end.evidence.as_slice())
            }
            None => (
                paint("NOT FINISHED", Style::new().bold(), self.options.color),
                not_finished(case),
                [].as_slice(),
            ),
        };
        let mut lines = vec![
            String::new(),
            format!("{word} {id}{}", if case.base { " [base, does not count]" } else { "" }),
            format!("  cause: {cause}"),
        ];
        if !case.compared.is_empty() {
            lines.push(format!("  base: {}", clip(&case.compared, MAX_LINE)));
        }
        lines.extend(
            evidence.iter().take(MAX_EVIDENCE).map(|l| format!("  | {}", clip(l, MAX_LINE))),
        );
        if evidence.len() > MAX_EVIDENCE {
            lines.push(format!("  | ... {} more lines", evidence.len() - MAX_EVIDENCE));
        }
        if let Some(dir) = &case.dir {
            let dir = self.options.run_dir.join(dir);
            lines.push(format!("  directory: {}", clip(&dir.to_string_lossy(), 4096)));
        }
        let quoted = shell_words::quote(&id);
        lines.push(format!("  again: lab rerun {quoted} --seed {}", case.seed));
        lines.push(format!("  more: lab show {quoted}"));
        lines
    }

    fn summary(&self) -> Vec<String> {
        // A first snapshot is nothing to repeat for each case: one line says what to do.
        let (new, failures): (Vec<&CaseState>, Vec<&CaseState>) =
            self.fold.to_look_at().partition(|case| !self.fold.strict && is_new(case));
        let mut lines: Vec<String> =
            failures.into_iter().flat_map(|case| self.failure(case)).collect();
        if !new.is_empty() {
            lines.push(String::new());
            lines.push(format!(
                "{} NEW: look at the snapshots with `cargo insta review`",
                new.len()
            ));
        }
        let not_started: Vec<&CaseState> = self.fold.not_started().collect();
        if !not_started.is_empty() {
            lines.push(String::new());
            lines.push(format!("not started, {} in all:", not_started.len()));
            let named = not_started.iter().take(MAX_NOT_STARTED);
            lines.extend(named.map(|c| format!("  {}", clip(&c.case, MAX_LINE))));
            if not_started.len() > MAX_NOT_STARTED {
                lines.push(format!("  ... {} more", not_started.len() - MAX_NOT_STARTED));
            }
        }
        let series = series::lines(&self.fold);
        if !series.is_empty() {
            lines.push(String::new());
            lines.extend(series);
        }
        if !lines.is_empty() {
            lines.push(String::new());
        }
        if self.fold.exit_code.is_none() {
            let open = self.fold.unfinished().count() + self.fold.not_started().count();
            let name = self.options.run_dir.file_name().unwrap_or_default().to_string_lossy();
            lines.push(format!(
                "the run was cut off: {open} of {} cases have no end",
                self.fold.planned
            ));
            if !name.is_empty() {
                lines.push(format!("go on with it: lab rerun --resume {name}"));
            }
        }
        if !self.options.run_dir.as_os_str().is_empty() {
            let dir = self.options.run_dir.display().to_string();
            lines.push(format!("run: {}  seed: {}", clip(&dir, 4096), self.fold.seed));
        }
        let known = self.fold.cases.iter().filter(|c| is_known(c)).count();
        if known > 0 {
            lines.push(format!("{known} KNOWN on base, counted as skipped: not passed"));
        }
        if let Some(base) = self.fold.base_counts() {
            lines.push(format!(
                "base, not counted: {} passed, {} failed, {} skipped",
                base.passed, base.failed, base.skipped
            ));
        }
        let counts = self.fold.counts();
        lines.push(format!(
            "{} passed, {} failed, {} skipped",
            counts.passed, counts.failed, counts.skipped
        ));
        lines
    }
}

fn is_new(case: &CaseState) -> bool {
    case.end.as_ref().is_some_and(|end| end.verdict == Verdict::New)
}

fn is_known(case: &CaseState) -> bool {
    !case.base && case.end.as_ref().is_some_and(|end| end.verdict == Verdict::Known)
}

/// Splats that a case was allowed, where nothing else is said of them.
fn allowed(event: &Event) -> Vec<String> {
    let Event::CaseFinished { verdict: Verdict::Pass, evidence, .. } = event else {
        return Vec::new();
    };
    let told = evidence.iter().filter(|line| line.starts_with("allowed splat"));
    told.take(3).map(|line| format!("{:>9} {}", "note", clip(line, MAX_LINE))).collect()
}

/// What is known of a case without an end.
fn not_finished(case: &CaseState) -> String {
    match &case.step {
        Some(step) => format!("did not end, it was in step `{}`", clip(step, 64)),
        None => "did not end, no step was begun".into(),
    }
}

/// `1.234s`, from a minute on `1m02s`.
fn seconds(ms: u64) -> String {
    if ms < 60_000 {
        format!("{}.{:03}s", ms / 1000, ms % 1000)
    } else {
        format!("{}m{:02}s", ms / 60_000, ms / 1000 % 60)
    }
}

impl Reporter for Terminal {
    fn on(&mut self, record: &Record) {
        self.fold.on(record);
        let line = match &record.event {
            Event::CaseFinished { case, .. } => {
                self.fold.case(case).and_then(|case| self.case_line(case))
            }
            Event::RunResumed { finished, left } => {
                Some(format!("{:>9} {finished} cases had finished, {left} are left", "resumed"))
            }
            Event::Note { .. } if self.options.quiet_notes => None,
            Event::Note { text } => Some(format!("{:>9} {}", "note", clip(text, 400))),
            Event::VmReady { kernel, topology, reason: Some(reason), .. } => Some(format!(
                "{:>9} {} {} boots each case: {}",
                "note",
                clip(kernel, MAX_LINE),
                clip(topology, 64),
                clip(reason, MAX_LINE)
            )),
            _ => None,
        };
        if let Some(line) = line {
            self.line(&line);
        }
        for line in allowed(&record.event) {
            self.line(&line);
        }
        if let Some(bar) = &self.bar {
            bar.show(&self.fold);
        }
    }

    fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.clear();
        }
        for line in self.summary() {
            self.sink.line(&line);
        }
    }
}
