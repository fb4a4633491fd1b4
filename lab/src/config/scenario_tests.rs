//! Scenarios: what is read, and what is refused with which words.

use insta::assert_snapshot;
use lab_proto::server::{FileSystem, ServerFault, Transport};
use lab_proto::step::Step;

use super::*;
use crate::config::problem::ConfigErrors;
use crate::config::scenario::{Expectation, Rule};

fn try_read(text: &str) -> Result<Scenario, String> {
    let file = SourceFile { path: "scenarios/placement/s.toml".into(), text: text.into() };
    read("placement/s", &file)
        .map_err(|problems| ConfigErrors { files: vec![problems] }.render(false))
}

fn errors(text: &str) -> String {
    try_read(text).expect_err("a broken file was read")
}

const SERVE: &str = "\
summary = 's'
[[step]]
do = 'serve'
mount-point = '/mnt/ring'
transport = 'ring'
";

fn after_serve(steps: &str) -> String {
    format!("{SERVE}{steps}")
}

#[test]
fn defaults_are_filled_in() {
    let scenario = try_read(&after_serve("[[step]]\ndo = 'place'\npath = '/mnt/ring'\n")).unwrap();
    assert_eq!((scenario.kind, scenario.profile), (Kind::Placement, Profile::Quick));
    assert_eq!(scenario.image, ImageKind::Agent);
    assert_eq!(scenario.step_limit, Duration::from_secs(30));
    let Step::Serve(spec) = &scenario.steps[0].step else { panic!("no serve") };
    assert_eq!((spec.name.as_str(), spec.transport, spec.depth), ("serve", Transport::Ring, 8));
    assert!(!spec.fallback && spec.file_system == FileSystem::Memory && spec.fault.is_none());
    assert_eq!(
        scenario.steps[1].step,
        Step::Place { path: "/mnt/ring".into(), requests: 16, background: false }
    );
}

#[test]
fn a_fault_and_a_rule_are_typed() {
    let text = "\
summary = 's'
kind = 'teardown'
profile = 'soak'
limits = { call = '1s', step = '2s', case = '3s' }
[[step]]
do = 'serve'
mount-point = '/mnt/ring'
transport = 'classic'
fault = { kind = 'drop-reply', opcode = 'read', nth = 3 }
[[step]]
do = 'teardown'
name = 'end'
path = '/mnt/ring'
ending = 'abort'
[[expect]]
rule = 'waiting-zero'
step = 'end'
";
    let scenario = try_read(text).unwrap();
    let Step::Serve(spec) = &scenario.steps[0].step else { panic!("no serve") };
    assert_eq!(spec.fault, Some(ServerFault::DropReply { opcode: "read".into(), nth: 3 }));
    let rule = Expectation::Rule { step: "end".into(), rule: Rule::WaitingZero };
    assert_eq!(scenario.expect, [rule]);
    assert_eq!(scenario.call_limit, Duration::from_secs(1));
}

#[test]
fn every_wrong_key_of_a_step_is_shown() {
    let text = "\
summary = 's'
profile = 'quik'
[[step]]
do = 'serv'
[[step]]
do = 'serve'
mount-point = 'ring'
dept = 4
depth = 0
max-write = '1KiB'
file-system = 'passthrough'
cache = 5
fault = { kind = 'drop-reply', opcode = 'raed' }
";
    assert_snapshot!(errors(text), @r#"
  × unknown profile `quik`
   ╭─[scenarios/placement/s.toml:2:11]
 1 │ summary = 's'
 2 │ profile = 'quik'
   ·           ───┬──
   ·              ╰── did you mean `quick`?
 3 │ [[step]]
   ╰────
  × unknown do `serv`
   ╭─[scenarios/placement/s.toml:4:6]
 3 │ [[step]]
 4 │ do = 'serv'
   ·      ───┬──
   ·         ╰── did you mean `serve`?
 5 │ [[step]]
   ╰────
  × missing key `transport`
   ╭─[scenarios/placement/s.toml:5:1]
 4 │ do = 'serv'
 5 │ [[step]]
   · ────┬───
   ·     ╰── `transport` belongs here
 6 │ do = 'serve'
   ╰────
  × missing key `source`
   ╭─[scenarios/placement/s.toml:5:1]
 4 │ do = 'serv'
 5 │ [[step]]
   · ────┬───
   ·     ╰── `source` belongs here
 6 │ do = 'serve'
   ╰────
  × `mount-point` must be an absolute path below /, of letters, digits, `.`, `_` and `-`, such as
  │ "/mnt/ring"
   ╭─[scenarios/placement/s.toml:7:15]
 6 │ do = 'serve'
 7 │ mount-point = 'ring'
   ·               ───┬──
   ·                  ╰── here
 8 │ dept = 4
   ╰────
  × unknown key `dept`
   ╭─[scenarios/placement/s.toml:8:1]
 7 │ mount-point = 'ring'
 8 │ dept = 4
   · ──┬─
   ·   ╰── did you mean `depth`?
 9 │ depth = 0
   ╰────
  × `depth` must be 1 to 4096
    ╭─[scenarios/placement/s.toml:9:9]
  8 │ dept = 4
  9 │ depth = 0
    ·         ┬
    ·         ╰── here
 10 │ max-write = '1KiB'
    ╰────
  × `max-write` must be 4.0 KiB to 4.0 MiB, in units of 512 bytes
    ╭─[scenarios/placement/s.toml:10:13]
  9 │ depth = 0
 10 │ max-write = '1KiB'
    ·             ───┬──
    ·                ╰── here
 11 │ file-system = 'passthrough'
    ╰────
  × `cache` must be a duration in whole milliseconds, such as "250ms" or "30s", at most a day
    ╭─[scenarios/placement/s.toml:12:9]
 11 │ file-system = 'passthrough'
 12 │ cache = 5
    ·         ┬
    ·         ╰── here
 13 │ fault = { kind = 'drop-reply', opcode = 'raed' }
    ╰────
  × unknown opcode `raed`
    ╭─[scenarios/placement/s.toml:13:41]
 12 │ cache = 5
 13 │ fault = { kind = 'drop-reply', opcode = 'raed' }
    ·                                         ───┬──
    ·                                            ╰── did you mean `read`?
    ╰────
10 errors in 1 file
"#);
}

#[test]
fn paths_must_be_mounted() {
    let steps = "\
[[step]]
do = 'tree'
path = '/mnt/rnig'
[[step]]
do = 'unmount'
mount-point = '/mnt/ring'
[[step]]
do = 'place'
path = '/mnt/ring'
[[step]]
do = 'tmpfs'
mount-point = '/sys/fs'
[[step]]
do = 'tmpfs'
name = 'bare'
mount-point = '/mnt/bare'
[[step]]
do = 'teardown'
path = '/mnt/bare'
ending = 'abort'
";
    assert_snapshot!(errors(&after_serve(steps)), @r"
  × no step before mounts `/mnt/rnig`
   ╭─[scenarios/placement/s.toml:8:8]
 7 │ do = 'tree'
 8 │ path = '/mnt/rnig'
   ·        ─────┬─────
   ·             ╰── did you mean `/mnt/ring`?
 9 │ [[step]]
   ╰────
  × `/mnt/ring` is gone: step `unmount` ended it
    ╭─[scenarios/placement/s.toml:14:8]
 13 │ do = 'place'
 14 │ path = '/mnt/ring'
    ·        ─────┬─────
    ·             ╰── here
 15 │ [[step]]
    ╰────
  × `/sys/fs` belongs to the guest's system
    ╭─[scenarios/placement/s.toml:17:15]
 16 │ do = 'tmpfs'
 17 │ mount-point = '/sys/fs'
    ·               ────┬────
    ·                   ╰── here
 18 │ [[step]]
    ╰────
  × `/mnt/bare` has no server of the case behind it
    ╭─[scenarios/placement/s.toml:24:8]
 23 │ do = 'teardown'
 24 │ path = '/mnt/bare'
    ·        ─────┬─────
    ·             ╰── here
 25 │ ending = 'abort'
    ╰────
4 errors in 1 file
");
}

#[test]
fn a_mount_point_is_used_once_at_a_time() {
    let again = "[[step]]\ndo = 'tmpfs'\nmount-point = '/mnt/ring'\n";
    assert!(errors(&after_serve(again)).contains("is mounted already"));
    let unmount = "[[step]]\ndo = 'unmount'\nmount-point = '/mnt/ring'\n";
    assert!(try_read(&after_serve(&format!("{unmount}{again}"))).is_ok());
}

#[test]
fn expectations_name_steps_that_fit() {
    let rest = "\
[[step]]
do = 'place'
path = '/mnt/ring'
[[expect]]
snapshot = ['plaec', 'serve']
[[expect]]
equal = ['place']
[[expect]]
rule = 'fio-sane'
step = 'place'
[[expect]]
rule = 'nothing-lots'
step = 'place'
[[expect]]
snapshot = ['place']
equal = ['place']
";
    assert_snapshot!(errors(&after_serve(rest)), @r"
  × no step is named `plaec`
    ╭─[scenarios/placement/s.toml:10:13]
  9 │ [[expect]]
 10 │ snapshot = ['plaec', 'serve']
    ·             ───┬───
    ·                ╰── did you mean `place`?
 11 │ [[expect]]
    ╰────
  × step `serve` is a `serve`, which this does not look at
    ╭─[scenarios/placement/s.toml:10:22]
  9 │ [[expect]]
 10 │ snapshot = ['plaec', 'serve']
    ·                      ───┬───
    ·                         ╰── for steps that do: tree, place
 11 │ [[expect]]
    ╰────
  × needs at least 2 step names
    ╭─[scenarios/placement/s.toml:11:1]
 10 │ snapshot = ['plaec', 'serve']
 11 │ [[expect]]
    · ─────┬────
    ·      ╰── here
 12 │ equal = ['place']
    ╰────
  × step `place` is a `place`, which this does not look at
    ╭─[scenarios/placement/s.toml:15:8]
 14 │ rule = 'fio-sane'
 15 │ step = 'place'
    ·        ───┬───
    ·           ╰── for steps that do: fio
 16 │ [[expect]]
    ╰────
  × unknown rule `nothing-lots`
    ╭─[scenarios/placement/s.toml:17:8]
 16 │ [[expect]]
 17 │ rule = 'nothing-lots'
    ·        ───────┬──────
    ·               ╰── did you mean `nothing-lost`?
 18 │ step = 'place'
    ╰────
  × an expectation has one of `snapshot`, `equal` and `rule`, this one has snapshot and equal
    ╭─[scenarios/placement/s.toml:19:1]
 18 │ step = 'place'
 19 │ [[expect]]
    · ─────┬────
    ·      ╰── here
 20 │ snapshot = ['place']
    ╰────
6 errors in 1 file
");
}

#[test]
fn step_names_are_unique() {
    let twice = "[[step]]\ndo = 'place'\npath = '/mnt/ring'\n".repeat(2);
    assert!(errors(&after_serve(&twice)).contains("a second step named `place`"));
}

#[test]
fn limits_rise() {
    let message = errors(&SERVE.replace("[[step]]", "[limits]\ncall = '40s'\n[[step]]"));
    assert!(message.contains("from call (40s) over step (30s) to case (1m 30s)"), "{message}");
    let message = errors(&after_serve("limit = '2m'\n"));
    assert!(message.contains("above that of the whole case"), "{message}");
}

#[test]
fn fio_needs_its_image() {
    let fio = "[[step]]\ndo = 'fio'\npath = '/mnt/ring'\nrw = 'randread'\n";
    assert_eq!(try_read(&after_serve(fio)).unwrap().image, ImageKind::Fio);
    let message = errors(&after_serve(fio).replace("summary", "image = 'agent'\nsummary"));
    assert!(message.contains("a step runs fio"), "{message}");
}

#[test]
fn the_directory_tells_the_kind() {
    let file = SourceFile { path: "scenarios/mine/s.toml".into(), text: SERVE.into() };
    let problems = read("mine/s", &file).unwrap_err().problems;
    assert!(problems[0].message.contains("`mine` does not tell"), "{problems:?}");
}

#[test]
fn an_empty_scenario_and_bad_kernel_options_are_refused() {
    let message = errors("summary = 's'\n[requires]\nconfig = ['CONFIG_FUSE_FS', 'A B']\n");
    assert!(message.contains("missing [[step]]"), "{message}");
    assert!(message.contains("written without CONFIG_"), "{message}");
    assert!(message.contains("`A B` is no kernel option"), "{message}");
    let message = errors(&SERVE.replace("[[step]]", "kernel-args = ['a b']\n[[step]]"));
    assert!(message.contains("no spaces"), "{message}");
}

const ALLOW: &str = "\
[[allow]]
title = 'WARNING in fuse_uring_*'
reason = 'the fault is what the case is about'
link = 'https://example.org/t/1'
until = '2027-06-30'
";

#[test]
fn an_allowed_splat_has_a_reason_a_link_and_an_end() {
    let scenario = try_read(&after_serve(ALLOW)).unwrap();
    let allow = &scenario.allow[0];
    assert_eq!(allow.title, "WARNING in fuse_uring_*");
    assert_eq!(allow.until, jiff::civil::date(2027, 6, 30));
    for key in ["title", "reason", "link", "until"] {
        let line = ALLOW.lines().find(|l| l.starts_with(key)).unwrap();
        let message = errors(&after_serve(&ALLOW.replace(line, "")));
        assert!(message.contains(&format!("missing key `{key}`")), "{message}");
    }
    for (good, bad, what) in [
        ("WARNING in fuse_uring_*", "WARN*", "at least 8 letters"),
        ("WARNING in fuse_uring_*", "WARNING in [fuse", "`title` must be a glob"),
        ("https://example.org/t/1", "see the list", "a link that begins with https://"),
        ("2027-06-30", "2027-06-31", "a day such as"),
        ("reason =", "raeson =", "did you mean `reason`?"),
    ] {
        let message = errors(&after_serve(&ALLOW.replace(good, bad)));
        assert!(message.contains(what), "{message}");
    }
}
