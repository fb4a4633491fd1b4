//! Bad input is refused with a place, before anything is started.

use crate::harness::Project;

const GOOD: &str = "summary = \"s\"\n[[step]]\ndo = \"tmpfs\"\nmount-point = \"/mnt/t\"\n";

#[test]
fn every_error_of_a_file_is_shown_at_once_with_its_place() {
    let project = Project::new();
    let text = "summary = 3\nprofil = \"quick\"\n[[step]]\ndo = \"tmpsf\"\n";
    project.write("scenarios/correctness/bad.toml", text);
    let run = project.run(&["test"]);
    assert_eq!(run.code, Some(2), "{}", run.all());
    for part in ["bad.toml", "1:", "2:", "4:", "profile", "tmpfs"] {
        assert!(run.stderr.contains(part), "{part} is not in\n{}", run.stderr);
    }
    assert_eq!(run.stdout, "");
    assert!(run.events.is_empty());
}

#[test]
fn unknown_names_are_answered_with_the_nearest() {
    let project = Project::new();
    project.write("scenarios/correctness/good.toml", GOOD);
    for (args, near) in [
        (["test", "--kernel", "stok"], "stock"),
        (["test", "--topology", "2x22"], "2x2"),
        (["test", "--scenario", "correctness/god"], "correctness/good"),
    ] {
        let run = project.run(&args);
        assert_eq!(run.code, Some(2), "{}", run.all());
        assert!(run.stderr.contains(near), "{}", run.stderr);
    }
}

#[test]
fn an_impossible_topology_is_a_configuration_error() {
    let project = Project::new();
    std::fs::remove_file(project.path().join("scenarios/topologies")).unwrap();
    let text = "summary = \"s\"\nsockets = 1\ncores = 4\n\
                [[node]]\ncpus = \"0-1\"\nmemory = \"256MiB\"\n[[node]]\ncpus = \"2-3\"\nmemory = \"256MiB\"\n";
    project
        .write("scenarios/topologies/span.toml", text)
        .write("scenarios/correctness/good.toml", GOOD);
    let run = project.run(&["test"]);
    assert_eq!(run.code, Some(2), "{}", run.all());
    assert!(run.stderr.contains("socket 0") && run.stderr.contains("span"), "{}", run.stderr);
}

#[test]
fn kvm_that_cannot_run_linux_is_refused_with_the_reason() {
    let project = Project::new();
    project.write("scenarios/correctness/good.toml", GOOD);
    let run = project.run(&["test", "--accel", "kvm", "--topology", "1x2"]);
    if run.code == Some(0) {
        assert_eq!(run.case()["accel"], "kvm");
    } else {
        assert_eq!(run.code, Some(3), "{}", run.all());
        assert!(run.stderr.to_lowercase().contains("kvm"), "{}", run.stderr);
    }
}

#[test]
fn a_dry_run_prints_commands_and_starts_nothing() {
    let project = Project::new();
    project.write("scenarios/correctness/good.toml", GOOD);
    let run = project.run(&["test", "--dry-run", "--topology", "2x4"]);
    assert_eq!(run.code, Some(0), "{}", run.all());
    assert!(run.stdout.contains("stock/2x4/correctness/good"), "{}", run.stdout);
    assert!(
        run.stdout.contains("qemu-system-x86_64") && run.stdout.contains("-smp"),
        "{}",
        run.stdout
    );
    assert!(run.events.is_empty());
}
