//! One report while its lines come in: what is known of it so far.

use super::rule::{Kind, Rule, Stage};
use super::symbol;

/// Characters of a line that are kept.
pub(super) const MAX_KEPT: usize = 240;

/// Lines kept from the message on.
pub(super) const MAX_LINES: usize = 40;

/// Messages after which a report without an end is over.
const MAX_MESSAGES: usize = 150;

/// Messages between a text and the report that it belongs to, without and with a dump.
const MAX_GAP: usize = 3;
const MAX_DUMP: usize = 80;

/// Functions of a stack trace that are looked at.
const MAX_FRAMES: usize = 64;

/// Functions in a fingerprint.
const FINGERPRINT: usize = 3;

/// Beginnings of lines that hold registers and code bytes only.
const REGISTERS: &[&str] = &[
    "RAX: ", "RBX: ", "RCX: ", "RDX: ", "RSI: ", "RDI: ", "RBP: ", "RSP: ", "R08: ", "R10: ",
    "R13: ", "FS:  ", "CS:  ", "CR2: ", "CR3: ", "DR0: ", "DR3: ", "PKRU: ", "Code: ", "R09: ",
];

/// Headings of stacks that are not that of the fault.
const OTHER_STACKS: &[&str] = &[
    "Allocated by",
    "Freed by",
    "allocated by",
    "freed by",
    "Last potentially related",
    "Second to last",
    "The buggy address",
    "the existing dependency chain",
    "stack backtrace of",
];

/// One report.
#[derive(Debug, Clone)]
pub(super) struct Report {
    pub(super) rule: Rule,
    pub(super) kind: Kind,
    /// The latest part that was seen.
    pub(super) stage: Stage,
    pub(super) caller: Option<String>,
    pub(super) message: String,
    pub(super) rest: String,
    pub(super) first_line: usize,
    pub(super) lines: Vec<String>,
    /// Read or Write, of KASAN.
    pub(super) access: Option<&'static str>,
    /// The kernel said that an oops came before.
    pub(super) after_oops: bool,
    /// CPU that reports.
    pub(super) cpu: Option<u32>,
    /// A stack trace began, and ended.
    pub(super) trace: Trace,
    /// No more lines belong to it.
    pub(super) ended: bool,
    /// Messages since it began.
    pub(super) age: usize,
    before: usize,
    /// In the message or beside it.
    named: Option<String>,
    rip: Option<String>,
    frames: Vec<String>,
}

/// How far the stack trace of a report is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trace {
    Awaited,
    Begun,
    Over,
}

impl Report {
    /// A report that begins with this message; `before` are the lines before it.
    pub(super) fn begin(
        rule: &Rule,
        text: &str,
        rest: &str,
        caller: Option<&str>,
        line: usize,
        before: impl Iterator<Item = String>,
    ) -> Report {
        let lines: Vec<String> = before.collect();
        let mut report = Report {
            rule: *rule,
            kind: rule.kind,
            stage: rule.stage,
            caller: caller.map(str::to_owned),
            message: String::new(),
            rest: String::new(),
            first_line: line,
            before: lines.len(),
            lines,
            access: None,
            after_oops: false,
            cpu: None,
            trace: Trace::Awaited,
            ended: false,
            age: 0,
            named: None,
            rip: None,
            frames: Vec::new(),
        };
        report.say(text, rest);
        report
    }

    fn say(&mut self, text: &str, rest: &str) {
        self.message = keep(text);
        self.rest = keep(rest);
        // What a text names is an object, not a place.
        self.named = symbol::first(text).filter(|_| self.rule.stage != Stage::Text);
        self.cpu = cpu_of(text).or(self.cpu);
    }

    /// Whether a message that this rule found is a part of the report, not a new one.
    pub(super) fn takes(&self, rule: &Rule) -> bool {
        if self.ended || self.trace == Trace::Over {
            return false;
        }
        match (self.stage, rule.stage) {
            (Stage::Cut, stage) => stage > Stage::Cut,
            // A text may come before the line that opens its report.
            (Stage::Text, Stage::Cut) => {
                self.age <= if self.kind == Kind::Bug { MAX_DUMP } else { MAX_GAP }
            }
            (Stage::Text, Stage::Plain) => true,
            // A head that was torn is no more than a BUG.
            (_, Stage::Tail) => self.kind == rule.kind || self.kind == Kind::Bug,
            _ => false,
        }
    }

    /// Adds a message of a later stage.
    pub(super) fn take(&mut self, rule: &Rule, text: &str, rest: &str, line: usize) {
        match self.stage {
            Stage::Cut => {
                (self.rule, self.kind, self.first_line) = (*rule, rule.kind, line);
                self.say(text, rest);
            }
            Stage::Text if rule.stage == Stage::Plain => {
                self.kind = rule.kind;
                self.named = symbol::first(text);
                self.cpu = cpu_of(text).or(self.cpu);
            }
            _ if rule.stage == Stage::Tail => self.kind = rule.kind,
            _ => {}
        }
        self.stage = self.stage.max(rule.stage);
        self.feed(text);
    }

    /// Adds a message that no rule knows.
    pub(super) fn feed(&mut self, text: &str) {
        self.age += 1;
        self.after_oops |= says_after_oops(text);
        if let Some(rest) = text.strip_prefix("RIP: 0010:").or(text.strip_prefix("pc : ")) {
            self.rip = self.rip.take().or_else(|| symbol::first(rest));
        } else if text.starts_with("CPU: ") {
            self.cpu = self.cpu.or_else(|| cpu_of(text));
        } else if text.starts_with("Read of size") || text.starts_with("read to 0x") {
            self.access = self.access.or(Some("Read"));
        } else if text.starts_with("Write of size") {
            self.access = self.access.or(Some("Write"));
        } else if let Some((_, function)) = text.split_once("workfn=") {
            self.named = function.split_whitespace().next().map(str::to_owned);
        } else if self.kind == Kind::Lockdep && self.named.is_none() {
            self.named = text.split_once(" at: ").and_then(|(_, at)| symbol::first(at));
        }
        self.trace_line(text);
        let over = self.trace == Trace::Over && !self.has_end_mark();
        self.ended |= text.starts_with("---[ end ") || over || self.age > MAX_MESSAGES;
    }

    fn trace_line(&mut self, text: &str) {
        if self.trace == Trace::Over {
            return;
        }
        // What a dump of an object lists are stacks of its past.
        if self.stage == Stage::Text && self.trace == Trace::Awaited {
            if text.starts_with("Call Trace:") {
                self.trace = Trace::Begun;
            }
            return;
        }
        if OTHER_STACKS.iter().any(|heading| text.starts_with(heading)) || text == "</TASK>" {
            self.trace = Trace::Over;
        } else if text.starts_with("Call Trace:") {
            let again = self.trace == Trace::Begun && !self.frames.is_empty();
            self.trace = if again { Trace::Over } else { Trace::Begun };
        } else if self.frames.len() < MAX_FRAMES {
            self.frames.extend(symbol::frame(text));
        }
    }

    /// Whether such a report has a line that says that it ends.
    pub(super) fn has_end_mark(&self) -> bool {
        matches!(self.kind, Kind::Oops | Kind::Panic | Kind::Warning)
    }

    /// Keeps a line of the log as context.
    pub(super) fn keep(&mut self, line: &str, text: &str) {
        let registers = REGISTERS.iter().any(|r| text.starts_with(r));
        let kept = keep(line.trim_end());
        if !registers
            && !kept.is_empty()
            && self.lines.len() < self.before + MAX_LINES
            && self.lines.last() != Some(&kept)
        {
            self.lines.push(kept);
        }
    }

    /// Every function that the report names, the innermost first.
    fn functions(&self) -> impl Iterator<Item = &String> {
        self.named.iter().chain(&self.rip).chain(&self.frames)
    }

    /// Where it happened.
    pub(super) fn function(&self) -> Option<String> {
        let place = self.functions().find(|name| !symbol::is_plumbing(name));
        place.or_else(|| self.functions().next()).cloned()
    }

    /// Whether the report is about this function.
    pub(super) fn names(&self, function: &str) -> bool {
        self.named.as_deref() == Some(function)
    }

    pub(super) fn has_rip(&self) -> bool {
        self.rip.is_some()
    }

    /// Rule and innermost functions, or rule and title when no function is known.
    pub(super) fn fingerprint(&self, title: &str) -> String {
        let mut names: Vec<&str> = Vec::new();
        for name in self.functions().filter(|name| !symbol::is_plumbing(name)) {
            if names.len() < FINGERPRINT && !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        if names.is_empty() || !self.rule.title.contains("{f}") {
            return format!("{}: {title}", self.rule.name);
        }
        format!("{}: {}", self.rule.name, names.join(" < "))
    }
}

/// The CPU that a head or a line `CPU: 1 UID: 0` names.
pub(super) fn cpu_of(text: &str) -> Option<u32> {
    let behind = ["CPU#", "CPU: ", "CPU", "cpu "].iter().find_map(|mark| {
        let rest = text.split_once(mark)?.1;
        rest.starts_with(|c: char| c.is_ascii_digit()).then_some(rest)
    })?;
    let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
    behind[..digits].parse().ok()
}

/// Whether the taint letters of the line hold the one of a kernel that died before.
fn says_after_oops(text: &str) -> bool {
    let Some((_, letters)) = text.split_once("Tainted: ") else { return false };
    let letter = |w: &&str| w.bytes().all(|b| b.is_ascii_uppercase());
    letters.split_whitespace().take_while(letter).any(|w| w.contains('D'))
}

/// The text without control characters, bounded.
pub(super) fn keep(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_KEPT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taint_letters_tell_an_oops_before() {
        assert!(says_after_oops("CPU: 1 UID: 0 PID: 9 Comm: x Tainted: G      D    OE  7.3.4 #1"));
        assert!(!says_after_oops("CPU: 1 PID: 9 Comm: x Tainted: G        W          7.3.4 #1 D"));
        assert!(!says_after_oops("Tainted: [D]=DIE"));
        assert!(!says_after_oops("Not tainted 7.3.4 D"));
    }

    #[test]
    fn the_cpu_is_told() {
        assert_eq!(cpu_of("WARNING: a.c:1 at f+0x1/0x2, CPU#12: x/1"), Some(12));
        assert_eq!(cpu_of("CPU: 3 UID: 0 PID: 1"), Some(3));
        assert_eq!(cpu_of("Watchdog detected hard LOCKUP on cpu 1"), Some(1));
        assert_eq!(cpu_of("CPUs are up"), None);
    }
}
