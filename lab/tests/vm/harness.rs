//! A throw-away project and the runs made in it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A project directory with the shipped kernels, topologies and images and no scenarios.
pub(crate) struct Project {
    dir: TempDir,
}

/// One finished `lab` process.
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) events: Vec<Value>,
    pub(crate) run_dir: PathBuf,
}

impl Project {
    pub(crate) fn new() -> Project {
        let dir = TempDir::with_prefix("lab-test-").unwrap();
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR"));
        fs::create_dir_all(dir.path().join("scenarios")).unwrap();
        fs::create_dir_all(dir.path().join("snapshots")).unwrap();
        for name in ["kernels", "images", "scenarios/topologies"] {
            symlink(shipped.join(name), dir.path().join(name)).unwrap();
        }
        Project { dir }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file of the project.
    pub(crate) fn write(&self, path: &str, text: &str) -> &Project {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// `lab` in this project, not started. CI and LAB_* of the caller do not leak in.
    pub(crate) fn lab(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lab"));
        for (name, _) in std::env::vars_os() {
            let lab = name.to_str().is_some_and(|n| n.starts_with("LAB_"));
            if lab && name != "LAB_QEMU" {
                command.env_remove(name);
            }
        }
        command
            .args(args)
            .current_dir(self.path())
            .env_remove("CI")
            .env("NO_COLOR", "1")
            .env("XDG_STATE_HOME", self.path().join("state"))
            .stdin(Stdio::null());
        command
    }

    /// Runs `lab` to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Finished {
        self.finish(self.lab(args).output().unwrap())
    }

    /// Reads what a process left behind.
    pub(crate) fn finish(&self, output: Output) -> Finished {
        let run_dir = self.latest_run();
        let text = fs::read_to_string(run_dir.join("events.jsonl")).unwrap_or_default();
        let parse = |l| serde_json::from_str(l).ok();
        Finished {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            events: text.lines().filter_map(parse).collect(),
            run_dir,
        }
    }

    /// Directory of the newest run; empty when there is none.
    pub(crate) fn latest_run(&self) -> PathBuf {
        let runs = self.path().join("state/lab/runs");
        let entries = fs::read_dir(runs).into_iter().flatten().flatten().map(|e| e.path());
        let mut dirs: Vec<PathBuf> = entries.filter(|p| p.is_dir() && !p.is_symlink()).collect();
        dirs.sort();
        dirs.pop().unwrap_or_default()
    }
}

impl Finished {
    /// All output, for assertion messages.
    pub(crate) fn all(&self) -> String {
        format!("code {:?}\n{}\n{}", self.code, self.stdout, self.stderr)
    }

    /// The events of one kind.
    pub(crate) fn kind(&self, kind: &str) -> Vec<&Value> {
        self.events.iter().filter(|e| e["event"] == kind).collect()
    }

    /// The only finished case.
    pub(crate) fn case(&self) -> &Value {
        let cases = self.kind("case_finished");
        assert_eq!(cases.len(), 1, "{}", self.all());
        cases[0]
    }

    /// Asserts verdict and owner of the only case, and gives its cause.
    pub(crate) fn expect(&self, verdict: &str, owner: Option<&str>) -> &str {
        let case = self.case();
        assert_eq!(case["verdict"], verdict, "{}", self.all());
        assert_eq!(case["owner"].as_str(), owner, "{}", self.all());
        case["cause"].as_str().unwrap()
    }

    /// A file of the only case.
    pub(crate) fn file(&self, name: &str) -> String {
        let path = self.run_dir.join(self.case()["dir"].as_str().unwrap()).join(name);
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }
}

/// QEMU processes that were started for runs below `dir`: process id and command line.
fn qemu_processes(dir: &Path) -> Vec<(i32, String)> {
    let needle = dir.to_str().unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|p| {
            let pid = p.file_name().to_str()?.parse().ok()?;
            let environ = fs::read(p.path().join("environ")).ok()?;
            let cmdline = fs::read(p.path().join("cmdline")).ok()?;
            let text = String::from_utf8_lossy(&cmdline).replace('\0', " ");
            let ours = String::from_utf8_lossy(&environ).contains(needle);
            (text.contains("qemu-system") && ours).then_some((pid, text))
        })
        .collect()
}

/// Their command lines.
pub(crate) fn qemus_of(dir: &Path) -> Vec<String> {
    qemu_processes(dir).into_iter().map(|(_, text)| text).collect()
}

/// Their process ids.
pub(crate) fn qemu_pids_of(dir: &Path) -> Vec<rustix::process::Pid> {
    let pids = qemu_processes(dir).into_iter();
    pids.filter_map(|(pid, _)| rustix::process::Pid::from_raw(pid)).collect()
}
