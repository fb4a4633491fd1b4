//! Every important verdict is shown to happen, by breaking the thing it guards.

use crate::harness::Project;

/// Server and mount of the cases below.
const SERVE: &str = r#"
[[step]]
do = "serve"
transport = "ring"
mount-point = "/mnt/ring"
"#;

fn scenario(head: &str, steps: &str) -> String {
    format!("summary = \"broken on purpose\"\n{head}\n{SERVE}\n{steps}")
}

const TREE: &str = "[[step]]\ndo = \"tree\"\npath = \"/mnt/ring\"\n";

#[test]
fn the_quick_profile_passes_and_asserts_the_transport() {
    let project = Project::new();
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/");
    let args = ["-C", shipped, "test", "--profile", "quick", "--topology", "1x2"];
    let run = project.finish(
        project
            .lab(&args)
            .env("LAB_RUNS", project.path().join("state/lab/runs"))
            .env("CI", "true")
            .output()
            .unwrap(),
    );
    assert_eq!(run.code, Some(0), "{}", run.all());
    let last = run.stdout.lines().last().unwrap();
    let cases = run.kind("case_finished").len();
    assert_eq!(last, format!("{cases} passed, 0 failed, 0 skipped"));
    assert!(cases >= 6, "{}", run.all());
    for case in run.kind("case_finished") {
        let path = run.run_dir.join(case["dir"].as_str().unwrap()).join("observations.json");
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains("\"transport\": \"ring\""), "{text}");
        assert!(text.contains("\"queues\": 2"), "{text}");
    }
}

#[test]
fn a_kernel_without_the_ring_fails_for_the_transport() {
    let project = Project::new();
    let head = "kernel-args = [\"fuse.enable_uring=0\"]";
    project.write("scenarios/correctness/off.toml", &scenario(head, TREE));
    let run = project.run(&["test", "--topology", "1x2"]);
    assert_eq!(run.code, Some(1), "{}", run.all());
    let cause = run.expect("FAIL", Some("kernel"));
    assert!(cause.contains("ring") && cause.contains("not offer"), "{cause}");
}

#[test]
fn a_panic_is_the_kernels_and_named_within_ten_seconds() {
    let project = Project::new();
    let steps = "[[step]]\ndo = \"sabotage\"\nwhat = \"panic\"\n";
    project.write("scenarios/correctness/panic.toml", &scenario("", steps));
    let run = project.run(&["test", "--topology", "1x2"]);
    assert_eq!(run.code, Some(1), "{}", run.all());
    let cause = run.expect("KERNEL", Some("kernel"));
    assert!(cause.contains("sysrq triggered crash"), "{cause}");
    assert!(run.case()["evidence"].to_string().contains("Kernel panic - not syncing"));
    assert!(run.case()["duration_ms"].as_u64().unwrap() < 10_000, "{}", run.all());
}

#[test]
fn a_killed_agent_is_infra() {
    let project = Project::new();
    let steps = "[[step]]\ndo = \"sabotage\"\nwhat = \"kill-agent\"\n";
    project.write("scenarios/correctness/agent.toml", &scenario("", steps));
    let run = project.run(&["test", "--topology", "1x2"]);
    assert_eq!(run.code, Some(3), "{}", run.all());
    run.expect("INFRA", Some("lab"));
}

#[test]
fn garbage_from_the_guest_is_infra() {
    let project = Project::new();
    let steps = "[[step]]\ndo = \"sabotage\"\nwhat = \"garbage-frames\"\n";
    project.write("scenarios/correctness/garbage.toml", &scenario("", steps));
    let run = project.run(&["test", "--topology", "1x2"]);
    assert_eq!(run.code, Some(3), "{}", run.all());
    let cause = run.expect("INFRA", Some("lab"));
    assert!(cause.contains("frame"), "{cause}");
}

#[test]
fn a_changed_snapshot_fails_with_a_diff_and_a_missing_one_is_new() {
    let project = Project::new();
    let steps = format!("{TREE}[[expect]]\nsnapshot = [\"tree\"]\nper-topology = false\n");
    project.write("scenarios/correctness/snap.toml", &scenario("", &steps));
    let first = project.run(&["test", "--topology", "1x2"]);
    first.expect("NEW", Some("scenario"));
    assert_eq!(first.code, Some(0), "{}", first.all());

    let pending = project.path().join("snapshots/correctness/snap/any.snap.new");
    let strict = project
        .finish(project.lab(&["test", "--topology", "1x2"]).env("CI", "true").output().unwrap());
    assert_eq!(strict.code, Some(1), "a missing snapshot under CI: {}", strict.all());

    let accepted = pending.with_extension("");
    std::fs::rename(&pending, &accepted).unwrap();
    let equal = project.run(&["test", "--topology", "1x2"]);
    equal.expect("PASS", None);

    let text = std::fs::read_to_string(&accepted).unwrap();
    let line = text.lines().rfind(|l| l.contains("mkdir")).unwrap().to_owned();
    std::fs::write(&accepted, text.replacen(&line, "mkdir nothing like it -> ok", 1)).unwrap();
    let changed = project
        .finish(project.lab(&["test", "--topology", "1x2"]).env("CI", "true").output().unwrap());
    assert_eq!(changed.code, Some(1), "{}", changed.all());
    changed.expect("FAIL", Some("kernel"));
    let evidence = changed.case()["evidence"].to_string();
    assert!(evidence.contains("-mkdir nothing like it") && evidence.contains("+"), "{evidence}");
    assert!(!pending.exists(), "written under CI");
}

#[test]
fn a_cold_boot_gives_the_same_verdict() {
    let project = Project::new();
    project.write("scenarios/correctness/cold.toml", &scenario("", TREE));
    let run = project.run(&["test", "--topology", "1x2", "--isolation", "boot"]);
    run.expect("PASS", None);
    assert_eq!(run.case()["isolation"], "boot");
}
