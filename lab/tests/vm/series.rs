//! Series and bisection on kernels that are built: v7.3 from source, with small patches made here.
//!
//! They need a kernel build of some minutes, so they run under CI and where `LAB_TEST_BUILT` is
//! set.

use std::path::Path;
use std::process::Command;

use crate::harness::{Finished, Project};

const QUIET: &str = "summary = \"nothing\"\n[[step]]\ndo = \"tmpfs\"\nmount-point = \"/mnt/a\"\n";

const GOOD: &str = "\treturn 0;\n";
const WARNS: &str = "\tint unused;\n\n\treturn 0;\n";
const BREAKS: &str = "\treturn lab_nowhere();\n";
const PANICS: &str = "\tpanic(\"lab: broken on purpose\");\n";
const SPLATS: &str = "\tWARN_ON(1);\n\treturn 0;\n";

/// Whether kernels may be built here.
pub(crate) fn may_build() -> bool {
    let may = std::env::var_os("LAB_TEST_BUILT").is_some()
        || std::env::var_os("CI").is_some_and(|ci| ci == "true");
    if !may {
        eprintln!("skipped: builds a kernel; LAB_TEST_BUILT=1 runs it");
    }
    may
}

/// A source file of the series, whose body is what the patches change.
fn file(body: &str) -> String {
    format!(
        "// SPDX-License-Identifier: GPL-2.0\n#include <linux/bug.h>\n#include <linux/init.h>\n\
         #include <linux/kernel.h>\n\nstatic int __init lab_init(void)\n{{\n{body}}}\n\
         fs_initcall(lab_init);\n"
    )
}

fn hunk(old: &str, new: &str) -> String {
    let lines = |text: &str, sign: char| -> String {
        text.lines().map(|line| format!("{sign}{line}\n")).collect()
    };
    let count = |text: &str| text.lines().count();
    let first = usize::from(!old.is_empty());
    format!(
        "@@ -{first},{} +1,{} @@\n{}{}",
        count(old),
        count(new),
        lines(old, '-'),
        lines(new, '+')
    )
}

/// Patch `number` from one body of the file to the next; the first one makes the file.
fn patch(dir: &Path, number: usize, old: Option<&str>, new: &str) {
    let head = format!("Subject: [PATCH] fuse: lab: part {number}\n\nText.\n---\n");
    let text = match old {
        Some(old) => format!(
            "{head}--- a/fs/fuse/lab.c\n+++ b/fs/fuse/lab.c\n{}",
            hunk(&file(old), &file(new))
        ),
        None => format!(
            "{head}--- a/fs/fuse/Makefile\n+++ b/fs/fuse/Makefile\n@@ -20,4 +20,5 @@\n \
             fuse-$(CONFIG_SYSCTL) += sysctl.o\n fuse-$(CONFIG_FUSE_IO_URING) += dev_uring.o\n\
             +fuse-y += lab.o\n \n virtiofs-y := virtio_fs.o\n--- /dev/null\n+++ b/fs/fuse/lab.c\n{}",
            hunk("", &file(new))
        ),
    };
    std::fs::create_dir_all(dir).unwrap();
    std::fs::write(dir.join(format!("{number:04}-part.patch")), text).unwrap();
}

/// A series whose patches bring the file from body to body.
fn series(dir: &Path, bodies: &[&str]) {
    for (index, body) in bodies.iter().enumerate() {
        patch(dir, index + 1, index.checked_sub(1).map(|before| bodies[before]), body);
    }
}

fn project() -> Project {
    let project = Project::new();
    project.write("scenarios/correctness/x.toml", QUIET);
    project
}

/// The result of each patch, with the number of its new warnings.
fn results(run: &Finished) -> Vec<(String, usize)> {
    let told = |event: &&serde_json::Value| {
        let warnings = event["new_warnings"].as_array().unwrap().len();
        (event["result"].as_str().unwrap().to_owned(), warnings)
    };
    run.kind("patch_built").iter().map(told).collect()
}

fn verdict(run: &Finished, kernel: &str) -> Option<String> {
    let cases = run.kind("case_finished");
    let case = cases.iter().find(|case| case["kernel"] == kernel)?;
    Some(case["verdict"].as_str().unwrap().to_owned())
}

#[test]
fn each_fault_of_a_series_is_told_at_its_patch() {
    if !may_build() {
        return;
    }
    let project = project();
    let dir = project.path().join("topic");
    series(&dir, &[GOOD, WARNS, BREAKS, PANICS, GOOD]);
    // It is written for a file that looks otherwise.
    patch(&dir, 6, Some(SPLATS), GOOD);
    let run = project.run(&["series", "topic", "--topology", "1x2", "--no-base"]);
    assert_eq!(run.code, Some(1), "{}", run.all());
    let wanted = [("built", 0), ("built", 1), ("no-build", 0), ("built", 0), ("built", 0)];
    let wanted: Vec<_> = wanted.iter().map(|(r, w)| ((*r).to_owned(), *w)).collect();
    assert_eq!(results(&run)[..5], wanted, "{}", run.all());
    assert_eq!(results(&run)[5], ("no-apply".to_owned(), 0));
    let detail = |number: usize| run.kind("patch_built")[number - 1]["detail"].to_string();
    assert!(detail(3).contains("lab_nowhere"), "{}", detail(3));
    assert!(detail(6).contains("WARN_ON(1)"), "{}", detail(6));
    for (number, wanted) in [(1, Some("PASS")), (3, None), (4, Some("KERNEL")), (5, Some("PASS"))] {
        let seen = verdict(&run, &format!("topic-{number}of6"));
        assert_eq!(seen.as_deref(), wanted, "patch {number}: {}", run.all());
    }
    assert!(run.stdout.contains("first bad: patch 2/6 fuse: lab: part 2"), "{}", run.all());
    assert!(run.stdout.contains("2 of 6 patches good"), "{}", run.all());

    // The record has the patches: what it says can be run again when they are gone.
    std::fs::remove_dir_all(&dir).unwrap();
    let again = project.run(&["rerun", "topic-4of6/1x2/correctness/x"]);
    assert_eq!(again.expect("KERNEL", Some("kernel")), again.case()["cause"], "{}", again.all());
    let shown = project.run(&["report", run.run_dir.to_str().unwrap(), "--format", "ktap"]);
    let text = &shown.stdout;
    assert!(text.contains("not ok 6 topic 6/6 fuse: lab: part 6"), "{text}");
    assert!(text.contains("ok 1 topic 1/6 fuse: lab: part 1"), "{text}");
}

#[test]
fn the_patch_that_splats_is_found() {
    if !may_build() {
        return;
    }
    let project = project();
    let dir = project.path().join("topic");
    let and_more = format!("\t/* more */\n{SPLATS}");
    series(&dir, &[GOOD, BREAKS, GOOD, SPLATS, &and_more]);
    let run = project.run(&["bisect", "topic", "--topology", "1x2"]);
    assert_eq!(run.code, Some(0), "{}", run.all());
    assert!(run.stdout.starts_with("first bad: patch 4/5 fuse: lab: part 4\n"), "{}", run.all());
    assert!(run.stdout.contains("WARNING in lab_init"), "{}", run.all());
    // An end that is not what it is said to be is told.
    let wrong = project.run(&["bisect", "topic", "--topology", "1x2", "--good", "4"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.all());
    assert!(wrong.stderr.contains("the good end, 4/5"), "{}", wrong.all());
    let wrong = project.run(&["bisect", "topic", "--topology", "1x2", "--bad", "1"]);
    assert!(wrong.stderr.contains("shows no failure"), "{}", wrong.all());
}

fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(dir)
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"])
        .args(args)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&said).into_owned()
}

/// A repository of source trees, one commit a recipe for its image.
fn history(tree: &Path, recipes: &[String]) {
    std::fs::create_dir_all(tree).unwrap();
    std::fs::write(tree.join("Kconfig"), "").unwrap();
    std::fs::write(tree.join(".config"), "CONFIG_A=y\n").unwrap();
    std::fs::write(tree.join(".gitignore"), ".config\narch\n").unwrap();
    git(tree, &["init", "-q"]);
    for (index, recipe) in recipes.iter().enumerate() {
        let text = format!("# {index}\nbzImage:\n\tmkdir -p arch/x86/boot\n\t{recipe}\n");
        std::fs::write(tree.join("Makefile"), text).unwrap();
        git(tree, &["add", "-A"]);
        git(tree, &["commit", "-qm", &format!("commit {index}")]);
    }
}

/// `git bisect run` over a history of source trees that build real kernels: one does not build,
/// and from the fourth on they panic in their boot.
#[test]
fn git_bisect_finds_the_commit_that_does_not_boot() {
    if !may_build() {
        return;
    }
    let project = project();
    let dir = project.path().join("topic");
    series(&dir, &[GOOD, PANICS]);
    project.run(&["series", "topic", "--topology", "1x2", "--no-base"]);
    let image = |step: usize| -> String {
        let path = project.path().join(format!("kernels-of/{step}.toml"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = format!(
            "summary = 's'\nbase = 'v7.3'\nseries = '{}'\npatches = {step}\n",
            dir.display()
        );
        std::fs::write(path, text).unwrap();
        std::fs::remove_file(project.path().join("kernels")).ok();
        let own = project.path().join("kernels");
        std::fs::create_dir_all(&own).unwrap();
        let from = project.path().join(format!("kernels-of/{step}.toml"));
        std::fs::copy(from, own.join("step.toml")).unwrap();
        let found = project.run(&["kernel", "path", "step"]);
        assert_eq!(found.code, Some(0), "{}", found.all());
        found.stdout.trim().to_owned()
    };
    let (good, bad) = (image(1), image(2));
    let tree = project.path().join("linux");
    let copy = |image: &str| format!("cp {image} arch/x86/boot/bzImage");
    history(&tree, &[copy(&good), copy(&good), "false".into(), copy(&bad), copy(&bad)]);
    git(&tree, &["bisect", "start", "HEAD", "HEAD~4"]);
    let project_dir = project.path().display().to_string();
    let lab = env!("CARGO_BIN_EXE_lab");
    let hunt = |what: &str| {
        let args = [
            "bisect",
            "run",
            lab,
            "-C",
            &project_dir,
            "test",
            what,
            "--kernel",
            "./",
            "--topology",
            "1x2",
        ];
        git(&tree, &args)
    };
    let said = hunt("--bisect=boot");
    let only = said.contains("commit 3");
    // The commit that does not build lies right before: git cannot tell the two apart.
    assert!(only && said.contains("only 'skip'ped commits left"), "{said}");
    // A case that is hunted is not to be found: kernels that do not boot are skipped.
    git(&tree, &["bisect", "reset"]);
    git(&tree, &["bisect", "start", "HEAD", "HEAD~4"]);
    let said = hunt("--bisect");
    assert!(said.contains("only 'skip'ped commits left"), "{said}");
    let log = git(&tree, &["bisect", "log"]);
    assert_eq!(log.matches("git bisect skip").count(), 2, "{log}");
}
