//! Looks for faults in a console log that may be long, torn, mixed or hostile.

use super::printk;
use super::rules::{Kind, RULES, Rule};

/// Most faults that one log yields.
pub const MAX_FAULTS: usize = 32;

/// Bytes of a line that are looked at.
const MAX_LINE: usize = 4096;

/// Characters of a line that are kept.
const MAX_KEPT: usize = 240;

/// Lines kept before a fault.
const BEFORE: usize = 2;

/// Lines kept from a fault on.
const AFTER: usize = 30;

/// Something that the kernel said about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What it is.
    pub kind: Kind,
    /// Name of the rule that found it.
    pub rule: &'static str,
    /// The message without its prefixes, at most 240 characters.
    pub title: String,
    /// The lines around it, at most 32 of at most 240 characters; two come before it.
    pub lines: Vec<String>,
    /// Line of the message in the log, from 1.
    pub first_line: usize,
}

/// All faults of a console log, the first [`MAX_FAULTS`], in order.
///
/// The messages of one oops are one fault; a panic that follows it is another.
pub fn scan(console: &[u8]) -> Vec<Fault> {
    scan_with(console, RULES)
}

fn scan_with(console: &[u8], rules: &[Rule]) -> Vec<Fault> {
    let lines: Vec<&[u8]> = console.split(|b| *b == b'\n').collect();
    let mut faults: Vec<Fault> = Vec::new();
    let mut block = Block::default();
    for (index, raw) in lines.iter().enumerate() {
        let line = text(raw);
        block.see(&line);
        let Some((rule, message)) = find(&line, rules) else { continue };
        if block.contains(rule.kind, index) {
            continue;
        }
        if faults.len() == MAX_FAULTS {
            break;
        }
        block = Block { open: Some((rule.kind, index)) };
        faults.push(Fault {
            kind: rule.kind,
            rule: rule.name,
            title: keep(message),
            lines: context(&lines, index),
            first_line: index + 1,
        });
    }
    faults
}

/// The first rule that fits a message of the line.
fn find<'l, 'r>(line: &'l str, rules: &'r [Rule]) -> Option<(&'r Rule, &'l str)> {
    printk::messages(line).find_map(|message| {
        let fits =
            |r: &&Rule| r.starts.iter().any(|s| message.starts_with(s)) && message.contains(r.has);
        rules.iter().find(fits).map(|rule| (rule, message))
    })
}

/// The report that the kernel is in the middle of.
#[derive(Default)]
struct Block {
    open: Option<(Kind, usize)>,
}

impl Block {
    fn see(&mut self, line: &str) {
        if line.contains("---[ end ") {
            self.open = None;
        }
    }

    /// Whether a message of this kind is a part of the report, not a new one.
    fn contains(&self, kind: Kind, index: usize) -> bool {
        kind == Kind::Oops
            && self.open.is_some_and(|(open, first)| open == Kind::Oops && index - first <= AFTER)
    }
}

fn context(lines: &[&[u8]], index: usize) -> Vec<String> {
    let mut kept = Vec::new();
    for (at, raw) in lines.iter().enumerate().take(index + AFTER).skip(index.saturating_sub(BEFORE))
    {
        let line = text(raw);
        let end = at > index && line.contains("---[ end ");
        kept.push(keep(line.trim_end()));
        if end {
            break;
        }
    }
    while kept.last().is_some_and(String::is_empty) {
        kept.pop();
    }
    kept
}

fn text(raw: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(&raw[..raw.len().min(MAX_LINE)])
}

fn keep(text: &str) -> String {
    text.chars().take(MAX_KEPT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sample of each rule.
    fn sample(name: &str) -> Vec<u8> {
        let path = format!("{}/lab/src/detect/samples/{name}.log", env!("CARGO_MANIFEST_DIR"));
        std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    #[test]
    fn every_rule_finds_its_sample_and_is_needed_for_it() {
        for (index, rule) in RULES.iter().enumerate() {
            let log = sample(rule.name);
            let faults = scan(&log);
            assert_eq!((faults[0].rule, faults[0].kind), (rule.name, rule.kind));
            let mut fewer = RULES.to_vec();
            fewer.remove(index);
            assert_ne!(scan_with(&log, &fewer), faults, "{} is not needed", rule.name);
        }
    }

    #[test]
    fn every_wording_of_a_message_is_found() {
        for (name, count) in [
            ("rcu-stall", 3),
            ("hung-task", 2),
            ("warning", 2),
            ("hard-lockup", 2),
            ("soft-lockup", 2),
        ] {
            let faults = scan(&sample(name));
            assert_eq!(faults.len(), count, "{name}");
            assert!(faults.iter().all(|f| f.rule == name), "{faults:?}");
        }
    }

    #[test]
    fn a_healthy_boot_has_no_faults() {
        assert_eq!(scan(&sample("clean")), []);
    }

    #[test]
    fn an_oops_is_one_fault_and_wins_over_the_panic_after_it() {
        let faults = scan(&sample("oops"));
        let titles: Vec<&str> = faults.iter().map(|f| f.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "BUG: kernel NULL pointer dereference, address: 0000000000000028",
                "Kernel panic - not syncing: Fatal exception"
            ]
        );
        assert_eq!(faults[0].first_line, 2);
        assert!(faults[0].lines[0].ends_with("fuse: init (API version 7.46)"));
        assert!(faults[0].lines.last().unwrap().ends_with("---[ end trace 0000000000000000 ]---"));
        assert_eq!(scan(&sample("kernel-bug")).len(), 1);
    }

    #[test]
    fn context_ends_with_the_report() {
        let faults = scan(&sample("warning"));
        assert!(!faults[0].lines.iter().any(|l| l.contains("unrelated")));
        let panic = &scan(&sample("panic"))[0];
        assert_eq!(panic.title, "Kernel panic - not syncing: sysrq triggered crash");
        assert!(panic.lines.iter().all(|l| !l.contains('\r')));
    }

    #[test]
    fn a_hostile_console_is_bounded() {
        let mut log = b"[    1.000000] BUG: \xff\xfe\x00\x1b[2J\n".repeat(10_000);
        log.extend(b"[".repeat(3 << 20));
        log.extend(b"\nBUG: last");
        let faults = scan(&log);
        assert_eq!(faults.len(), MAX_FAULTS);
        assert!(faults.iter().all(|f| f.lines.len() <= BEFORE + AFTER));
        let long = [b"BUG: ".to_vec(), b"\xf0\x9f".repeat(1 << 20)].concat();
        assert_eq!(scan(&long)[0].title.chars().count(), MAX_KEPT);
    }

    #[test]
    fn a_torn_last_line_counts() {
        assert_eq!(scan(b"x\r\n[    1.000000] Kernel panic - not syncing: a").len(), 1);
        assert_eq!(scan(b""), []);
    }
}
