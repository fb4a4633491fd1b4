//! Source trees: fetched or found, unpacked once, known by what they hold.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use walkdir::WalkDir;

use super::error::BuildError;
use crate::host::apt::root::unpack;
use crate::host::process::{self, Program};
use crate::host::{files, lock, paths};
use crate::kernel::fetch::{Fetch, archive};
use crate::kernel::recipe::Source;

const LOCK_LIMIT: Duration = Duration::from_secs(3600);
const UNPACK_LIMIT: Duration = Duration::from_secs(1800);
const GIT_LIMIT: Duration = Duration::from_secs(60);
/// Files of a directory that is taken for a source tree; Linux has 95,000.
const MAX_FILES: usize = 400_000;

/// Files of a live directory: path to size and time of change.
pub(super) type Listing = BTreeMap<String, String>;

/// A source tree that is at hand.
#[derive(Debug, Clone)]
pub(super) struct SourceTree {
    /// Where it is; never written to.
    pub(super) dir: PathBuf,
    /// Stands for its content.
    pub(super) key: String,
    /// Stands for the tree that it is built in: that of a live directory outlives an edit.
    pub(super) home: String,
    /// For people.
    pub(super) label: String,
    /// Its files, where they may change under the lab.
    pub(super) live: Option<Listing>,
}

/// Where sources come from and go to.
pub(super) struct Sources<'a> {
    /// Directory of unpacked sources.
    pub(super) dir: PathBuf,
    /// Directory of apt's private roots.
    pub(super) apt: PathBuf,
    pub(super) mode: Fetch,
    pub(super) tell: &'a (dyn Fn(&str) + Send + Sync),
}

/// The last answer of an archive about a package.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    version: String,
}

impl Sources<'_> {
    /// The tree of a source.
    pub(super) async fn find(
        &self,
        source: &Source,
        cancel: &CancellationToken,
    ) -> Result<SourceTree, BuildError> {
        match source {
            Source::Debian { package, suites } => self.debian(package, suites, cancel).await,
            Source::Git { dir, revision } => self.git(dir, revision, cancel).await,
            Source::Directory(dir) => directory(dir, cancel).await,
            Source::Tarball { path, sha256 } => self.tarball(path, sha256, cancel).await,
        }
    }

    fn unpacked(&self, content: &str, label: String) -> SourceTree {
        let key = files::sha256_bytes(content.as_bytes())[..16].to_owned();
        let dir = self.dir.join(&key);
        SourceTree { dir, home: key.clone(), key, label, live: None }
    }

    /// A package is asked for once: what was tested yesterday is what is tested today. A new
    /// version comes after `lab kernel clean --sources`.
    async fn debian(
        &self,
        package: &str,
        suites: &[String],
        cancel: &CancellationToken,
    ) -> Result<SourceTree, BuildError> {
        let question = files::sha256_bytes(format!("{package}\n{}", suites.join(" ")).as_bytes());
        let answer = self.dir.join(format!("{package}-{}.json", &question[..8]));
        let tree = |version: &str| {
            let label = format!("debian {package} {version}");
            self.unpacked(&label.clone(), label)
        };
        let known = || -> Option<SourceTree> {
            let bytes = files::read_bounded(&answer, 4096).ok()?;
            let tree = tree(&serde_json::from_slice::<Answer>(&bytes).ok()?.version);
            tree.dir.is_dir().then_some(tree)
        };
        if let Some(tree) = known() {
            return Ok(tree);
        }
        let what = format!("package {package}");
        if self.mode == Fetch::CacheOnly {
            return Err(BuildError::Source { what, why: "not fetched yet".into() });
        }
        let _lock = self.lock(cancel).await?;
        if let Some(tree) = known() {
            return Ok(tree);
        }
        (self.tell)(&format!("fetching {package} from {}", suites.join(", ")));
        let etc_apt = Path::new("/etc/apt");
        let apt = archive(&self.apt.join("sources"), etc_apt, suites).map_err(Box::new)?;
        apt.update(cancel).await?;
        let rows = apt.madison(&[package.to_owned()], cancel).await?;
        let Some(version) = newest(&rows, package) else {
            let why = format!("no suite of {} has it", suites.join(", "));
            return Err(BuildError::Source { what, why });
        };
        let tree = tree(&version);
        let temp = self.temp()?;
        apt.download(&[format!("{package}={version}")], temp.path(), cancel).await?;
        let deb = only_deb(temp.path())?;
        let unpacked = temp.path().join("package");
        unpack(&deb, &unpacked, cancel).await?;
        let tarball = unpacked.join(format!("usr/src/{package}.tar.xz"));
        self.extract(&tarball, &tree, cancel).await?;
        let text = serde_json::to_vec(&Answer { version }).unwrap_or_default();
        files::replace(&answer, &text).map_err(BuildError::io(&answer))?;
        Ok(tree)
    }

    async fn git(
        &self,
        dir: &Path,
        revision: &str,
        cancel: &CancellationToken,
    ) -> Result<SourceTree, BuildError> {
        let what = format!("git {} {revision}", dir.display());
        let wrong = |why: String| BuildError::Source { what: what.clone(), why };
        let wanted = format!("{revision}^{{commit}}");
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted];
        let output = process::run(git(dir, args), GIT_LIMIT, cancel).await?;
        let commit = output.stdout.trim().to_owned();
        if !output.status.success() || commit.len() < 40 {
            let said = output.stderr.trim();
            let why = if said.is_empty() { "no such commit" } else { said };
            return Err(wrong(why.to_owned()));
        }
        let tree = self.unpacked(&format!("git {commit}"), format!("git {}", &commit[..12]));
        if tree.dir.is_dir() {
            return Ok(tree);
        }
        let _lock = self.lock(cancel).await?;
        if tree.dir.is_dir() {
            return Ok(tree);
        }
        (self.tell)(&format!("copying {what}"));
        let temp = self.temp()?;
        let tar = temp.path().join("source.tar");
        let into = format!("--output={}", tar.display());
        let args = ["archive", "--format=tar", "--prefix=source/", &into, &commit];
        let output = process::run(git(dir, args), UNPACK_LIMIT, cancel).await?;
        if !output.status.success() {
            return Err(wrong(output.stderr.trim().to_owned()));
        }
        self.extract(&tar, &tree, cancel).await?;
        Ok(tree)
    }

    async fn tarball(
        &self,
        path: &Path,
        sha256: &str,
        cancel: &CancellationToken,
    ) -> Result<SourceTree, BuildError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let tree = self.unpacked(&format!("tarball {sha256}"), format!("tarball {name}"));
        if tree.dir.is_dir() {
            return Ok(tree);
        }
        let _lock = self.lock(cancel).await?;
        if tree.dir.is_dir() {
            return Ok(tree);
        }
        let found = files::sha256(path).map_err(BuildError::io(path))?;
        if found != sha256 {
            let why = format!("its sha256 is {found}, the entry says {sha256}");
            return Err(BuildError::Source { what: path.display().to_string(), why });
        }
        (self.tell)(&format!("unpacking {}", path.display()));
        self.extract(path, &tree, cancel).await?;
        Ok(tree)
    }

    async fn lock(&self, cancel: &CancellationToken) -> Result<lock::Lock, BuildError> {
        paths::create_private(&self.dir)?;
        let lock = lock::exclusive(&self.dir.join("lock"), LOCK_LIMIT, cancel).await?;
        files::remove_leftovers(&self.dir);
        Ok(lock)
    }

    fn temp(&self) -> Result<tempfile::TempDir, BuildError> {
        let made = tempfile::Builder::new().prefix(".tmp-").tempdir_in(&self.dir);
        made.map_err(BuildError::io(&self.dir))
    }

    /// Unpacks a tarball whose files are all below one directory, and moves that into place.
    async fn extract(
        &self,
        tarball: &Path,
        tree: &SourceTree,
        cancel: &CancellationToken,
    ) -> Result<(), BuildError> {
        let temp = self.temp()?;
        let wrong = |why: String| BuildError::Source { what: tarball.display().to_string(), why };
        let args = [
            "--extract".into(),
            "--no-same-owner".into(),
            "--strip-components=1".into(),
            format!("--file={}", tarball.display()),
            format!("--directory={}", temp.path().display()),
        ];
        let output = process::run(Program::new("tar", args), UNPACK_LIMIT, cancel).await?;
        if !output.status.success() {
            if output.stderr.contains("No space left on device") {
                return Err(BuildError::NoSpace(self.dir.clone()));
            }
            let said: Vec<&str> = output.stderr.lines().take(3).collect();
            return Err(wrong(said.join("; ")));
        }
        check_is_kernel(temp.path()).map_err(wrong)?;
        files::publish_dir(&temp.keep(), &tree.dir).map_err(BuildError::io(&tree.dir))
    }
}

fn git<'a>(dir: &'a Path, args: impl IntoIterator<Item = &'a str>) -> Program {
    let all = ["-C".into(), dir.into()].into_iter().chain(args.into_iter().map(Into::into));
    Program::new("git", all.collect::<Vec<std::ffi::OsString>>())
}

fn check_is_kernel(dir: &Path) -> Result<(), String> {
    match ["Makefile", "Kconfig"].iter().find(|name| !dir.join(name).is_file()) {
        Some(name) => Err(format!("no kernel source: there is no {name} at its top")),
        None => Ok(()),
    }
}

/// The newest version of a package in the output of `apt-cache madison`.
fn newest(rows: &str, package: &str) -> Option<String> {
    let version = |row: &str| {
        let mut columns = row.split(" | ").map(str::trim);
        let (name, version) = (columns.next()?, columns.next()?);
        (name == package && columns.next()?.ends_with("Packages")).then(|| version.to_owned())
    };
    rows.lines().filter_map(version).max_by(|a, b| crate::kernel::version::compare(a, b))
}

fn only_deb(dir: &Path) -> Result<PathBuf, BuildError> {
    let entries = std::fs::read_dir(dir).map_err(BuildError::io(dir))?;
    let debs = entries.flatten().map(|entry| entry.path());
    debs.into_iter().find(|path| path.extension().is_some_and(|e| e == "deb")).ok_or_else(|| {
        BuildError::Source { what: dir.display().to_string(), why: "apt left no package".into() }
    })
}

/// A directory as it stands. Of a git work tree the files that git knows or would add; of
/// another one all of them, so it must not hold a build.
async fn directory(dir: &Path, cancel: &CancellationToken) -> Result<SourceTree, BuildError> {
    let wrong = |why: String| BuildError::Source { what: dir.display().to_string(), why };
    check_is_kernel(dir).map_err(wrong)?;
    let args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let listed = process::run(git(dir, args), GIT_LIMIT, cancel).await;
    // The output that is kept is bounded; a cut list has lost its middle.
    let listed = listed.ok().filter(|o| o.status.success() && o.stdout.len() < process::KEEP);
    let names: Vec<String> = match listed {
        Some(output) => output.stdout.split('\0').map(str::to_owned).collect(),
        None if dir.join(".config").exists() && !dir.join(".git").exists() => {
            return Err(wrong("it holds a build: run `make mrproper` there first".into()));
        }
        None => walk(dir)?,
    };
    let mut listing = Listing::new();
    for name in names {
        if let Some(stamp) = stamp(&dir.join(&name)) {
            listing.insert(name, stamp);
        }
    }
    let text: String = listing.iter().map(|(name, stamp)| format!("{name}\0{stamp}\n")).collect();
    let key = files::sha256_bytes(text.as_bytes())[..16].to_owned();
    let path = std::path::absolute(dir).map_err(BuildError::io(dir))?;
    let home = files::sha256_bytes(path.display().to_string().as_bytes())[..16].to_owned();
    let label = format!("directory {}", path.display());
    Ok(SourceTree { dir: path, key, home, label, live: Some(listing) })
}

/// Files and links below a directory, without what builds leave.
fn walk(dir: &Path) -> Result<Vec<String>, BuildError> {
    let built = |name: &str| {
        name.ends_with(".o") || name.ends_with(".a") || name.ends_with(".cmd") || name == ".git"
    };
    let mut names = Vec::new();
    let entries = WalkDir::new(dir).into_iter();
    for entry in entries.filter_entry(|e| !built(&e.file_name().to_string_lossy())) {
        let entry = entry.map_err(|e| BuildError::io(dir)(e.into()))?;
        if entry.file_type().is_dir() {
            continue;
        }
        if names.len() == MAX_FILES {
            let why = format!("more than {MAX_FILES} files");
            return Err(BuildError::Source { what: dir.display().to_string(), why });
        }
        let name = entry.path().strip_prefix(dir).unwrap_or(entry.path());
        names.push(name.to_string_lossy().into_owned());
    }
    Ok(names)
}

/// Size and time of change; nothing for what is no file or link.
fn stamp(path: &Path) -> Option<String> {
    let meta = std::fs::symlink_metadata(path).ok()?;
    if meta.is_symlink() {
        return Some(format!("link {}", std::fs::read_link(path).ok()?.display()));
    }
    let time = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    meta.is_file().then(|| format!("{} {}.{:09}", meta.len(), time.as_secs(), time.subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_of_the_package_itself_is_taken() {
        let rows = " linux-source-7.3 | 7.3.4-1 | http://m.example/d s/main amd64 Packages\n\
                     linux-source-7.3 | 7.3.10-1 | http://m.example/d s/main amd64 Packages\n\
                     linux-source-7.3 | 7.3.11-1 | http://m.example/d s/main Sources\n";
        assert_eq!(newest(rows, "linux-source-7.3").as_deref(), Some("7.3.10-1"));
        assert_eq!(newest(rows, "linux-source"), None);
    }
}
