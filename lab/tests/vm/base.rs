//! A kernel held against a base: the same stock kernel with other arguments plays the base.

use crate::harness::{Finished, Project};

const PANIC: &str = "summary = \"broken on purpose\"\n\
     [[step]]\ndo = \"sabotage\"\nwhat = \"panic\"\n";

const QUIET: &str = "summary = \"nothing\"\n[[step]]\ndo = \"tmpfs\"\nmount-point = \"/mnt/a\"\n";

/// Kernel `name` is stock with more on its command line.
fn kernel(project: &Project, name: &str, cmdline: &str) {
    let stock = include_str!("../../../kernels/stock.toml").replace("[debian]", cmdline);
    let text = format!("{stock}\n").replace("suites", "[debian]\nsuites");
    project.write(&format!("own/{name}.toml"), &text);
}

/// A project with kernels `old` and `new`.
fn project(scenario: &str, old: &str, new: &str) -> Project {
    let project = Project::new();
    std::fs::remove_file(project.path().join("kernels")).unwrap();
    kernel(&project, "old", old);
    kernel(&project, "new", new);
    std::fs::rename(project.path().join("own"), project.path().join("kernels")).unwrap();
    project.write("scenarios/correctness/x.toml", scenario);
    project
}

fn run(project: &Project) -> Finished {
    project.run(&["test", "--kernel", "new", "--base", "old", "--topology", "1x2"])
}

fn verdict_of(run: &Finished, kernel: &str) -> String {
    let cases = run.kind("case_finished");
    let case = cases.iter().find(|case| case["kernel"] == kernel).unwrap();
    case["verdict"].as_str().unwrap().to_owned()
}

#[test]
fn a_fault_of_both_is_known_and_neither_passes_nor_fails() {
    let project = project(PANIC, "", "kernel-args = [\"lab.other=1\"]\n");
    let run = run(&project);
    assert_eq!(
        (verdict_of(&run, "old"), verdict_of(&run, "new")),
        ("KERNEL".into(), "KNOWN".into())
    );
    assert_eq!(run.code, Some(4), "nothing passed: {}", run.all());
    assert_eq!(run.stdout.lines().last(), Some("0 passed, 0 failed, 1 skipped"));
    let compared = run.kind("case_compared")[0];
    assert_eq!(
        (&compared["excused"], &compared["base"]),
        (&true.into(), &"old/1x2/correctness/x".into())
    );
    assert!(run.stdout.contains("known on base: "), "{}", run.all());

    // Cut off between the base and the case that is held against it: the record is enough.
    let log = run.run_dir.join("events.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    let at = text.find("\"event\":\"case_started\",\"case\":\"new/").unwrap();
    let cut = text[..at].rfind('\n').unwrap() + 1;
    std::fs::write(&log, &text[..cut]).unwrap();
    let name = run.run_dir.file_name().unwrap().to_str().unwrap().to_owned();
    let resumed = project.run(&["rerun", "--resume", &name]);
    assert_eq!(verdict_of(&resumed, "new"), "KNOWN", "{}", resumed.all());
    assert_eq!(resumed.kind("case_finished").len(), 2, "{}", resumed.all());
    assert_eq!(resumed.code, Some(4), "{}", resumed.all());
}

#[test]
fn a_fault_of_one_alone_is_new_or_gone() {
    // A kernel that cannot mount what it is asked to has no fault; one that panics has.
    let fault =
        "kernel-args = [\"lab.unknown=1\", \"init=/none\", \"rdinit=/none\", \"root=none\"]\n";
    let new = project(QUIET, "", fault);
    let run_new = run(&new);
    assert_eq!(verdict_of(&run_new, "new"), "KERNEL", "{}", run_new.all());
    assert_eq!(run_new.code, Some(1), "{}", run_new.all());
    let compared = run_new.kind("case_compared")[0];
    assert_eq!(compared["new"].as_array().unwrap().len(), 1, "{compared}");
    assert!(run_new.stdout.contains("new: kernel panic"), "{}", run_new.all());

    let gone = project(QUIET, fault, "");
    let run_gone = run(&gone);
    assert_eq!((verdict_of(&run_gone, "new"), run_gone.code), ("PASS".into(), Some(0)));
    assert!(run_gone.stdout.contains("gone: kernel panic"), "{}", run_gone.all());
    assert_eq!(run_gone.stdout.lines().last(), Some("1 passed, 0 failed, 0 skipped"));
}

#[test]
fn the_base_is_none_of_the_kernels_under_test() {
    let project = project(QUIET, "", "");
    let run = project.run(&["test", "--kernel", "old", "--base", "old"]);
    assert_eq!(run.code, Some(2), "{}", run.all());
    assert!(run.stderr.contains("under test, too"), "{}", run.all());
}

#[test]
fn a_base_that_could_not_be_run_excuses_nothing() {
    // With one CPU the base is not laid out as the topology says.
    let project = project(PANIC, "kernel-args = [\"maxcpus=1\"]\n", "");
    let panics = run(&project);
    assert_eq!(
        (verdict_of(&panics, "old"), verdict_of(&panics, "new")),
        ("INFRA".into(), "KERNEL".into())
    );
    assert_eq!(panics.code, Some(1), "{}", panics.all());
    assert!(panics.stdout.contains("not compared, nothing is excused"), "{}", panics.all());

    project.write("scenarios/correctness/x.toml", QUIET);
    let junit = project.path().join("out.xml");
    let args = ["test", "--kernel", "new", "--base", "old", "--topology", "1x2", "--repeat", "2"];
    let more = ["--format", "ktap", "--junit", junit.to_str().unwrap()];
    let passes = project.run(&[&args[..], &more[..]].concat());
    assert_eq!(verdict_of(&passes, "new"), "PASS", "{}", passes.all());
    assert_eq!(passes.code, Some(3), "the question stays open: {}", passes.all());
    assert_eq!(passes.kind("case_finished").len(), 4, "{}", passes.all());
    assert!(!passes.stdout.lines().any(|line| line.starts_with("not ok")), "{}", passes.stdout);
    let xml = std::fs::read_to_string(junit).unwrap();
    assert!(!xml.contains("<failure") && xml.contains("old/1x2"), "{xml}");
}

#[test]
fn a_case_that_is_skipped_on_the_series_only_fails() {
    let text = format!("requires = {{ config = [\"FUSE_IO_URING\"] }}\n{QUIET}");
    let project = project(&text, "", "");
    let whole = project.run(&["test", "--kernel", "old", "--topology", "1x2"]);
    assert_eq!(whole.code, Some(0), "{}", whole.all());
    let command = whole.file("qemu.cmd");
    let mut words = command.split_whitespace().skip_while(|word| *word != "-kernel").skip(1);
    let image = std::path::Path::new(words.next().unwrap().trim_matches('\''));

    // The same image beside a configuration that lacks what the case needs.
    let dir = project.path().join("lacking");
    std::fs::create_dir(&dir).unwrap();
    std::fs::copy(image, dir.join("vmlinuz")).unwrap();
    std::fs::write(dir.join("config"), "CONFIG_FUSE_FS=y\n# CONFIG_FUSE_IO_URING is not set\n")
        .unwrap();
    project.write(
        "kernels/new.toml",
        "summary = \"lacks it\"\npath = \"lacking/vmlinuz\"\nkernel-args = [\"lab.other=1\"]\n",
    );
    let run = run(&project);
    assert_eq!((verdict_of(&run, "old"), verdict_of(&run, "new")), ("PASS".into(), "FAIL".into()));
    assert_eq!(run.code, Some(1), "{}", run.all());
    assert!(run.stdout.contains("the kernel lacks CONFIG_FUSE_IO_URING"), "{}", run.all());

    // The same image with the same arguments is the base itself, whatever it is called.
    let again = project.run(&["test", "--kernel", "lacking/vmlinuz", "--base", "old"]);
    assert_eq!(again.code, Some(2), "{}", again.all());
    assert!(again.stderr.contains("the same image with the same arguments"), "{}", again.all());
}
