//! Every reporter over the same runs.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use super::*;
use crate::judge::verdict::{Owner, Verdict};
use crate::run::events::Record;
use crate::run::samples;

#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Page {
    fn sink(&self) -> Sink {
        Sink::new(Box::new(self.clone()))
    }
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

fn terminal(records: &[Record], color: bool) -> String {
    let page = Page::default();
    let options = Options { color, run_dir: "runs/r1".into(), ..Options::default() };
    replay(records, None, &mut Terminal::new(page.sink(), options));
    page.text()
}

fn ktap(records: &[Record]) -> String {
    let page = Page::default();
    replay(records, None, &mut Ktap::new(page.sink()));
    page.text()
}

fn junit(records: &[Record]) -> String {
    let page = Page::default();
    replay(records, None, &mut Junit::new(page.sink()));
    page.text()
}

/// One case of each verdict.
fn each_verdict() -> Vec<Record> {
    use Verdict::*;
    let ends = [
        ("stock/2x2/correctness/tree", Pass, None, ""),
        ("stock/2x2/correctness/tree#2", Fail, Some(Owner::Kernel), "step `ring` differs"),
        ("stock/2x2/placement/stat", New, Some(Owner::Scenario), "no snapshot yet"),
        ("stock/2x2/teardown/kill", Kernel, Some(Owner::Kernel), "BUG: kernel NULL pointer"),
        ("stock/spare/teardown/kill", Hang, Some(Owner::Server), "task client waits in x"),
        ("stock/spare/perf/rr", PerfReg, Some(Owner::Kernel), "8 % slower [5, 11]"),
        ("stock/spare/perf/rr4", PerfImp, None, "9 % faster"),
        ("stock/spare/perf/rr8", Undecided, None, "too noisy"),
        ("my/tree/1x2/a", Flaky { passed: 2, of: 3 }, None, "2 of 3"),
        ("my/tree/1x2/b", Skip { reason: "needs 2 nodes".into() }, None, ""),
        ("my/tree/1x2/c", Infra, Some(Owner::Lab), "agent lost"),
    ];
    let mut records = vec![samples::started(11)];
    let fix = |r: Record| named("my/tree", r);
    records.extend(ends.iter().map(|(case, ..)| fix(samples::planned(case))));
    for (case, verdict, owner, cause) in ends {
        records.push(samples::case_started(case));
        records.push(fix(samples::finished(case, verdict, owner, cause)));
    }
    records.push(samples::run_finished(5, 5, 1, 1));
    records
}

/// Gives a kernel with a slash in its name its place.
fn named(name: &str, mut record: Record) -> Record {
    use crate::run::events::Event::{CaseFinished, CasePlanned};
    if let CasePlanned { case, kernel, topology, scenario, .. }
    | CaseFinished { case, kernel, topology, scenario, .. } = &mut record.event
        && let Some(rest) = case.strip_prefix(&format!("{name}/"))
    {
        let (t, s) = rest.split_once('/').unwrap();
        (*kernel, *topology, *scenario) = (name.into(), t.into(), s.into());
    }
    record
}

/// A run that was killed: one case passed, one was running, one was not begun.
fn cut_off() -> Vec<Record> {
    vec![
        samples::started(3),
        samples::planned("k/t/a"),
        samples::planned("k/t/b"),
        samples::planned("k/t/c"),
        samples::case_started("k/t/a"),
        samples::finished("k/t/a", Verdict::Pass, None, ""),
        samples::case_started("k/t/b"),
        samples::at(crate::run::events::Event::StepStarted {
            case: "k/t/b".into(),
            step: "place".into(),
        }),
    ]
}

/// A guest that wants to reach the reader's terminal.
fn hostile() -> Vec<Record> {
    let evil = "\x1b[2J\u{9b}31m]]>\r\n</failure># SKIP\u{202e}\u{0}\u{ffff}";
    let mut record = samples::finished("k/t/a", Verdict::Fail, Some(Owner::Kernel), evil);
    if let crate::run::events::Event::CaseFinished { evidence, scenario, dir, .. } =
        &mut record.event
    {
        *evidence = vec![evil.into(), "not ok 1 forged".into()];
        scenario.push_str(evil);
        dir.push_str(evil);
    }
    vec![samples::started(1), record, samples::run_finished(0, 1, 0, 1)]
}

#[test]
fn terminal_shows_each_verdict() {
    let text = terminal(&each_verdict(), false);
    insta::assert_snapshot!(text);
    assert_eq!(text.lines().last(), Some("5 passed, 5 failed, 1 skipped"));
}

#[test]
fn terminal_lists_what_a_cut_off_run_did_not_finish() {
    insta::assert_snapshot!(terminal(&cut_off(), false));
}

#[test]
fn colour_adds_nothing_but_colour() {
    let plain = terminal(&each_verdict(), false);
    let colored = terminal(&each_verdict(), true);
    assert!(colored.contains("\x1b["));
    assert_eq!(anstream::adapter::strip_str(&colored).to_string(), plain);
}

#[test]
fn ktap_is_nested_and_planned() {
    insta::assert_snapshot!(ktap(&each_verdict()));
}

#[test]
fn ktap_of_a_cut_off_run() {
    insta::assert_snapshot!(ktap(&cut_off()));
}

#[test]
fn junit_has_a_suite_for_each_kernel_and_topology() {
    insta::assert_snapshot!(junit(&each_verdict()));
}

#[test]
fn junit_of_a_cut_off_run() {
    insta::assert_snapshot!(junit(&cut_off()));
}

#[test]
fn jsonl_is_the_record() {
    let page = Page::default();
    replay(&samples::one_of_each(), None, &mut Jsonl::new(page.sink()));
    let (records, torn) = crate::run::wire::read(page.text().as_bytes());
    assert_eq!((records, torn), (samples::one_of_each(), None));
}

#[test]
fn nothing_of_a_guest_reaches_the_reader_raw() {
    for text in [terminal(&hostile(), false), ktap(&hostile()), junit(&hostile())] {
        let raw = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202e}' | '\u{ffff}');
        assert!(!text.contains(raw), "{text:?}");
    }
    let ktap = ktap(&hostile());
    assert_eq!(ktap.lines().filter(|l| l.trim_start().starts_with("not ok")).count(), 3);
    assert_eq!(
        ktap.lines().filter(|l| l.contains("# SKIP") && !l.trim().starts_with('#')).count(),
        0
    );
    assert_eq!(junit(&hostile()).matches("</failure>").count(), 1);
}

#[test]
fn damage_is_told_and_a_closed_pipe_ends_nothing() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut closed = Terminal::new(Sink::new(Box::new(Closed)), Options::default());
    replay(&each_verdict(), None, &mut closed);
    let (records, torn) =
        crate::run::wire::read(b"{}\n{\"time\":\"t\",\"event\":\"note\",\"text\":\"x\"}\n");
    let page = Page::default();
    replay(&records, torn.as_ref(), &mut Terminal::new(page.sink(), Options::default()));
    assert!(page.text().contains("line 1 of the record is damaged"), "{}", page.text());
}
