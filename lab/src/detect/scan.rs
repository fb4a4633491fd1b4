//! Looks for faults in a console log that may be long, torn, mixed or hostile.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::fault::{Fault, MAX_FAULTS};
use super::follow;
use super::printk::{self, Message};
use super::report::{Report, Trace, cpu_of, keep};
use super::rule::{Kind, Rule, Stage};
use super::rules::rules;
use super::symbol;
use super::title::title;

/// Bytes of a line that are looked at.
const MAX_LINE: usize = 4096;

/// Lines kept before a fault.
const BEFORE: usize = 2;

/// Reports that may be mixed with each other.
const MAX_OPEN: usize = 16;

/// All faults of a console log, the first [`MAX_FAULTS`] different ones, in order.
///
/// The messages of one report are one fault; a panic that follows it is another, linked to it.
/// What is reported again, by the same functions, is counted and not listed again.
pub fn scan(console: &[u8]) -> Vec<Fault> {
    scan_with(console, &rules())
}

pub(super) fn scan_with(console: &[u8], rules: &[Rule]) -> Vec<Fault> {
    let mut scan = Scan::with(rules.to_vec());
    scan.push(console);
    scan.faults()
}

/// A scan of a console while it comes in: in pieces of any size it finds what [`scan`] finds in
/// the whole. It keeps the start of one line and a bounded number of bounded reports.
#[derive(Debug, Clone)]
pub struct Scan {
    rules: Vec<Rule>,
    /// The start of the line that has no end yet.
    line: Vec<u8>,
    /// Lines before that one.
    lines: usize,
    /// Reports that more lines may belong to, oldest first.
    open: Vec<Report>,
    done: Vec<Done>,
    before: VecDeque<String>,
}

/// A report that is over.
#[derive(Debug, Clone)]
struct Done {
    report: Report,
    fingerprint: String,
    times: u32,
}

impl Default for Scan {
    fn default() -> Scan {
        Scan::with(rules())
    }
}

impl Scan {
    fn with(rules: Vec<Rule>) -> Scan {
        Scan {
            rules,
            line: Vec::new(),
            lines: 0,
            open: Vec::new(),
            done: Vec::new(),
            before: VecDeque::new(),
        }
    }

    /// Takes what came next.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut pieces = bytes.split(|b| *b == b'\n');
        self.grow(pieces.next().unwrap_or_default());
        for piece in pieces {
            self.line_done();
            self.grow(piece);
        }
    }

    /// Lines that came to their end.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// The faults in all that came so far.
    pub fn faults(&self) -> Vec<Fault> {
        let mut end = self.clone();
        end.line_done();
        end.close(true);
        end.sorted()
    }

    /// No line is looked at beyond its bound, so what is behind it is not kept.
    fn grow(&mut self, piece: &[u8]) {
        let room = (MAX_LINE - self.line.len()).min(piece.len());
        self.line.extend_from_slice(&piece[..room]);
    }

    fn line_done(&mut self) {
        self.lines += 1;
        // Nothing can come of it, and a console may have millions of them.
        if self.line.is_empty() && self.open.is_empty() {
            return;
        }
        let raw = std::mem::take(&mut self.line);
        if !self.full() {
            self.look(&text(&raw));
        }
        self.line = raw;
        self.line.clear();
    }

    fn look(&mut self, line: &str) {
        for message in printk::messages(line) {
            self.message(self.lines, line, &message);
        }
        self.close(false);
        if !self.full() {
            self.remember(line);
        }
    }

    fn message(&mut self, number: usize, line: &str, message: &Message<'_>) {
        let Some((rule, rest)) = self.find(message.text) else {
            if let Some(report) = self.owner(message) {
                report.feed(message.text);
                report.keep(line, message.text);
            }
            return;
        };
        let caller = message.caller;
        let mut same = self.open.iter_mut().filter(|r| r.caller.as_deref() == caller);
        if let Some(report) = same.find(|report| report.takes(&rule)) {
            report.take(&rule, message.text, rest, number);
            report.keep(line, message.text);
            return;
        }
        self.supersede(caller, rule.kind);
        let before = self.before.iter().cloned();
        let mut report = Report::begin(&rule, message.text, rest, caller, number, before);
        report.keep(line, message.text);
        self.open.push(report);
    }

    /// The first rule that fits the message, and what follows its start.
    fn find<'m>(&self, text: &'m str) -> Option<(Rule, &'m str)> {
        if text.is_empty() {
            return None;
        }
        self.rules.iter().find_map(|rule| rule.rest(text).map(|rest| (*rule, rest)))
    }

    /// Ends what cannot go on when something new begins.
    fn supersede(&mut self, caller: Option<&str>, kind: Kind) {
        for report in self.open.iter_mut().filter(|r| r.caller.as_deref() == caller) {
            // A text alone, or a trace that is through: what comes is not of that report.
            report.ended |= kind == Kind::Panic
                || report.kind == Kind::Taint
                || report.trace == Trace::Over
                || caller.is_some();
        }
    }

    /// The report that a message belongs to: by its caller when the kernel tells, and else by
    /// what each of the open reports still lacks.
    fn owner(&mut self, message: &Message<'_>) -> Option<&mut Report> {
        let text = message.text;
        // The latest first: one that began before may be a single line, which nothing ends.
        let fits: Vec<usize> = (0..self.open.len())
            .filter(|i| self.open[*i].caller.as_deref() == message.caller && !self.open[*i].ended)
            .collect();
        let at = |want: &dyn Fn(&Report) -> bool| {
            fits.iter().rev().copied().find(|i| want(&self.open[*i]))
        };
        let begun = |r: &Report| r.trace == Trace::Begun;
        let by_text = if let Some(rip) = text.strip_prefix("RIP: 0010:") {
            let function = symbol::first(rip);
            let named = function.and_then(|f| at(&|r| r.names(&f)));
            named.or_else(|| at(&|r| !r.has_rip()))
        } else if text.starts_with("CPU: ") {
            let cpu = cpu_of(text);
            at(&|r| r.cpu == cpu && cpu.is_some()).or_else(|| at(&|r| r.cpu.is_none()))
        } else if text.starts_with("Call Trace:") {
            at(&|r| r.trace == Trace::Awaited)
        } else if text.starts_with("---[ end ") {
            at(&|r| r.trace == Trace::Over && r.has_end_mark()).or_else(|| at(&begun))
        } else if let Some(function) = symbol::frame(text) {
            // A function that may be of either report would make both look new.
            let either = fits.iter().filter(|i| begun(&self.open[**i])).count() > 1;
            match at(&|r| r.names(&function)) {
                None if either => return None,
                named => named.or_else(|| at(&begun)),
            }
        } else {
            at(&begun)
        };
        let index = by_text.or_else(|| fits.last().copied())?;
        self.open.get_mut(index)
    }

    /// Moves what is over, or everything, to the end of the list.
    fn close(&mut self, all: bool) {
        let too_many = self.open.len() > MAX_OPEN;
        let mut index = 0;
        while index < self.open.len() {
            if all || self.open[index].ended || (too_many && index == 0) {
                let report = self.open.remove(index);
                self.finish(report);
            } else {
                index += 1;
            }
        }
    }

    fn finish(&mut self, report: Report) {
        // Nothing came after the line that opens a report: it belonged to a text before it.
        if report.stage == Stage::Cut && report.function().is_none() {
            return;
        }
        let fingerprint = report.fingerprint(&title(&report));
        match self.done.iter_mut().find(|seen| seen.fingerprint == fingerprint) {
            Some(seen) => seen.times = seen.times.saturating_add(1),
            None => self.done.push(Done { report, fingerprint, times: 1 }),
        }
    }

    fn full(&self) -> bool {
        self.done.len() >= MAX_FAULTS
    }

    fn remember(&mut self, line: &str) {
        let kept = keep(line.trim_end());
        if kept.is_empty() {
            return;
        }
        if self.before.len() == BEFORE {
            self.before.pop_front();
        }
        self.before.push_back(kept);
    }

    fn sorted(mut self) -> Vec<Fault> {
        self.done.sort_by_key(|done| done.report.first_line);
        self.done.truncate(MAX_FAULTS);
        let mut faults: Vec<Fault> = Vec::new();
        for Done { report, fingerprint, times } in self.done {
            let title = title(&report);
            faults.push(Fault {
                kind: report.kind,
                rule: report.rule.name,
                fingerprint,
                follows: follow::cause(&report, &faults),
                title,
                place: None,
                message: report.message,
                lines: report.lines,
                first_line: report.first_line,
                times,
            });
        }
        faults
    }
}

/// The line as text without control characters.
fn text(raw: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(&raw[..raw.len().min(MAX_LINE)]);
    if text.chars().any(char::is_control) {
        return text.chars().filter(|c| !c.is_control() || *c == '\t').collect::<String>().into();
    }
    text
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
