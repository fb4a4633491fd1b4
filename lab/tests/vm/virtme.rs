//! virtme-ng: shells and cases on this machine's root. On v7.3, which has 9p.

use crate::harness::Project;
use crate::series::may_build;

const CASE: &str = "summary = \"fio of this machine\"\nimage = \"host\"\n\
    [[step]]\ndo = \"serve\"\nmount-point = \"/mnt/ring\"\ntransport = \"ring\"\n\
    file-system = \"memory\"\n\
    [[step]]\ndo = \"fio\"\npath = \"/mnt/ring\"\nrw = \"randread\"\nsize = \"4MiB\"\n\
    runtime = \"1s\"\n\
    [[expect]]\nrule = \"fio-sane\"\nstep = \"fio\"\n";

#[test]
fn a_command_runs_in_the_layout_with_its_own_exit_code() {
    if !may_build() {
        return;
    }
    let project = Project::new();
    let command = "uname -r; nproc; cat /sys/module/fuse/parameters/enable_uring; \
                   touch /usr/lab-was-here; exit 7";
    let args = ["shell", "--kernel", "v7.3", "--topology", "2x2", "--", "sh", "-c", command];
    let run = project.run(&args);
    assert_eq!(run.code, Some(7), "{}", run.all());
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines[1..3], ["4", "Y"], "{}", run.all());
    assert!(lines[0].starts_with("7.3"), "{}", run.all());
    assert!(!std::path::Path::new("/usr/lab-was-here").exists());
    assert!(run.stderr.contains("QMP: "), "{}", run.all());
}

#[test]
fn a_kernel_without_9p_is_refused_by_its_options() {
    let project = Project::new();
    let run = project.run(&["shell", "--kernel", "stock", "--", "true"]);
    assert_eq!(run.code, Some(3), "{}", run.all());
    assert!(run.stderr.contains("lacks CONFIG_NET_9P_VIRTIO"), "{}", run.all());
    let run = project.run(&["shell", "--kernel", "stock"]);
    assert!(run.stderr.contains("needs a terminal"), "{}", run.all());
}

#[test]
fn a_case_has_the_host_s_programs_and_vng_s_failure_is_the_host_s() {
    if !may_build() {
        return;
    }
    let project = Project::new();
    project.write("scenarios/correctness/x.toml", CASE);
    let args = ["test", "--kernel", "v7.3", "--topology", "2x2"];
    let run = project.run(&args);
    run.expect("PASS", None);
    for (vng, word) in [("/bin/false", "virtme-ng ended with"), ("/no/such/vng", "virtme-ng ended")]
    {
        let output = project.lab(&args).env("LAB_VNG", vng).output().unwrap();
        let run = project.finish(output);
        let cause = run.expect("INFRA", Some("host"));
        assert!(cause.contains(word), "{cause}");
        assert_eq!(run.code, Some(3), "{}", run.all());
    }
}

#[test]
fn a_kernel_without_9p_skips_the_case() {
    let project = Project::new();
    project.write("scenarios/correctness/x.toml", CASE);
    let run = project.run(&["test", "--topology", "2x2"]);
    assert!(run.case()["verdict"].as_str().unwrap().starts_with("SKIP"), "{}", run.all());
    assert!(run.case()["cause"].as_str().unwrap().contains("CONFIG_NET_9P_VIRTIO"));
}
