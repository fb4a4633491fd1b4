//! The command line from outside: what it prints where, and its exit codes. No VM is started.

use std::path::Path;

use assert_cmd::Command;

/// `lab` in a directory, without the variables of whoever runs the tests.
fn lab(dir: &Path) -> Command {
    let mut command = Command::cargo_bin("lab").expect("the binary is built with its tests");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("LAB_") {
            command.env_remove(name);
        }
    }
    for name in ["CLICOLOR", "CLICOLOR_FORCE", "NO_COLOR", "CI"] {
        command.env_remove(name);
    }
    command.current_dir(dir);
    command
}

/// A directory outside of any project.
fn nowhere() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// A project with one broken scenario and one broken topology.
fn broken() -> tempfile::TempDir {
    let dir = nowhere();
    let write = |path: &str, text: &str| {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().expect("has a parent")).expect("makes directories");
        std::fs::write(path, text).expect("writes");
    };
    write("kernels/mine.toml", "summary = 'mine'\npath = '/boot/vmlinuz'\n");
    write(
        "scenarios/perf/slow.toml",
        "sumary = 's'\n[[step]]\ndo = 'fio'\npath = '/mnt/a'\nrw = 'random'\n",
    );
    write(
        "scenarios/topologies/odd.toml",
        "summary = 's'\ncores = 2\n[[node]]\ncpus = '0'\nmemory = '1GiB'\n[[node]]\ncpus = '1'\n",
    );
    dir
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the output is UTF-8")
}

#[test]
fn every_error_of_every_file_is_shown_and_nothing_is_started() {
    for verb in ["list", "test"] {
        let output = lab(broken().path()).arg(verb).output().expect("runs");
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(text(&output.stdout), "");
        insta::assert_snapshot!("broken_project", text(&output.stderr));
    }
}

#[test]
fn an_installed_lab_needs_no_checkout() {
    let output = lab(nowhere().path()).args(["list", "topologies"]).output().expect("runs");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout).lines().count(), 9);
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn a_dry_run_and_a_list_show_the_same_cases() {
    let dir = nowhere();
    let flags = ["--scenario", "teardown/*", "--topology", "spare", "--shard", "1/2"];
    let shown = |verb: &[&str]| {
        let output = lab(dir.path()).args(verb).args(flags).output().expect("runs");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let listed = shown(&["list"]);
    assert!(!listed.is_empty());
    for case in listed.lines() {
        assert!(shown(&["test", "--dry-run"]).contains(case), "{case}");
    }
}

#[test]
fn variables_stand_for_flags() {
    let dir = nowhere();
    let mut command = lab(dir.path());
    command.env("LAB_TOPOLOGY", "smt,spare").env("LAB_SCENARIO", "correctness/tree");
    let output = command.arg("list").output().expect("runs");
    assert_eq!(text(&output.stdout), "stock/smt/correctness/tree\nstock/spare/correctness/tree\n");
}

#[test]
fn mistyped_names_exit_2_with_the_nearest_one() {
    let dir = nowhere();
    for (args, hint) in [
        (vec!["list", "--scenario", "perf/ranread"], "did you mean `perf/randread`?"),
        (vec!["test", "--topology", "2x8"], "did you mean `2x4`?"),
        (vec!["test", "--kernel", "stok"], "did you mean `stock`?"),
        (vec!["show", "stock/2x2/teardown/abrt"], "did you mean `teardown/abort`?"),
        (vec!["show", "stock"], "a case is KERNEL/TOPOLOGY/SCENARIO"),
        (vec!["test", "--acel", "tcg"], "'--accel'"),
        (vec!["test", "--repeat", "0"], "0 is not in 1..=10000"),
        (vec!["test", "--shard", "3/2"], "a shard is I/N"),
        (vec!["-C", "/nonexistent", "list"], "no such directory: /nonexistent"),
    ] {
        let output = lab(dir.path()).args(&args).output().expect("runs");
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(hint), "{args:?}: {stderr}");
        assert_eq!(text(&output.stdout), "", "{args:?}");
    }
}

#[test]
fn color_is_a_matter_of_choice() {
    let dir = broken();
    let colored = |set: &dyn Fn(&mut Command)| {
        let mut command = lab(dir.path());
        command.arg("list");
        set(&mut command);
        text(&command.output().expect("runs").stderr).contains('\x1b')
    };
    assert!(!colored(&|_| {}));
    assert!(colored(&|c| {
        c.env("CLICOLOR_FORCE", "1");
    }));
    assert!(colored(&|c| {
        c.args(["--color", "always"]);
    }));
    assert!(!colored(&|c| {
        c.env("CLICOLOR_FORCE", "1").args(["--color", "never"]);
    }));
    assert!(!colored(&|c| {
        c.env("NO_COLOR", "1");
    }));
}
