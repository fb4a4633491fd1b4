//! What can go wrong between a recipe and a kernel, and whose doing it is.

use std::io;
use std::path::PathBuf;

use crate::host::apt::root::AptError;
use crate::host::lock::LockError;
use crate::host::paths::PathsError;
use crate::host::process::ProcessError;
use crate::kernel::KernelError;

/// How far a build came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// A patch does not apply, or must not.
    Apply,
    /// The configuration is not what was asked for.
    Configure,
    /// It does not compile or link.
    Compile,
    /// Everything that says nothing about the kernel.
    Host,
}

/// Why there is no kernel.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A patch does not fit.
    #[error("patch {patch} does not apply\n{rejects}")]
    Apply {
        /// Name of the patch.
        patch: String,
        /// What git said, and the hunks that were refused.
        rejects: String,
    },
    /// A patch reaches out of the tree.
    #[error("patch {patch} touches `{path}`, which is not in the source tree")]
    Outside {
        /// Name of the patch.
        patch: String,
        /// The path in it.
        path: String,
    },
    /// A patch without any change.
    #[error("{patch} is no patch: it changes no file")]
    NoPatch {
        /// Its name.
        patch: String,
    },
    /// Kconfig did not take a line.
    #[error("fragment {fragment}: CONFIG_{option} is wanted as {wanted}, but became {got}: {why}")]
    Option {
        /// The fragment.
        fragment: String,
        /// Name without `CONFIG_`.
        option: String,
        /// Wanted value; `n` for not set.
        wanted: String,
        /// The value it has.
        got: String,
        /// Unknown to the tree, or a dependency.
        why: &'static str,
    },
    /// A line of a fragment that is none.
    #[error("fragment {fragment}, line {line}: not a line of a kernel configuration: {text}")]
    FragmentLine {
        /// The fragment.
        fragment: String,
        /// Counted from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// make failed on the configuration.
    #[error("the configuration cannot be made: {0}")]
    Configure(String),
    /// The compiler or the linker refused.
    #[error("{name} does not build:\n{errors}\nlog: {}", log.display())]
    Compile {
        /// Kernel.
        name: String,
        /// The first errors, a line each, paths relative to the tree.
        errors: String,
        /// The whole output.
        log: PathBuf,
    },
    /// The file system is full.
    #[error("no space left below {}: free some, or move the cache with LAB_CACHE", .0.display())]
    NoSpace(PathBuf),
    /// The build took too long.
    #[error("the build of {name} was not done after {minutes} min")]
    Limit {
        /// Kernel.
        name: String,
        /// The limit, minutes.
        minutes: u64,
    },
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
    /// The source is not what was said, or cannot be had.
    #[error("kernel source {what}: {why}")]
    Source {
        /// Which.
        what: String,
        /// Why, with the fix where there is one.
        why: String,
    },
    /// Only what is built already was allowed.
    #[error("kernel `{0}` is not built yet: lab kernel build {0}")]
    NotBuilt(String),
    /// Programs that a build needs.
    #[error("cannot build kernels: {} not found: {fix}", .missing.join(", "))]
    Tools {
        /// Programs and headers.
        missing: Vec<String>,
        /// The command.
        fix: String,
    },
    /// apt failed.
    #[error("cannot fetch the kernel source: {0}")]
    Apt(#[from] AptError),
    /// Debian's archive cannot be asked.
    #[error(transparent)]
    Kernel(#[from] Box<KernelError>),
    /// A host program failed to run.
    #[error(transparent)]
    Process(ProcessError),
    /// Another process holds a tree or the store.
    #[error(transparent)]
    Lock(LockError),
    /// A directory cannot be made.
    #[error(transparent)]
    Paths(#[from] PathsError),
    /// A file of the cache or of the source cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl BuildError {
    /// How far it came; only a stage before [`Stage::Host`] speaks about the kernel.
    pub fn stage(&self) -> Stage {
        match self {
            BuildError::Apply { .. } | BuildError::Outside { .. } | BuildError::NoPatch { .. } => {
                Stage::Apply
            }
            BuildError::Option { .. }
            | BuildError::Configure(_)
            | BuildError::FragmentLine { .. } => Stage::Configure,
            BuildError::Compile { .. } => Stage::Compile,
            _ => Stage::Host,
        }
    }

    /// Whether what the user named is at fault (exit code 2), not the host (3).
    pub fn is_usage(&self) -> bool {
        self.stage() != Stage::Host || matches!(self, BuildError::Source { .. })
    }

    /// An error of reading or writing at `path`; a full disk is told as such.
    pub(super) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> BuildError {
        let path = path.into();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => BuildError::NoSpace(path),
            _ => BuildError::Io { path, source },
        }
    }
}

impl From<ProcessError> for BuildError {
    fn from(error: ProcessError) -> BuildError {
        match error {
            ProcessError::Cancelled { .. } => BuildError::Interrupted,
            other => BuildError::Process(other),
        }
    }
}

impl From<LockError> for BuildError {
    fn from(error: LockError) -> BuildError {
        match error {
            LockError::Cancelled { .. } => BuildError::Interrupted,
            other => BuildError::Lock(other),
        }
    }
}
