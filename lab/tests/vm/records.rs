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

#[test]
fn a_resumed_run_goes_on_as_it_began_and_refuses_another_project() {
    let project = Project::new();
    for name in ["one", "two"] {
        project.write(&format!("scenarios/correctness/{name}.toml"), TREE);
    }
    let args = ["test", "--topology", "1x2", "--isolation", "boot", "-j", "1", "--retries", "3"];
    let first = project.run(&args);
    assert_eq!(first.code, Some(0), "{}", first.all());

    // As if it had been killed when one case was done.
    let log = first.run_dir.join("events.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    let end = text.find("\"event\":\"case_finished\"").unwrap();
    let end = end + text[end..].find('\n').unwrap() + 1;
    std::fs::write(&log, &text[..end]).unwrap();
    let name = first.run_dir.file_name().unwrap().to_str().unwrap();

    project.write(
        "scenarios/correctness/two.toml",
        &TREE.replace("summary = \"s\"", "summary = \"t\""),
    );
    let refused = project.run(&["rerun", "--resume", name]);
    assert_eq!(refused.code, Some(2), "{}", refused.all());
    let two = "case stock/1x2/correctness/two: scenario, topology or kernel arguments changed";
    assert!(refused.stderr.contains(two), "{}", refused.stderr);
    assert_eq!(std::fs::read_to_string(&log).unwrap(), text[..end], "nothing was written");

    project.write("scenarios/correctness/two.toml", TREE);
    let whole = project.run(&["rerun", "--resume", name]);
    assert_eq!(whole.code, Some(0), "{}", whole.all());
    let cases = whole.kind("case_finished");
    assert_eq!(cases.len(), 2, "{}", whole.all());
    assert!(cases.iter().all(|case| case["isolation"] == "boot"), "{cases:?}");
    let resumed = whole.kind("run_resumed");
    assert_eq!((&resumed[0]["finished"], &resumed[0]["left"]), (&1.into(), &1.into()));
    let own = cases.iter().map(|case| case["duration_ms"].as_u64().unwrap()).sum::<u64>();
    let all = whole.kind("run_finished")[0]["duration_ms"].as_u64().unwrap();
    assert!(all >= own, "{all} ms of both parts, {own} ms of the cases");

    let again = project.run(&["rerun", name, "--isolation", "clone"]);
    let manner = &again.kind("run_started")[0]["manner"];
    assert_eq!(manner["isolation"], "clone", "{manner}");
    assert_eq!((&manner["retries"], &manner["jobs"]), (&3.into(), &1.into()), "{manner}");
}
