//! The layout of a run directory, and how runs are made, found and read.
//!
//! `<runs>/<utc time>-<id>/events.jsonl`, and per case `cases/<case path>/`. Two runs never
//! share a directory, and neither do two attempts of a case.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::{log, wire};
use crate::run::events::Record;

/// Longest component of a case's path, bytes.
const MAX_COMPONENT: usize = 80;

/// Largest log that is read back, bytes.
const MAX_LOG: u64 = 1 << 30;

/// The directory of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir {
    path: PathBuf,
}

impl RunDir {
    /// Makes a new directory below `runs` (made when missing) and points `latest` at it.
    pub fn create(runs: &Path) -> io::Result<RunDir> {
        fs::create_dir_all(runs).map_err(|e| {
            let text = format!("{}: {e}; name another directory with LAB_RUNS", runs.display());
            io::Error::new(e.kind(), text)
        })?;
        let stamp = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
        for _ in 0..64 {
            let name = format!("{stamp}-{:06x}", random() & 0xff_ffff);
            let path = runs.join(&name);
            match fs::create_dir(&path) {
                Ok(()) => {
                    point_latest(runs, &name)?;
                    return Ok(RunDir { path });
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "no free name for a run directory"))
    }

    /// The directory of a run that exists.
    pub fn open(path: &Path) -> RunDir {
        RunDir { path: path.into() }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of the run.
    pub fn name(&self) -> String {
        self.path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Keeps the run from being removed as an old one while the file is held.
    ///
    /// Errors: it is gone. That it still goes on is none: its writer holds it, too.
    pub fn hold(&self) -> io::Result<fs::File> {
        let file = fs::File::open(self.path.join(log::FILE))?;
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) | Err(rustix::io::Errno::WOULDBLOCK) => Ok(file),
            Err(e) => Err(e.into()),
        }
    }

    /// A directory below the run that no earlier part of it has used, not made yet.
    pub fn unused(&self, below: &str, name: &str) -> PathBuf {
        let path = |n: u32| match n {
            1 => self.path.join(below).join(name),
            _ => self.path.join(below).join(format!("{name}~{n}")),
        };
        (1..=1024).map(path).find(|path| !path.exists()).unwrap_or_else(|| path(1024))
    }

    /// Makes the directory of one attempt (from 1) of a case.
    ///
    /// Ids that differ only in characters that a path cannot hold get different directories.
    pub fn create_case(&self, case: &str, attempt: u32) -> io::Result<CaseDir> {
        let base = case_path(case, attempt);
        for n in 1..=64u32 {
            let relative = if n == 1 { base.clone() } else { format!("{base}~{n}") };
            let path = self.path.join(&relative);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            match fs::create_dir(&path) {
                Ok(()) => return Ok(CaseDir { path, relative }),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "no free name for a case directory"))
    }

    /// The directory of a case as an event names it; none when it leads out of the run.
    pub fn case(&self, relative: &str) -> Option<CaseDir> {
        let inside =
            Path::new(relative).components().all(|c| matches!(c, std::path::Component::Normal(_)));
        inside.then(|| CaseDir { path: self.path.join(relative), relative: relative.into() })
    }

    /// Reads the record of the run; bounded, and tolerant of a torn end.
    pub fn read(&self) -> io::Result<(Vec<Record>, Option<wire::Torn>)> {
        let path = self.path.join(log::FILE);
        let size = fs::metadata(&path)?.len();
        if size > MAX_LOG {
            return Err(io::Error::other(format!(
                "{size} bytes of events, the bound is {MAX_LOG}"
            )));
        }
        Ok(wire::read(&fs::read(path)?))
    }
}

/// The directory of one attempt of a case and the names of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseDir {
    /// The directory.
    pub path: PathBuf,
    /// The directory relative to the run, as events name it.
    pub relative: String,
}

impl CaseDir {
    /// The resolved scenario, JSON.
    pub fn scenario(&self) -> PathBuf {
        self.path.join("scenario.json")
    }

    /// The QEMU command, one argument a line, quoted for a shell.
    pub fn qemu_cmd(&self) -> PathBuf {
        self.path.join("qemu.cmd")
    }

    /// The kernel's console.
    pub fn console(&self) -> PathBuf {
        self.path.join("console.log")
    }

    /// Observations by step, JSON.
    pub fn observations(&self) -> PathBuf {
        self.path.join("observations.json")
    }

    /// Where every task waited when a step hung, JSON; only then.
    pub fn diagnosis(&self) -> PathBuf {
        self.path.join("diagnosis.json")
    }

    /// What was asked of a guest that hung, how long each took and what came of it, JSON.
    pub fn escalation(&self) -> PathBuf {
        self.path.join("escalation.json")
    }

    /// The memory of a guest that hung, ELF core, where it was wanted.
    pub fn vmcore(&self) -> PathBuf {
        self.path.join("vmcore")
    }

    /// A bulk artifact of the guest; the name was checked when it arrived.
    pub fn artifact(&self, name: &str) -> PathBuf {
        self.path.join("artifacts").join(name)
    }
}

/// Why no run was found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// Nothing of that name.
    #[error("no run `{name}` in {}", runs.display())]
    Missing {
        /// As given.
        name: String,
        /// Where it was looked for.
        runs: PathBuf,
    },
    /// More than one.
    #[error("run `{name}` is ambiguous: {}", candidates.join(", "))]
    Ambiguous {
        /// As given.
        name: String,
        /// The first eight that fit.
        candidates: Vec<String>,
    },
    /// The directory of runs could not be read.
    #[error("cannot read {}: {source}", runs.display())]
    Io {
        /// The directory.
        runs: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Finds a run by `latest`, its name, the beginning of its name, its id (the part behind the
/// dash) or a path to its directory.
pub fn find(runs: &Path, name: &str) -> Result<RunDir, FindError> {
    if name.contains('/') && Path::new(name).join(log::FILE).is_file() {
        return Ok(RunDir::open(Path::new(name)));
    }
    let missing = || FindError::Missing { name: name.into(), runs: runs.into() };
    if name == "latest" {
        let target = fs::read_link(runs.join("latest")).map_err(|_| missing())?;
        return Ok(RunDir::open(&runs.join(target)));
    }
    let mut fit: Vec<String> = names(runs)?
        .into_iter()
        .filter(|n| n.starts_with(name) || n.rsplit('-').next().is_some_and(|id| id == name))
        .collect();
    if fit.iter().any(|n| n == name) {
        fit = vec![name.into()];
    }
    match fit.as_slice() {
        [] => Err(missing()),
        [one] if !name.is_empty() => Ok(RunDir::open(&runs.join(one))),
        _ => {
            fit.truncate(8);
            Err(FindError::Ambiguous { name: name.into(), candidates: fit })
        }
    }
}

/// Names of all runs, oldest first.
pub fn names(runs: &Path) -> Result<Vec<String>, FindError> {
    let entries = match fs::read_dir(runs) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(FindError::Io { runs: runs.into(), source }),
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|e| e.file_type().is_ok_and(|t| t.is_dir()))
        .filter(|e| e.path().join(log::FILE).is_file())
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    Ok(names)
}

/// `cases/<kernel>/<topology>/<scenario>` with odd characters replaced, never leading outside.
fn case_path(case: &str, attempt: u32) -> String {
    let parts = case.split('/').filter(|p| !p.is_empty()).map(component);
    let mut path = std::iter::once("cases".into()).chain(parts).collect::<Vec<String>>().join("/");
    if attempt > 1 {
        path.push_str(&format!("@{attempt}"));
    }
    path
}

fn component(part: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || "._-+#".contains(c) { c } else { '_' };
    let mut name: String = part.chars().map(keep).take(MAX_COMPONENT).collect();
    if name.chars().all(|c| c == '.') {
        name = name.replace('.', "_");
    }
    name
}

/// Points `latest` at a run, at once and never at nothing.
fn point_latest(runs: &Path, name: &str) -> io::Result<()> {
    let temporary = runs.join(format!(".latest-{name}"));
    std::os::unix::fs::symlink(name, &temporary)?;
    fs::rename(&temporary, runs.join("latest"))
}

/// A number that differs between processes and calls; not a secret.
fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(runs: &Path, name: &str) {
        fs::create_dir(runs.join(name)).unwrap();
        fs::write(runs.join(name).join(log::FILE), "").unwrap();
    }

    #[test]
    fn runs_never_share_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let runs: Vec<RunDir> = std::thread::scope(|s| {
            let made: Vec<_> =
                (0..8).map(|_| s.spawn(|| RunDir::create(dir.path()).unwrap())).collect();
            made.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let mut names: Vec<_> = runs.iter().map(RunDir::name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 8);
        assert!(names.contains(&find(dir.path(), "latest").unwrap().name()));
    }

    #[test]
    fn runs_are_found_by_name_prefix_id_and_path() {
        let dir = tempfile::tempdir().unwrap();
        let names = ["20260102T030405Z-aaaaaa", "20260102T030405Z-bbbbbb", "20260203T000000Z-cc"];
        names.iter().for_each(|n| logged(dir.path(), n));
        let found = |name: &str| find(dir.path(), name).map(|r| r.name());
        assert_eq!(found(names[0]).unwrap(), names[0]);
        assert_eq!(found("202602").unwrap(), names[2]);
        assert_eq!(found("bbbbbb").unwrap(), names[1]);
        let path = dir.path().join(names[1]);
        assert_eq!(found(&path.to_string_lossy()).unwrap(), names[1]);
        assert!(matches!(found("202601"), Err(FindError::Ambiguous { .. })));
        assert!(matches!(found(""), Err(FindError::Ambiguous { .. })));
        assert!(matches!(found("2027"), Err(FindError::Missing { .. })));
        assert!(matches!(found("latest"), Err(FindError::Missing { .. })));
        assert!(find(&dir.path().join("none"), "x").is_err());
    }

    #[test]
    fn case_directories_stay_inside_and_apart() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::create(dir.path()).unwrap();
        let a = run.create_case("/../../etc/bz Image/1x2/tree", 1).unwrap();
        assert_eq!(a.relative, "cases/__/__/etc/bz_Image/1x2/tree");
        let b = run.create_case("/../../etc/bz:Image/1x2/tree", 1).unwrap();
        assert_eq!(b.relative, "cases/__/__/etc/bz_Image/1x2/tree~2");
        let c = run.create_case("k/1x2/tree#2", 3).unwrap();
        assert_eq!(c.relative, "cases/k/1x2/tree#2@3");
        assert_eq!(run.case(&c.relative), Some(c));
        assert_eq!(run.case("../other"), None);
        assert_eq!(run.case("/etc"), None);
    }

    #[test]
    fn a_killed_run_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::create(dir.path()).unwrap();
        let line = crate::run::samples::started(1).to_line().unwrap();
        fs::write(run.path().join(log::FILE), format!("{line}\n{}", &line[..20])).unwrap();
        let (records, torn) = run.read().unwrap();
        assert_eq!(records.len(), 1);
        assert!(torn.unwrap().cut_off);
    }
}
