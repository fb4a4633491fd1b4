//! Guests that misbehave on purpose: what each comes to, and that none reaches out of its case.
//!
//! All modes of a group run in one `lab` process, most of them as clones of one template; what
//! is printed, written and used by that process is bounded and harmless whatever they do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

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

fn run(modes: &[Mode]) -> Group {
    let project = Project::new();
    for mode in modes {
        project.write(&format!("scenarios/correctness/{}.toml", mode.name), &mode.scenario());
    }
    let mut lab =
        project.lab(&["test", "--topology", "1x2", "--accel", "tcg", "--junit", "out.xml"]);
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
    let begin = Instant::now();
    let run = project.finish(child.wait_with_output().unwrap());
    eprintln!("{} modes in {:?}", modes.len(), begin.elapsed());
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
            if name != "console.log" && path.parent().unwrap().file_name().unwrap() != "artifacts" {
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
    run(&modes).check(&modes);
}
