//! The project on disk: where it is, and its configuration files as texts.
//!
//! Only here are configuration files read; what they mean is for `config` to say.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use walkdir::WalkDir;

use crate::config::kernel::{BuildSpec, KernelEntry, KernelSource, SeriesPlace};
use crate::config::load::{Project, load, with_shipped};
use crate::config::problem::{ConfigErrors, SourceFile};
use crate::config::shipped;
use crate::kernel::recipe::Source;

/// Directories above the current one that are looked at.
const MAX_UP: usize = 32;

/// Configuration files of a project.
const MAX_FILES: usize = 4096;

/// Entries looked at below each directory: a link may lead anywhere.
const MAX_ENTRIES: usize = 20_000;

/// Directories below `scenarios/` that are entered.
const MAX_DEPTH: usize = 6;

/// A project and where it was found.
#[derive(Debug, Clone)]
pub struct Found {
    /// Its directory; none when only the shipped configuration is used.
    pub root: Option<PathBuf>,
    /// Its entries.
    pub project: Project,
}

/// Why there is no project. All of these are the user's to fix.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// The directory that was named is not there.
    #[error("no such directory: {}", .0.display())]
    NoDirectory(PathBuf),
    /// The directory that was named holds no project.
    #[error("{} holds no project: it has neither scenarios/ nor kernels/", .0.display())]
    NoProject(PathBuf),
    /// A file or directory could not be read.
    #[error("cannot read {path}: {cause}")]
    Read {
        /// What.
        path: String,
        /// Why.
        cause: String,
    },
    /// More than [`MAX_FILES`].
    #[error("too many files below {}; at most {MAX_FILES} hold configuration", .0.display())]
    TooMany(PathBuf),
    /// Files are wrong.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
}

/// Finds and reads the project: `given`, or the nearest directory from `cwd` upward that holds
/// `scenarios/` and `kernels/`, or else the shipped configuration alone. A directory that was
/// named must hold one of them.
pub fn open(given: Option<&Path>, cwd: &Path) -> Result<Found, ProjectError> {
    let root = match given {
        Some(dir) if dir.is_dir() => {
            if !["scenarios", "kernels"].iter().any(|part| dir.join(part).is_dir()) {
                return Err(ProjectError::NoProject(dir.to_path_buf()));
            }
            Some(dir.to_path_buf())
        }
        Some(dir) => return Err(ProjectError::NoDirectory(dir.to_path_buf())),
        None => find_root(cwd),
    };
    let own = root.as_deref().map(read_files).transpose()?.unwrap_or_default();
    let mut project = load(&with_shipped(own, shipped::files()))?;
    anchor_kernels(&mut project, root.as_deref());
    Ok(Found { root, project })
}

/// Paths in files of `kernels/` are relative to the project, not to the current directory.
fn anchor_kernels(project: &mut Project, root: Option<&Path>) {
    for kernel in project.kernels.values_mut() {
        anchor(Arc::make_mut(kernel), root);
    }
}

fn anchor(kernel: &mut KernelEntry, root: Option<&Path>) {
    let at = |path: &mut PathBuf| {
        if let Some(root) = root {
            *path = root.join(&*path);
        }
    };
    if let Some(path) = &mut kernel.vmlinux {
        at(path);
    }
    match &mut kernel.source {
        KernelSource::Debian { .. } => {}
        KernelSource::Path(path) => at(path),
        KernelSource::Built(BuildSpec { source, series, .. }) => {
            match source {
                Source::Debian { .. } => {}
                Source::Git { dir, .. } | Source::Directory(dir) => at(dir),
                Source::Tarball { path, .. } => at(path),
            }
            for place in series.iter_mut().map(|series| &mut series.place) {
                match place {
                    SeriesPlace::Path(path) => {
                        let shipped = shipped::series_of(path).map(str::to_owned);
                        at(path);
                        // A project's own series of that name wins.
                        if let (Some(name), false) = (shipped, path.exists()) {
                            *place = SeriesPlace::Shipped(name);
                        }
                    }
                    SeriesPlace::Git { dir, .. } => at(dir),
                    SeriesPlace::Shipped(_) | SeriesPlace::Lore(_) => {}
                }
            }
        }
    }
}

/// The nearest directory from `start` upward that holds a project.
pub fn find_root(start: &Path) -> Option<PathBuf> {
    start
        .ancestors()
        .take(MAX_UP)
        .find(|dir| dir.join("scenarios").is_dir() && dir.join("kernels").is_dir())
        .map(Path::to_path_buf)
}

/// Texts of all `*.toml` in `kernels/` and below `scenarios/`, and of `kernels/fragments/*.config`,
/// sorted.
fn read_files(root: &Path) -> Result<Vec<SourceFile>, ProjectError> {
    let mut files = Vec::new();
    let places = [
        ("kernels", 1, "toml"),
        ("kernels/fragments", 1, "config"),
        ("scenarios", MAX_DEPTH, "toml"),
    ];
    for (directory, depth, extension) in places {
        let top = root.join(directory);
        if !top.is_dir() {
            continue;
        }
        // Links are followed; a loop or one that leads nowhere is an error of the walk.
        let mut seen = 0;
        for entry in WalkDir::new(&top).max_depth(depth).follow_links(true).sort_by_file_name() {
            let entry = entry.map_err(|e| ProjectError::Read {
                path: top.display().to_string(),
                cause: e.to_string(),
            })?;
            seen += 1;
            if seen > MAX_ENTRIES {
                return Err(ProjectError::TooMany(top));
            }
            let path = entry.path();
            if path.extension().is_none_or(|e| e != extension) {
                continue;
            }
            if !entry.file_type().is_file() {
                let path = path.strip_prefix(root).unwrap_or(path).display().to_string();
                let cause = "a configuration file must be a regular file".to_owned();
                return Err(ProjectError::Read { path, cause });
            }
            if files.len() == MAX_FILES {
                return Err(ProjectError::TooMany(root.to_path_buf()));
            }
            files.push(read_file(root, path)?);
        }
    }
    Ok(files)
}

fn read_file(root: &Path, path: &Path) -> Result<SourceFile, ProjectError> {
    let shown = path.strip_prefix(root).unwrap_or(path).display().to_string();
    let wrong = |cause: String| ProjectError::Read { path: shown.clone(), cause };
    // One byte over the bound is enough for the reader to see that it is too large.
    let bound = SourceFile::MAX_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(bound).read_to_end(&mut bytes))
        .map_err(|e| wrong(e.to_string()))?;
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        // The bound may have cut a character; the file is refused for its size then.
        Err(e) if e.as_bytes().len() as u64 == bound => {
            String::from_utf8_lossy(e.as_bytes()).into_owned()
        }
        Err(e) => {
            let at = e.utf8_error().valid_up_to();
            return Err(wrong(format!("not UTF-8 from byte {at} on")));
        }
    };
    Ok(SourceFile { path: shown, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for sub in ["kernels", "scenarios/perf/deep", "sub/dir"] {
            fs::create_dir_all(dir.path().join(sub)).unwrap();
        }
        dir
    }

    #[test]
    fn the_root_is_found_from_below() {
        let dir = project();
        assert_eq!(find_root(&dir.path().join("sub/dir")).as_deref(), Some(dir.path()));
        fs::remove_dir(dir.path().join("kernels")).unwrap();
        assert_eq!(find_root(&dir.path().join("sub/dir")), None);
    }

    #[test]
    fn a_directory_that_was_named_holds_a_project() {
        let dir = tempfile::tempdir().unwrap();
        let error = open(Some(dir.path()), Path::new("/")).unwrap_err();
        assert!(matches!(error, ProjectError::NoProject(_)), "{error}");
        fs::create_dir(dir.path().join("scenarios")).unwrap();
        assert!(open(Some(dir.path()), Path::new("/")).is_ok());
    }

    #[test]
    fn links_are_followed_and_those_to_nothing_are_told() {
        let dir = project();
        let text = "summary = 's'\n[[step]]\ndo = 'tmpfs'\nmount-point = '/mnt/a'\n";
        fs::write(dir.path().join("elsewhere.toml"), text).unwrap();
        let link = dir.path().join("scenarios/perf/linked.toml");
        std::os::unix::fs::symlink("../../elsewhere.toml", &link).unwrap();
        let found = open(Some(dir.path()), Path::new("/")).unwrap();
        assert!(found.project.scenarios.contains_key("perf/linked"));
        fs::remove_file(dir.path().join("elsewhere.toml")).unwrap();
        let error = open(Some(dir.path()), Path::new("/")).unwrap_err().to_string();
        assert!(error.contains("linked.toml"), "{error}");
    }

    #[test]
    fn what_is_no_file_is_told_and_never_waited_for() {
        let dir = project();
        let pipe = dir.path().join("scenarios/perf/pipe.toml");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        let error = open(Some(dir.path()), Path::new("/")).unwrap_err().to_string();
        assert!(
            error.contains("perf/pipe.toml: a configuration file must be a regular"),
            "{error}"
        );
        fs::remove_file(&pipe).unwrap();
        fs::create_dir(&pipe).unwrap();
        assert!(open(Some(dir.path()), Path::new("/")).is_err());
    }

    #[test]
    fn shipped_entries_fill_a_project() {
        let dir = project();
        let own = "summary = 'mine'\npath = '/boot/vmlinuz'\n";
        fs::write(dir.path().join("kernels/stock.toml"), own).unwrap();
        let found = open(None, &dir.path().join("sub")).unwrap();
        assert_eq!(found.root.as_deref(), Some(dir.path()));
        assert_eq!(found.project.kernels["stock"].summary, "mine");
        assert!(found.project.topologies.contains_key("2x2"));
        assert_eq!(
            found.project.kernels["stock"].source,
            KernelSource::Path("/boot/vmlinuz".into())
        );
        fs::write(dir.path().join("kernels/tree.toml"), "summary = 's'\npath = 'linux'\n").unwrap();
        let found = open(None, &dir.path().join("sub")).unwrap();
        let anchored = KernelSource::Path(dir.path().join("linux"));
        assert_eq!(found.project.kernels["tree"].source, anchored);
    }

    #[test]
    fn broken_files_are_named() {
        let dir = project();
        fs::write(dir.path().join("scenarios/perf/deep/a.toml"), "summary = 1\n").unwrap();
        let error = open(Some(dir.path()), Path::new("/")).unwrap_err().to_string();
        assert!(error.contains("scenarios/perf/deep/a.toml:1:11: `summary`"), "{error}");
        fs::write(dir.path().join("scenarios/perf/deep/a.toml"), b"a = '\xff'\n").unwrap();
        let error = open(Some(dir.path()), Path::new("/")).unwrap_err().to_string();
        assert!(error.contains("deep/a.toml: not UTF-8 from byte 5"), "{error}");
        let missing = open(Some(&dir.path().join("none")), Path::new("/")).unwrap_err();
        assert!(matches!(missing, ProjectError::NoDirectory(_)));
    }

    #[test]
    fn a_file_over_the_bound_is_refused() {
        let dir = project();
        let text = "ä".repeat(SourceFile::MAX_BYTES / 2 + 1);
        fs::write(dir.path().join("scenarios/perf/a.toml"), text).unwrap();
        let error = open(Some(dir.path()), Path::new("/")).unwrap_err().to_string();
        assert!(error.contains("larger than 1048576 bytes"), "{error}");
    }
}
