//! Two lab processes on one machine that has room for one VM.

use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::harness::{Project, qemus_of};

const SLEEP: &str = "summary = \"s\"\nlimits = { step = \"60s\", case = \"90s\" }\n\
                     [[step]]\ndo = \"sabotage\"\nwhat = \"sleep\"\n";
const MOUNT: &str = "summary = \"s\"\n[[step]]\ndo = \"tmpfs\"\nmount-point = \"/mnt/t\"\n";

/// Room for one VM of 1x2 and what QEMU itself takes, not for two.
const MEMORY: &str = "1200MiB";

fn start(project: &Project) -> Child {
    let output = fs::File::create(project.path().join("output")).unwrap();
    let mut command = project.lab(&["test", "--topology", "1x2"]);
    command.env("LAB_MEMORY", MEMORY).env("LAB_SLOTS", "8");
    command.stdout(output.try_clone().unwrap()).stderr(output).spawn().unwrap()
}

fn output(project: &Project) -> String {
    fs::read_to_string(project.path().join("output")).unwrap()
}

/// The record of its latest run.
fn record(project: &Project) -> String {
    fs::read_to_string(project.latest_run().join("events.jsonl")).unwrap_or_default()
}

/// Waits, and looks each time that both together never have more than one VM.
fn wait_for(what: &str, both: [&Project; 2], mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(180);
    while !done() {
        let vms: Vec<String> = both.iter().flat_map(|project| qemus_of(project.path())).collect();
        let vms = vms.iter().filter(|words| words.contains(" -accel ")).count();
        assert!(vms <= 1, "{vms} VMs at once");
        let said = both.map(output).join("\n");
        assert!(Instant::now() < deadline, "{what} did not come: {said}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_second_lab_waits_for_memory_and_goes_on_when_the_first_is_killed() {
    let (first, second) = (Project::new(), Project::new());
    first.write("scenarios/correctness/sleep.toml", SLEEP);
    second.write("scenarios/correctness/a.toml", MOUNT);
    second.write("scenarios/correctness/b.toml", MOUNT);
    fs::write(second.path().join("output"), "").unwrap();

    let mut holder = start(&first);
    let began = || record(&first).contains("\"step_started\"");
    wait_for("the first VM", [&first, &second], began);
    let mut waiter = start(&second);
    wait_for("the wait", [&first, &second], || record(&second).contains("waiting for a VM slot"));
    assert!(qemus_of(second.path()).iter().all(|words| !words.contains(" -accel ")));

    holder.kill().unwrap();
    holder.wait().unwrap();
    let mut status = None;
    wait_for("the end", [&first, &second], || {
        status = waiter.try_wait().unwrap();
        status.is_some()
    });
    let said = output(&second);
    assert_eq!(status.unwrap().code(), Some(0), "{said}");
    assert_eq!(said.lines().last(), Some("2 passed, 0 failed, 0 skipped"), "{said}");
}
