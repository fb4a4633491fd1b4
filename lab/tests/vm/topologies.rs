//! Every shipped topology boots the stock kernel with a clean console and the layout asked for.

use crate::harness::Project;

#[test]
fn each_topology_boots_clean() {
    let project = Project::new();
    let text =
        "summary = \"nothing but the boot\"\n[[step]]\ndo = \"tmpfs\"\nmount-point = \"/mnt/t\"\n";
    project.write("scenarios/correctness/boot.toml", text);
    let run = project.run(&["test", "--topology", "*"]);
    assert_eq!(run.code, Some(0), "{}", run.all());
    let mut names: Vec<&str> =
        run.kind("case_finished").iter().map(|c| c["topology"].as_str().unwrap()).collect();
    names.sort_unstable();
    let all = ["1x2", "1x4", "2x2", "2x4", "2x4-interleaved", "4x2", "memless", "smt", "spare"];
    assert_eq!(names, all);
    for vm in run.kind("vm_ready") {
        assert_eq!(vm["isolation"], "clone", "{vm}");
    }
}

#[test]
fn spare_registers_a_queue_for_every_possible_cpu() {
    let project = Project::new();
    let text = "summary = \"more possible than present CPUs\"\n[[step]]\ndo = \"serve\"\n\
                transport = \"ring\"\nmount-point = \"/mnt/ring\"\n";
    project.write("scenarios/placement/spare.toml", text);
    let run = project.run(&["test", "--topology", "spare"]);
    run.expect("PASS", None);
    let seen = run.file("observations.json");
    assert!(seen.contains("\"queues\": 8") && seen.contains("\"possible_cpus\": 8"), "{seen}");
}
