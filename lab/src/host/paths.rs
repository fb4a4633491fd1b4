//! Where the lab writes: caches, runs, temporary directories.
//!
//! Nothing of the lab is written elsewhere. Directories are made for the user alone.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Longest path of a temporary directory, bytes. The sockets in it must stay under the 108
/// bytes of a socket address, with room for two more components.
pub const MAX_TEMP_BYTES: usize = 60;

/// Why there is no place to write.
#[derive(Debug, thiserror::Error)]
pub enum PathsError {
    /// Neither the XDG variable nor HOME is an absolute path.
    #[error("no place for the {what}: set {variable} or HOME to an absolute path")]
    NoHome {
        /// `cache` or `runs`.
        what: &'static str,
        /// The XDG variable.
        variable: &'static str,
    },
    /// A directory cannot be made.
    #[error("cannot make {}: {source}", path.display())]
    Create {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// What the user chose instead of the usual places.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// Cache directory.
    pub cache: Option<PathBuf>,
    /// Directory of the runs.
    pub runs: Option<PathBuf>,
}

/// The directories of the lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// What can be fetched or built again; shared by all checkouts.
    pub cache: PathBuf,
    /// One directory a run.
    pub runs: PathBuf,
}

impl Paths {
    /// Decides the directories; makes none. `env` looks up a variable, `checkout` is the root
    /// of the checkout that lab was started in.
    ///
    /// # Errors
    ///
    /// [`PathsError::NoHome`].
    pub fn find(
        env: impl Fn(&str) -> Option<OsString>,
        checkout: Option<&Path>,
        overrides: Overrides,
    ) -> Result<Paths, PathsError> {
        let cache = match overrides.cache {
            Some(path) => path,
            None => xdg(&env, "cache", "XDG_CACHE_HOME", ".cache")?,
        };
        let runs = match (overrides.runs, checkout) {
            (Some(path), _) => path,
            (None, Some(root)) => root.join("target/lab/runs"),
            (None, None) => xdg(&env, "runs", "XDG_STATE_HOME", ".local/state")?.join("runs"),
        };
        Ok(Paths { cache, runs })
    }

    /// Fetched kernels.
    pub fn kernels(&self) -> PathBuf {
        self.cache.join("kernels")
    }

    /// Built guest images.
    pub fn images(&self) -> PathBuf {
        self.cache.join("images")
    }

    /// Private roots of apt.
    pub fn apt(&self) -> PathBuf {
        self.cache.join("apt")
    }
}

fn xdg(
    env: &impl Fn(&str) -> Option<OsString>,
    what: &'static str,
    variable: &'static str,
    below_home: &str,
) -> Result<PathBuf, PathsError> {
    // The XDG specification has relative values ignored.
    let absolute = |name| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(variable)
        .or_else(|| absolute("HOME").map(|home| home.join(below_home)))
        .map(|base| base.join("lab"))
        .ok_or(PathsError::NoHome { what, variable })
}

/// The root of the checkout that `start` is in: the nearest directory upwards that holds the
/// lab's manifest, kernels and scenarios.
pub fn checkout(start: &Path) -> Option<PathBuf> {
    let is_root = |dir: &&Path| {
        dir.join("Cargo.toml").is_file()
            && ["kernels", "scenarios", "lab/src"].iter().all(|part| dir.join(part).is_dir())
    };
    start.ancestors().find(is_root).map(Path::to_path_buf)
}

/// Makes a directory and its missing parents, mode 0700. One that exists is left as it is.
///
/// # Errors
///
/// [`PathsError::Create`].
pub fn create_private(path: &Path) -> Result<(), PathsError> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| PathsError::Create { path: path.to_path_buf(), source })
}

/// A new temporary directory, mode 0700, short enough for sockets, removed when dropped.
///
/// # Errors
///
/// [`PathsError::Create`].
pub fn private_temp() -> Result<TempDir, PathsError> {
    temp_in(&temp_base(&std::env::temp_dir()))
}

fn temp_in(base: &Path) -> Result<TempDir, PathsError> {
    tempfile::Builder::new()
        .prefix("lab-")
        .permissions(std::fs::Permissions::from_mode(0o700))
        .tempdir_in(base)
        .map_err(|source| PathsError::Create { path: base.join("lab-…"), source })
}

/// The usual directory, or `/tmp` where that would make socket paths too long.
fn temp_base(usual: &Path) -> PathBuf {
    let room = "/lab-XXXXXX".len();
    let fits = usual.as_os_str().as_bytes().len() + room <= MAX_TEMP_BYTES;
    if fits && usual.is_absolute() { usual.to_path_buf() } else { PathBuf::from("/tmp") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(vars: &[(&str, &str)], checkout: Option<&str>) -> Result<Paths, PathsError> {
        let env = |name: &str| {
            vars.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value))
        };
        Paths::find(env, checkout.map(Path::new), Overrides::default())
    }

    #[test]
    fn xdg_comes_before_home_and_the_checkout_before_state() {
        let paths = find(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/c")], None).unwrap();
        assert_eq!(paths.cache, Path::new("/c/lab"));
        assert_eq!(paths.runs, Path::new("/h/.local/state/lab/runs"));
        let paths = find(&[("HOME", "/h"), ("XDG_CACHE_HOME", "relative")], Some("/co")).unwrap();
        assert_eq!(paths.cache, Path::new("/h/.cache/lab"));
        assert_eq!(paths.runs, Path::new("/co/target/lab/runs"));
    }

    #[test]
    fn without_a_home_the_error_names_the_variable() {
        let error = find(&[("HOME", "")], None).unwrap_err();
        assert!(error.to_string().contains("XDG_CACHE_HOME"), "{error}");
    }

    #[test]
    fn overrides_need_no_environment() {
        let overrides = Overrides { cache: Some("/a".into()), runs: Some("/b".into()) };
        let paths = Paths::find(|_| None, None, overrides).unwrap();
        assert_eq!(paths, Paths { cache: "/a".into(), runs: "/b".into() });
    }

    #[test]
    fn directories_are_for_the_user_alone() {
        let temp = private_temp().unwrap();
        let inner = temp.path().join("a/b");
        create_private(&inner).unwrap();
        create_private(&inner).unwrap();
        for dir in [temp.path(), &temp.path().join("a"), &inner] {
            let mode = dir.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o700, "{}", dir.display());
        }
        assert!(temp.path().as_os_str().len() <= MAX_TEMP_BYTES);
    }

    #[test]
    fn long_temporary_directories_are_avoided() {
        assert_eq!(temp_base(Path::new("/var/tmp")), Path::new("/var/tmp"));
        let long = format!("/{}", "x".repeat(MAX_TEMP_BYTES - 10));
        assert_eq!(temp_base(Path::new(&long)), Path::new("/tmp"));
        assert_eq!(temp_base(Path::new("relative")), Path::new("/tmp"));
    }
}
