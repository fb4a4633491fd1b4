//! Hangs, in a step and in the boot: who waits where, who is asked, and whose doing it is.

use crate::harness::Project;

/// Server and mount of the cases below.
const SERVE: &str = r#"
[[step]]
do = "serve"
transport = "ring"
mount-point = "/mnt/ring"
"#;

const TREE: &str = "[[step]]\ndo = \"tree\"\npath = \"/mnt/ring\"\n";

fn scenario(head: &str, steps: &str) -> String {
    format!("summary = \"hangs on purpose\"\n{head}\n{SERVE}\n{steps}")
}

fn answers(run: &crate::harness::Finished) -> Vec<(String, bool)> {
    let asked: serde_json::Value = serde_json::from_str(&run.file("escalation.json")).unwrap();
    let answer = |asked: &serde_json::Value| {
        (asked["step"].as_str().unwrap().to_owned(), asked["answered"].as_bool().unwrap())
    };
    asked.as_array().unwrap().iter().map(answer).collect()
}

fn all(answers: &[(&str, bool)]) -> Vec<(String, bool)> {
    answers.iter().map(|(step, answered)| ((*step).to_owned(), *answered)).collect()
}

#[test]
fn a_dropped_reply_hangs_with_the_stack_of_the_task() {
    let project = Project::new();
    let serve = SERVE.trim_end().to_owned()
        + "\nfault = { kind = \"drop-reply\", opcode = \"mkdir\", nth = 1 }\n";
    let text = format!(
        "summary = \"one reply is lost\"\nlimits = {{ step = \"3s\", call = \"1s\" }}\n{serve}\n{TREE}"
    );
    project.write("scenarios/correctness/drop.toml", &text);
    let run = project.run(&["test", "--topology", "1x2"]);
    assert_eq!(run.code, Some(1), "{}", run.all());
    let cause = run.expect("HANG", Some("server"));
    assert!(cause.contains("tree") && cause.contains("mkdir"), "{cause}");
    let evidence = run.case()["evidence"].to_string();
    assert!(evidence.contains("request_wait_answer"), "{evidence}");
    assert!(cause.contains("holds unanswered 1 on queue "), "{cause}");
    for part in
        ["1 waiting, max_background 256", "2 queues): ", "1 held", "io_uring of ", "CqTail "]
    {
        assert!(evidence.contains(part), "{part}: {evidence}");
    }
    let diagnosis: serde_json::Value = serde_json::from_str(&run.file("diagnosis.json")).unwrap();
    assert!(diagnosis["rings"].as_array().unwrap().len() >= 2, "{diagnosis:#}");
    let client = &diagnosis["tasks"][0];
    assert!(!client["syscall"].as_str().unwrap().is_empty(), "{diagnosis:#}");
    assert_eq!(diagnosis["processes"][0]["queues"], 2, "{diagnosis:#}");
    assert_eq!(diagnosis["gaps"], serde_json::json!([]), "{diagnosis:#}");
}

#[test]
fn a_stopped_server_owns_the_hang() {
    let project = Project::new();
    let stop = "[[step]]\ndo = \"sabotage\"\nwhat = \"stop-servers\"\n";
    let head = "limits = { step = \"3s\", call = \"1s\" }";
    project.write("scenarios/correctness/frozen.toml", &scenario(head, &format!("{stop}{TREE}")));
    let run = project.run(&["test", "--topology", "1x2"]);
    assert_eq!(run.code, Some(1), "{}", run.all());
    let cause = run.expect("HANG", Some("server"));
    assert!(cause.contains("request_wait_answer") && cause.contains("is stopped"), "{cause}");
    let evidence = run.case()["evidence"].to_string();
    assert!(evidence.contains("does not answer"), "{evidence}");
    assert!(
        evidence.contains("not read: ") && evidence.contains("no answer in time"),
        "{evidence}"
    );
}

#[test]
fn a_stopped_agent_hangs_with_the_kernels_own_list_of_tasks() {
    let project = Project::new();
    let steps = "[[step]]\ndo = \"sabotage\"\nwhat = \"stop-agent\"\n";
    let head = "limits = { step = \"2s\", call = \"1s\" }";
    project.write("scenarios/correctness/stop.toml", &scenario(head, steps));
    let run = project.run(&["test", "--topology", "1x2", "--vmcore"]);
    assert_eq!(run.code, Some(1), "{}", run.all());
    let cause = run.expect("HANG", Some("lab"));
    assert!(cause.contains("lab-agent") && cause.contains("do_signal_stop"), "{cause}");
    let wanted = [
        ("agent", false),
        ("sysrq-w", true),
        ("sysrq-t", true),
        ("sysrq-l", true),
        ("vmcore", true),
    ];
    assert_eq!(answers(&run), all(&wanted));
    let core = run.run_dir.join(run.case()["dir"].as_str().unwrap()).join("vmcore");
    let mut magic = [0; 4];
    std::io::Read::read_exact(&mut std::fs::File::open(core).unwrap(), &mut magic).unwrap();
    assert_eq!(&magic, b"\x7fELF");
}

#[test]
fn backtraces_that_were_asked_for_are_no_faults() {
    let project = Project::new();
    let steps = "[[step]]\ndo = \"sabotage\"\nwhat = \"sleep\"\n";
    let head = "limits = { step = \"1s\", call = \"500ms\" }";
    project.write("scenarios/correctness/sleep.toml", &scenario(head, steps));
    let run = project.run(&["test", "--topology", "1x2"]);
    let cause = run.expect("HANG", Some("scenario"));
    assert!(cause.contains("no task waits in the kernel"), "{cause}");
    assert!(run.file("console.log").contains("sysrq: Show State"), "{}", run.all());
}

#[test]
fn a_guest_that_falls_silent_is_told_before_its_step_limit() {
    let project = Project::new();
    let steps = "[[step]]\ndo = \"sabotage\"\nwhat = \"stop-agent\"\n";
    let head = "limits = { step = \"80s\", silence = \"1s\" }";
    project.write("scenarios/correctness/silent.toml", &scenario(head, steps));
    let run = project.run(&["test", "--topology", "1x2"]);
    let cause = run.expect("HANG", Some("lab"));
    assert!(cause.contains("was silent for"), "{cause}");
    // The agent is known to be silent and is not asked once more.
    let wanted = [("sysrq-w", true), ("sysrq-t", true), ("sysrq-l", true)];
    assert_eq!(answers(&run), all(&wanted));
    assert!(run.case()["duration_ms"].as_u64().unwrap() < 60_000, "{}", run.all());
}

#[test]
fn a_boot_that_hangs_is_asked_where() {
    let project = Project::new();
    // The kernel waits for a disk that never comes.
    let head = "kernel-args = [\"rdinit=/none\", \"root=/dev/vda\", \"rootwait\"]";
    project.write("scenarios/correctness/rootwait.toml", &scenario(head, TREE));
    let run = project.run(&["test", "--topology", "1x2", "--vmcore"]);
    assert_eq!(run.code, Some(1), "{}", run.all());
    let cause = run.expect("HANG", Some("kernel"));
    assert!(cause.contains("did not come up") && cause.contains("pid 1"), "{cause}");
    let wanted = [("sysrq-w", true), ("sysrq-t", true), ("sysrq-l", true), ("vmcore", true)];
    assert_eq!(answers(&run), all(&wanted));
    assert!(run.file("console.log").contains("sysrq: Show State"), "{}", run.all());
    assert!(cause.contains("waits in prepare_namespace"), "{cause}");
}

#[test]
fn a_kernel_that_hears_no_key_is_asked_by_nmi() {
    let project = Project::new();
    // It prints by the early console and has no driver for the line: nobody reads keys.
    let head = "kernel-args = [\"8250.nr_uarts=0\", \"earlyprintk=serial,ttyS0,115200,keep\", \
                \"rdinit=/none\", \"root=/dev/vda\", \"rootwait\"]";
    project.write("scenarios/correctness/deaf.toml", &scenario(head, TREE));
    let run = project.run(&["test", "--topology", "1x2"]);
    assert_eq!(run.code, Some(1), "{}", run.all());
    // What the NMI makes it say is the lab's doing and no fault of the kernel.
    run.expect("HANG", Some("kernel"));
    let wanted = [("sysrq-w", false), ("sysrq-t", false), ("sysrq-l", false), ("nmi", true)];
    assert_eq!(answers(&run), all(&wanted));
    assert!(run.file("console.log").contains("NMI: Not continuing"), "{}", run.file("console.log"));
}
