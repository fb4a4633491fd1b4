//! Guests that misbehave on purpose: what each comes to, and that none reaches out of its case.
//!
//! All modes of a group run in one `lab` process, most of them as clones of one template; what
//! is printed, written and used by that process is bounded and harmless whatever they do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use crate::harness::{Finished, Project};
use crate::strict;

/// Bound of the memory that `lab` itself may use, KiB. Guests are not in it.
const MAX_RSS_KIB: u64 = 400 << 10;

/// Bound of what a case may leave on disk, bytes: console, artifacts and records.
const MAX_CASE_BYTES: u64 = 128 << 20;

/// A mode, the steps that bring it out, and what it must come to.
struct Mode {
    name: &'static str,
    steps: Steps,
    verdict: &'static str,
    owner: Option<&'static str>,
    /// Part of the cause.
    cause: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
enum Steps {
    /// A step that answers nothing but that it was done.
    Plain,
    /// As the one before, and the mode is on from the first frame.
    Early,
    /// A tree of operations, held to a snapshot that is not there.
    Tree,
    /// A server with the ring.
    Serve,
    /// fio.
    Fio,
}

const fn mode(
    name: &'static str,
    steps: Steps,
    verdict: &'static str,
    owner: Option<&'static str>,
    cause: &'static str,
) -> Mode {
    Mode { name, steps, verdict, owner, cause }
}

const LAB: Option<&str> = Some("lab");
const KERNEL: Option<&str> = Some("kernel");

impl Mode {
    fn scenario(&self) -> String {
        let name = self.name;
        let head = "summary = \"a hostile guest\"\nlimits = { step = \"1s\", call = \"500ms\" }\n";
        let args = match self.steps {
            Steps::Early => format!("kernel-args = [\"lab.hostile={name}\"]\n"),
            _ => String::new(),
        };
        let set = format!(
            "[[step]]\ndo = \"tmpfs\"\nname = \"set\"\nmount-point = \"/hostile/{name}\"\n"
        );
        let more = match self.steps {
            Steps::Plain | Steps::Early => String::new(),
            Steps::Tree => format!(
                "[[step]]\ndo = \"tree\"\npath = \"/hostile/{name}\"\n\
                 [[expect]]\nsnapshot = [\"tree\"]\nper-topology = false\n"
            ),
            Steps::Serve => "[[step]]\ndo = \"serve\"\nname = \"ring\"\ntransport = \"ring\"\n\
                 mount-point = \"/mnt/ring\"\n"
                .into(),
            Steps::Fio => format!(
                "[[step]]\ndo = \"fio\"\npath = \"/hostile/{name}\"\nrw = \"randread\"\n\
                 block-size = \"4KiB\"\nsize = \"1MiB\"\niodepth = 1\njobs = 1\n\
                 engine = \"io_uring\"\ndirect = true\nruntime = \"1s\"\nlimit = \"40s\"\n\
                 [[expect]]\nrule = \"fio-sane\"\nstep = \"fio\"\n"
            ),
        };
        let image = if self.steps == Steps::Fio { "image = \"fio\"\n" } else { "" };
        format!("{}{image}{args}{set}{more}", head)
    }
}

/// The hostile guest, built once: static as the lab's own, by the same profile and directory.
fn guest() -> &'static Path {
    static GUEST: OnceLock<PathBuf> = OnceLock::new();
    GUEST.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let lab = Path::new(env!("CARGO_BIN_EXE_lab"));
        let target = lab.ancestors().nth(2).unwrap().join("guest");
        let triple = "x86_64-unknown-linux-gnu";
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .current_dir(root)
            .args(["build", "--locked", "--offline", "--quiet", "-p", "lab-hostile"])
            .args(["--profile", "guest", "--target", triple, "--target-dir"])
            .arg(&target)
            .env("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-feature=+crt-static");
        for name in ["RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "CARGO_BUILD_TARGET"]
        {
            cargo.env_remove(name);
        }
        assert!(cargo.status().unwrap().success(), "the hostile guest did not build");
        target.join(triple).join("guest/lab-hostile")
    })
}

/// A run of a group and what `lab` used for it.
struct Group {
    project: Project,
    run: Finished,
    peak_kib: u64,
}

fn run(modes: &[Mode], isolation: &str) -> Group {
    let project = Project::new();
    for mode in modes {
        project.write(&format!("scenarios/correctness/{}.toml", mode.name), &mode.scenario());
    }
    let mut lab = project.lab(&[
        "test",
        "--topology",
        "1x2",
        "--accel",
        "tcg",
        "--isolation",
        isolation,
        "--junit",
        "out.xml",
    ]);
    lab.env("LAB_GUEST", guest()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = lab.spawn().unwrap();
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let watch = std::thread::spawn(move || {
        let mut peak = 0;
        while let Some(now) = peak_kib(&status) {
            peak = peak.max(now);
            std::thread::sleep(Duration::from_millis(20));
        }
        peak
    });
    let run = project.finish(child.wait_with_output().unwrap());
    let peak_kib = watch.join().unwrap();
    Group { project, run, peak_kib }
}

/// Most memory that a process used so far; none once it has ended.
fn peak_kib(status: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

impl Group {
    /// Asserts what each mode came to, and that the run as a whole harmed nothing.
    fn check(&self, modes: &[Mode]) {
        let mut wrong = Vec::new();
        for mode in modes {
            let case = self.case(mode.name);
            let seen = (case["verdict"].as_str(), case["owner"].as_str());
            let cause = case["cause"].as_str().unwrap();
            if seen != (Some(mode.verdict), mode.owner) || !cause.contains(mode.cause) {
                wrong.push(format!("{}: {seen:?} {cause}", mode.name));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}\n{}", self.run.all());
        assert!(self.peak_kib > 0 && self.peak_kib < MAX_RSS_KIB, "{} KiB", self.peak_kib);
        self.outputs_are_harmless(modes.len());
        self.files_are_in_place();
    }

    fn case(&self, mode: &str) -> &serde_json::Value {
        let name = format!("correctness/{mode}");
        let cases = self.run.kind("case_finished");
        let found = cases.iter().find(|case| case["scenario"] == name.as_str());
        found.unwrap_or_else(|| panic!("{mode} has no end: {}", self.run.all()))
    }

    fn outputs_are_harmless(&self, count: usize) {
        strict::assert_harmless("stdout", &self.run.stdout);
        strict::assert_harmless("stderr", &self.run.stderr);
        let report = |format: &str| {
            let name = self.run.run_dir.file_name().unwrap().to_str().unwrap();
            let mut lab = self.project.lab(&["report", name, "--format", format]);
            String::from_utf8(lab.output().unwrap().stdout).unwrap()
        };
        for format in ["human", "ktap", "jsonl"] {
            strict::assert_harmless(format, &report(format));
        }
        assert_eq!(strict::ktap(&report("ktap")).len(), count);
        for line in report("jsonl").lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
        let junit = std::fs::read_to_string(self.project.path().join("out.xml")).unwrap();
        strict::assert_harmless("junit", &junit);
        assert_eq!(strict::junit(&junit), count);
    }

    /// Every file is one that the lab writes, none is too large, and all text but the console's
    /// own can be shown.
    fn files_are_in_place(&self) {
        let mut sizes: BTreeMap<PathBuf, u64> = BTreeMap::new();
        for entry in walkdir::WalkDir::new(self.project.path()) {
            let entry = entry.unwrap();
            let path = entry.path().strip_prefix(self.project.path()).unwrap();
            assert!(!path.to_string_lossy().contains("escaped"), "{}", path.display());
            let in_run = path.starts_with("state");
            if !entry.file_type().is_file() || path.starts_with("scenarios") {
                continue;
            }
            let name = entry.file_name().to_str().unwrap();
            let known = in_run || path.starts_with("snapshots") || name == "out.xml";
            assert!(known, "{} was written", path.display());
            *sizes.entry(path.parent().unwrap().to_owned()).or_default() +=
                entry.metadata().unwrap().len();
            if name != "console.log" && !path.parent().unwrap().ends_with("artifacts") {
                let text = std::fs::read_to_string(entry.path()).unwrap();
                strict::assert_harmless(name, &text);
            }
        }
        for (dir, size) in sizes {
            assert!(size < MAX_CASE_BYTES, "{} has {size} bytes", dir.display());
        }
        assert!(!Path::new("/tmp/lab-hostile-escaped").exists());
    }
}

#[test]
fn frames_that_are_none_and_answers_that_nobody_asked_for() {
    use Steps::{Early, Plain};
    let modes = [
        mode("magic", Plain, "INFRA", LAB, "not a frame"),
        mode("version", Plain, "INFRA", LAB, "frame version 99"),
        mode("kind", Plain, "INFRA", LAB, "unknown frame kind 77"),
        mode("huge", Plain, "INFRA", LAB, "the bound is"),
        mode("crc", Plain, "INFRA", LAB, "checksum"),
        mode("session", Plain, "INFRA", LAB, "frame of session"),
        mode("hello", Plain, "INFRA", LAB, "Hello frame where a response belongs"),
        mode("deep", Plain, "INFRA", LAB, "frame body"),
        mode("deep-reply", Plain, "INFRA", LAB, "frame body"),
        mode("no-json", Plain, "INFRA", LAB, "frame body"),
        mode("unknown", Plain, "INFRA", LAB, "frame body: unknown variant"),
        mode("unknown-step", Plain, "INFRA", LAB, "frame body: unknown variant"),
        mode("never-asked", Plain, "INFRA", LAB, "never sent"),
        mode("id-zero", Plain, "INFRA", LAB, "never sent"),
        mode("number", Plain, "INFRA", LAB, "frame body"),
        mode("nan", Plain, "INFRA", LAB, "frame body"),
        mode("negative", Plain, "INFRA", LAB, "frame body"),
        mode("other-step", Plain, "INFRA", LAB, "answered another question"),
        mode("other-stats", Plain, "INFRA", LAB, "`stats`: the agent answered another question"),
        mode("other-mark", Plain, "INFRA", LAB, "`mark`: the agent answered another question"),
        mode("twice", Plain, "PASS", None, ""),
        mode("no-frames", Early, "INFRA", LAB, "no frame of this session"),
    ];
    run(&modes, "clone").check(&modes);
}

#[test]
fn answers_to_another_question_before_the_first_step() {
    use Steps::Early;
    let modes = [
        mode("other-facts", Early, "INFRA", LAB, "`facts`: the agent answered another question"),
        mode("other-topology", Early, "INFRA", LAB, "`topology`: the agent answered another"),
        mode("lie-layout", Early, "INFRA", LAB, "guest is not laid out as topology `1x2` says"),
        mode("text-facts", Early, "PASS", None, ""),
    ];
    run(&modes, "boot").check(&modes);
}

#[test]
fn steps_that_never_end_whatever_the_guest_sends_meanwhile() {
    use Steps::Plain;
    let modes = [
        mode("late", Plain, "HANG", Some("scenario"), "no task waits in the kernel"),
        mode("truncated", Plain, "HANG", LAB, "the agent does not answer"),
        mode("heartbeats", Plain, "HANG", LAB, "the agent does not answer"),
        mode("text-hang", Plain, "HANG", Some("server"), "`set` did not end (\\x1b[2J"),
    ];
    run(&modes, "clone").check(&modes);
}

#[test]
fn words_that_want_to_be_more_than_words() {
    use Steps::{Plain, Tree};
    let modes = [
        mode("text-agent", Plain, "INFRA", LAB, "agent failed in step `set`: \\x1b[2J"),
        mode("text-transport", Plain, "FAIL", Some("server"), "\\x1b[2J"),
        mode("text-long", Plain, "FAIL", Some("server"), "\\x1b[2J"),
        // What looks like a fault is one on the console only.
        mode("text-tree", Tree, "NEW", Some("scenario"), "no snapshot"),
    ];
    let group = run(&modes, "clone");
    group.check(&modes);
    let pending = group.project.path().join("snapshots/correctness/text-tree/any.snap.new");
    assert!(
        std::fs::read_to_string(pending).unwrap().contains("Kernel panic - not syncing: forged")
    );
}

#[test]
fn files_that_do_not_want_to_stay_where_the_host_keeps_them() {
    use Steps::Fio;
    let modes = [
        mode("file-up", Fio, "INFRA", LAB, "refused name"),
        mode("file-deep", Fio, "INFRA", LAB, "refused name"),
        mode("file-absolute", Fio, "INFRA", LAB, "refused name"),
        mode("file-device", Fio, "INFRA", LAB, "refused name"),
        mode("file-dots", Fio, "INFRA", LAB, "refused name"),
        mode("file-unnamed", Fio, "INFRA", LAB, "refused name"),
        mode("file-evil", Fio, "INFRA", LAB, "refused name"),
        mode("file-nul", Fio, "INFRA", LAB, "refused name"),
        mode("file-none", Fio, "INFRA", LAB, "no answer to artifact ../artifacts/fio.json"),
        mode("file-short", Fio, "INFRA", LAB, "bulk frame is cut short"),
        mode("file-empty", Fio, "INFRA", LAB, "text instead of JSON"),
        mode("file-nan", Fio, "INFRA", LAB, "fio's JSON"),
        mode("file-nested", Fio, "INFRA", LAB, "text instead of JSON"),
        mode("file-evil-json", Fio, "INFRA", LAB, "fio's JSON"),
        mode("file-numbers", Fio, "FAIL", KERNEL, "short and"),
        mode("file-many", Fio, "INFRA", LAB, "the number of artifacts"),
        mode("file-endless", Fio, "INFRA", LAB, "bytes of an artifact"),
    ];
    run(&modes, "clone").check(&modes);
}

#[test]
fn claims_that_all_went_well_count_for_nothing_against_what_is_known() {
    use Steps::{Plain, Serve};
    let modes = [
        mode("lie-splat", Plain, "KERNEL", KERNEL, "fuse_forged_read"),
        mode("lie-mark", Plain, "INFRA", LAB, "no marker on the console"),
        mode("lie-taint", Plain, "KERNEL", KERNEL, "kernel got tainted"),
        mode("lie-ring-fds", Serve, "FAIL", Some("server"), "0 io_uring instances open"),
        mode("lie-ring-queues", Serve, "FAIL", Some("server"), "4294967295 queues registered"),
        mode("lie-ring-classic", Serve, "FAIL", Some("server"), "asked for ring and got classic"),
        mode("lie-ring-bypass", Serve, "FAIL", KERNEL, "came over /dev/fuse"),
    ];
    run(&modes, "clone").check(&modes);
}

#[test]
fn consoles_without_end_and_bytes_that_a_terminal_would_obey() {
    use Steps::Plain;
    let modes = [
        mode("console-flood", Plain, "PASS", None, ""),
        mode("console-line", Plain, "PASS", None, ""),
        mode("console-marks", Plain, "PASS", None, ""),
        mode("console-escapes", Plain, "KERNEL", KERNEL, "kernel panic"),
    ];
    run(&modes, "clone").check(&modes);
}
