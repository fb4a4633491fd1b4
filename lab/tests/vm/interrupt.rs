//! Runs that are cut off leave nothing running and a record that can be read.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Project, qemu_pids_of, qemus_of};

const SLEEP: &str = "summary = \"s\"\nlimits = { step = \"60s\", case = \"90s\" }\n\
                     [[step]]\ndo = \"sabotage\"\nwhat = \"sleep\"\n";

/// Starts a run and waits until its step sleeps in a VM.
fn sleeping(project: &Project) -> Child {
    sleeping_in(project, SLEEP)
}

fn sleeping_in(project: &Project, scenario: &str) -> Child {
    project.write("scenarios/correctness/sleep.toml", scenario);
    let mut command = project.lab(&["test", "--topology", "1x2"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = || {
        let log = project.latest_run().join("events.jsonl");
        std::fs::read_to_string(log).is_ok_and(|text| {
            text.lines().any(|line| line.contains("\"step_started\"") && line.contains("sabotage"))
        })
    };
    let deadline = Instant::now() + Duration::from_secs(120);
    while !began() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    child
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}

fn assert_no_qemu(project: &Project) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !qemus_of(project.path()).is_empty() {
        assert!(Instant::now() < deadline, "left over: {:?}", qemus_of(project.path()));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn the_first_interrupt_ends_the_run_with_a_record() {
    let project = Project::new();
    let child = sleeping(&project);
    assert_eq!(qemus_of(project.path()).len(), 1, "a step sleeps in one VM");
    signal(&child, rustix::process::Signal::INT);
    let run = project.finish(child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(130), "{}", run.all());
    assert_eq!(run.kind("run_finished")[0]["exit_code"], 130);
    assert_no_qemu(&project);
}

/// Ids of the finished cases, sorted.
fn finished(run: &crate::harness::Finished) -> Vec<String> {
    let ends = run.kind("case_finished");
    let mut ids: Vec<_> = ends.iter().map(|c| c["case"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

#[test]
fn a_run_goes_on_after_sigkill_and_loses_and_repeats_nothing() {
    let project = Project::new();
    let mount = "summary = \"s\"\n[[step]]\ndo = \"tmpfs\"\nmount-point = \"/mnt/t\"\n";
    // Before, at and behind the case in which the run is killed.
    project.write("scenarios/correctness/a.toml", mount);
    project.write("scenarios/correctness/z.toml", mount);
    // Long enough to be killed in it; it is to hang when it runs again.
    let short = SLEEP.replace("step = \"60s\"", "call = \"1s\", step = \"4s\"");
    let child = sleeping_in(&project, &short);
    let busy = project.run(&["rerun", "--resume", "latest"]);
    assert_eq!(busy.code, Some(2), "{}", busy.all());
    assert!(busy.stderr.contains("still goes on"), "{}", busy.all());
    signal(&child, rustix::process::Signal::KILL);
    let cut = project.finish(child.wait_with_output().unwrap());
    assert_no_qemu(&project);
    assert_eq!(finished(&cut), ["stock/1x2/correctness/a"]);
    let on = project.run(&["rerun", "--resume", "latest"]);
    assert_eq!(on.code, Some(1), "{}", on.all());
    assert_eq!(on.run_dir, cut.run_dir);
    let all = ["a", "sleep", "z"].map(|name| format!("stock/1x2/correctness/{name}"));
    assert_eq!(finished(&on), all);
    assert_eq!(on.kind("case_started").len(), 4, "{}", on.all());
    assert_eq!(on.stdout.lines().last(), Some("2 passed, 1 failed, 0 skipped"));
    let report = project.run(&["report", "latest"]);
    assert!(report.stdout.ends_with("2 passed, 1 failed, 0 skipped\n"), "{}", report.all());
    let again = project.run(&["rerun", "--resume", "latest"]);
    assert_eq!(again.code, Some(1), "{}", again.all());
    assert_eq!(finished(&again), all, "nothing is run twice");
}

#[test]
fn a_stopped_qemu_is_the_hosts_and_told_within_seconds() {
    let project = Project::new();
    let child = sleeping(&project);
    let begin = Instant::now();
    for pid in qemu_pids_of(project.path()) {
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    }
    let run = project.finish(child.wait_with_output().unwrap());
    assert!(begin.elapsed() < Duration::from_secs(40), "{:?}", begin.elapsed());
    assert_eq!(run.code, Some(3), "{}", run.all());
    assert!(run.expect("INFRA", Some("host")).contains("stopped by a signal"));
    assert_no_qemu(&project);
}

#[test]
fn sigkill_leaves_no_qemu_and_a_readable_record() {
    let project = Project::new();
    let child = sleeping(&project);
    signal(&child, rustix::process::Signal::KILL);
    let run = project.finish(child.wait_with_output().unwrap());
    assert_no_qemu(&project);
    assert_eq!(run.kind("case_started").len(), 1);
    assert!(run.kind("run_finished").is_empty());
    let report = project.run(&["report", "latest"]);
    assert!(report.stdout.contains("NOT FINISHED"), "{}", report.all());
}
