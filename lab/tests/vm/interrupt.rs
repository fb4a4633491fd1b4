//! Runs that are cut off leave nothing running and a record that can be read.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Project, qemus_of};

const SLEEP: &str = "summary = \"s\"\nlimits = { step = \"60s\", case = \"90s\" }\n\
                     [[step]]\ndo = \"sabotage\"\nwhat = \"sleep\"\n";

/// Starts a run and waits until its step sleeps in a VM.
fn sleeping(project: &Project) -> Child {
    project.write("scenarios/correctness/sleep.toml", SLEEP);
    let mut command = project.lab(&["test", "--topology", "1x2"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = || {
        let log = project.latest_run().join("events.jsonl");
        std::fs::read_to_string(log).is_ok_and(|text| text.contains("\"step_started\""))
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
