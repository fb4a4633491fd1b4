//! A run told again in every form, and run again with its seed.

use crate::harness::Project;

const TREE: &str = "summary = \"s\"\n[[step]]\ndo = \"tmpfs\"\nmount-point = \"/mnt/t\"\n\
                    [[step]]\ndo = \"tree\"\npath = \"/mnt/t\"\n";
const CASE: &str = "stock/1x2/correctness/tmpfs";

#[test]
fn a_record_is_told_in_every_form_and_run_again_by_seed() {
    let project = Project::new();
    project.write("scenarios/correctness/tmpfs.toml", TREE);
    let junit = project.path().join("first.xml");
    let args = ["test", "--topology", "1x2", "--seed", "7", "--format", "jsonl", "--junit"];
    let first = project.run(&[&args[..], &[junit.to_str().unwrap()]].concat());
    assert_eq!(first.code, Some(0), "{}", first.all());
    let recorded = std::fs::read_to_string(first.run_dir.join("events.jsonl")).unwrap();
    assert_eq!(first.stdout, recorded, "--format jsonl streams the record");
    let xml = std::fs::read_to_string(junit).unwrap();
    assert!(xml.contains("<testsuites") && xml.contains("correctness/tmpfs"), "{xml}");

    let ktap = project.run(&["report", "latest", "--format", "ktap"]).stdout;
    assert!(ktap.starts_with("KTAP version 1\n1..1\n"), "{ktap}");
    let human = project.run(&["report"]).stdout;
    assert_eq!(human.lines().last(), Some("1 passed, 0 failed, 0 skipped"), "{human}");

    let seed = first.case()["seed"].as_u64().unwrap();
    let again = project.run(&["rerun", CASE]);
    assert_eq!(again.case()["seed"], seed, "{}", again.all());
    assert_ne!(again.run_dir, first.run_dir);
    let other = project.run(&["rerun", CASE, "--seed", "11"]);
    assert_eq!((other.code, &other.case()["seed"]), (Some(0), &11.into()), "{}", other.all());
}

#[test]
fn a_case_that_cannot_run_is_skipped_with_the_reason_and_nothing_run_is_no_pass() {
    let project = Project::new();
    let text = format!("requires = {{ config = [\"NOT_AN_OPTION\"] }}\n{TREE}");
    project.write("scenarios/correctness/never.toml", &text);
    let run = project.run(&["test", "--topology", "1x2"]);
    assert_eq!(run.code, Some(4), "{}", run.all());
    assert_eq!(run.case()["verdict"], "SKIP the kernel lacks CONFIG_NOT_AN_OPTION");
    assert!(run.kind("case_started").is_empty() && run.kind("vm_ready").is_empty());
    assert_eq!(run.stdout.lines().last(), Some("0 passed, 0 failed, 1 skipped"));
}
