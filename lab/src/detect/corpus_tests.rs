//! The corpus: console logs, most of them of real VMs, and the titles that each must yield.

use std::path::PathBuf;

use toml_edit::Document;

use super::rule::{Kind, Rule};
use super::rules::rules;
use super::scan::{Scan, scan, scan_with};

/// Largest log, bytes.
const MAX_LOG: usize = 40 << 10;

struct Log {
    file: String,
    titles: Vec<String>,
    console: Vec<u8>,
}

fn dir() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/lab/src/detect/corpus"))
}

fn corpus() -> Vec<Log> {
    let table = std::fs::read_to_string(dir().join("expected.toml")).unwrap();
    let table = Document::parse(table).unwrap();
    let logs = table["log"].as_array_of_tables().unwrap();
    let log = |entry: &toml_edit::Table| {
        let file = entry["file"].as_str().unwrap().to_owned();
        let titles = entry["titles"].as_array().unwrap();
        let titles = titles.iter().map(|t| t.as_str().unwrap().to_owned()).collect();
        assert!(matches!(entry["origin"].as_str(), Some("vm" | "written")), "{file}");
        let console = std::fs::read(dir().join(&file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        assert!(console.len() <= MAX_LOG, "{file} has {} bytes", console.len());
        Log { file, titles, console }
    };
    logs.iter().map(log).collect()
}

/// Titles as the table has them: what was reported again with a count, a consequence behind an
/// arrow, without taints, which every log of a module has.
fn titles(console: &[u8], rules: &[Rule]) -> Vec<String> {
    let told = |f: &super::Fault| {
        let arrow = if f.follows.is_some() { "-> " } else { "" };
        let times = if f.times > 1 { format!(" (x{})", f.times) } else { String::new() };
        format!("{arrow}{}{times}", f.title)
    };
    let faults = scan_with(console, rules);
    faults.iter().filter(|f| f.kind != Kind::Taint).map(told).collect()
}

#[test]
fn every_log_yields_its_titles() {
    let mut wrong = String::new();
    for log in corpus() {
        let seen = titles(&log.console, &rules());
        if seen != log.titles {
            wrong += &format!("{}\n  expected {:#?}\n  seen {seen:#?}\n", log.file, log.titles);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn the_table_has_every_log_and_enough_of_them() {
    let mut listed: Vec<String> = corpus().into_iter().map(|log| log.file).collect();
    listed.sort();
    let entries = std::fs::read_dir(dir()).unwrap().map(|e| e.unwrap().file_name());
    let mut there: Vec<String> = entries.map(|n| n.into_string().unwrap()).collect();
    there.retain(|name| name != "expected.toml");
    there.sort();
    assert_eq!(listed, there);
    assert!(there.len() >= 60, "{}", there.len());
}

#[test]
fn every_rule_is_needed() {
    let corpus = corpus();
    let full: Vec<_> = corpus.iter().map(|log| scan(&log.console)).collect();
    let mut idle = Vec::new();
    for (index, rule) in rules().iter().enumerate() {
        let mut fewer = rules();
        fewer.remove(index);
        let found = |i: usize| full[i].iter().any(|f| f.rule == rule.name);
        let missed =
            (0..corpus.len()).any(|i| found(i) && scan_with(&corpus[i].console, &fewer) != full[i]);
        if !missed {
            idle.push(rule.name);
        }
    }
    assert!(idle.is_empty(), "no log needs {idle:?}");
}

#[test]
fn a_torn_log_never_yields_more_than_its_whole() {
    for log in corpus() {
        let whole = scan(&log.console).len();
        for part in [log.console.len() / 3, log.console.len() / 2, log.console.len() * 9 / 10] {
            assert!(scan(&log.console[..part]).len() <= whole + 1, "{} cut at {part}", log.file);
        }
    }
}

/// Sizes without a pattern, the same in every run.
fn sizes(mut state: u64, most: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some((state >> 33) as usize % most as usize + 1)
    })
}

fn in_pieces(console: &[u8], sizes: impl Iterator<Item = usize>) -> Vec<super::Fault> {
    let mut scan = Scan::default();
    let mut rest = console;
    for size in sizes {
        let (piece, more) = rest.split_at(size.min(rest.len()));
        scan.push(piece);
        rest = more;
        if rest.is_empty() {
            break;
        }
    }
    scan.faults()
}

#[test]
fn pieces_of_any_size_yield_the_faults_of_the_whole() {
    for log in corpus() {
        let whole = scan(&log.console);
        for size in [1, 4096, 4097] {
            assert_eq!(in_pieces(&log.console, std::iter::repeat(size)), whole, "{}", log.file);
        }
        for (seed, most) in (0..).zip([7, 100, 9000]) {
            assert_eq!(in_pieces(&log.console, sizes(seed, most)), whole, "{} {seed}", log.file);
        }
    }
}

#[test]
fn all_logs_one_after_the_other_yield_the_same_in_pieces_and_when_looked_at_on_the_way() {
    let all: Vec<u8> =
        corpus().into_iter().flat_map(|log| [log.console, vec![b'\n']].concat()).collect();
    let whole = scan(&all);
    assert!(whole.len() > 20);
    let mut looked_at = Scan::default();
    for piece in all.chunks(50_000) {
        looked_at.push(piece);
        let _ = looked_at.faults();
    }
    assert_eq!(looked_at.faults(), whole);
    assert_eq!(in_pieces(&all, sizes(1, 70_000)), whole);
    assert_eq!(looked_at.lines(), all.split(|b| *b == b'\n').count() - 1);
}
