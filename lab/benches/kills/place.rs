//! Where the runs happen: a project, a record and a temporary directory of their own, and the
//! processes that belong to them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use tempfile::TempDir;

/// Every process of a run has this variable, and nobody else's has its value.
const MARK: &str = "KILLS_OF";

const SCENARIOS: [&str; 4] = ["one", "two", "three", "four"];

const SCENARIO: &str = r#"
summary = "a mount and a tree of operations"

[[step]]
do = "serve"
transport = "ring"
mount-point = "/mnt/ring"

[[step]]
do = "tree"
path = "/mnt/ring"
"#;

pub(crate) struct Place {
    dir: TempDir,
    lab: PathBuf,
}

impl Place {
    pub(crate) fn new(lab: &Path) -> Place {
        let dir = TempDir::with_prefix("kills-").unwrap();
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR"));
        for sub in ["scenarios/correctness", "snapshots", "temp"] {
            fs::create_dir_all(dir.path().join(sub)).unwrap();
        }
        for name in ["kernels", "images", "scenarios/topologies"] {
            symlink(shipped.join(name), dir.path().join(name)).unwrap();
        }
        for name in SCENARIOS {
            let path = format!("scenarios/correctness/{name}.toml");
            fs::write(dir.path().join(path), SCENARIO).unwrap();
        }
        // A build may replace the program in the middle of the series.
        let copy = dir.path().join("lab");
        fs::copy(lab, &copy).unwrap();
        Place { dir, lab: copy }
    }

    fn mark(&self) -> String {
        self.dir.path().display().to_string()
    }

    /// Directory of the runs.
    pub(crate) fn runs(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// Starts `lab` with these arguments, in silence.
    pub(crate) fn start(&self, args: &[&str]) -> Child {
        let mut command = Command::new(&self.lab);
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("LAB_")) {
                command.env_remove(name);
            }
        }
        let out = fs::File::create(self.dir.path().join("output")).unwrap();
        command
            .args(args)
            .current_dir(self.dir.path())
            .env_remove("CI")
            .env("LAB_RUNS", self.runs())
            .env("LAB_SLOTS", "4")
            .env("TMPDIR", self.dir.path().join("temp"))
            .env(MARK, self.mark())
            .stdin(Stdio::null())
            .stdout(out.try_clone().unwrap())
            .stderr(out)
            .spawn()
            .unwrap()
    }

    /// What the last `lab` said.
    pub(crate) fn output(&self) -> String {
        fs::read_to_string(self.dir.path().join("output")).unwrap_or_default()
    }

    /// Processes of the runs, whoever is their parent: id and command line.
    pub(crate) fn processes(&self) -> Vec<(i32, String)> {
        let mark = format!("{MARK}={}", self.mark());
        let marked = |entry: fs::DirEntry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let environ = fs::read(entry.path().join("environ")).ok()?;
            let ours = environ.split(|byte| *byte == 0).any(|word| word == mark.as_bytes());
            let words = fs::read(entry.path().join("cmdline")).ok()?;
            let words = String::from_utf8_lossy(&words).replace('\0', " ");
            ours.then_some((pid, words))
        };
        fs::read_dir("/proc").unwrap().flatten().filter_map(marked).collect()
    }

    /// The VMs among them.
    pub(crate) fn vms(&self) -> Vec<i32> {
        let processes = self.processes().into_iter();
        processes.filter(|(_, words)| words.contains(" -accel ")).map(|(pid, _)| pid).collect()
    }

    /// Waits until no process of the runs is left; how long that took, and what is left after
    /// `limit`.
    pub(crate) fn gone(&self, limit: Duration) -> (Duration, usize) {
        let begin = Instant::now();
        loop {
            let left = self.processes().len();
            if left == 0 || begin.elapsed() > limit {
                return (begin.elapsed(), left);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Temporary directories that a later run does not sweep away.
    pub(crate) fn left_over(&self) -> usize {
        let temp = self.dir.path().join("temp");
        let entries = || fs::read_dir(&temp).unwrap().flatten();
        // The sweep spares young ones.
        for entry in entries() {
            let old = SystemTime::now() - Duration::from_secs(3600);
            let _ = fs::File::open(entry.path()).and_then(|dir| dir.set_modified(old));
        }
        let _ = self.start(&["test", "--topology", "1x2", "--scenario", "correctness/one"]).wait();
        entries().count()
    }
}
