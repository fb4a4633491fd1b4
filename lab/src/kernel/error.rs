//! What can go wrong with a kernel before it boots, and whose doing it is.

use std::io;
use std::path::PathBuf;

use super::build::BuildError;
use super::bzimage::BzImageError;
use super::config::ConfigError;
use super::series::SeriesError;
use super::vmlinux::VmlinuxError;
use crate::host::apt::root::AptError;
use crate::host::lock::LockError;
use crate::host::paths::PathsError;

/// Why there is no kernel.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// Neither an entry nor a path.
    #[error("no kernel `{name}`{}", nearest_text(nearest))]
    Unknown {
        /// As given.
        name: String,
        /// Entries with a name like it, best first.
        nearest: Vec<String>,
    },
    /// A path that cannot be read.
    #[error("kernel {}: {source}", path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file that is no kernel.
    #[error("{} is no kernel: neither bzImage nor vmlinux", path.display())]
    NotAKernel {
        /// The path.
        path: PathBuf,
    },
    /// A bzImage that cannot be used.
    #[error("bzImage {}: {source}", path.display())]
    BzImage {
        /// The path.
        path: PathBuf,
        /// Why.
        source: BzImageError,
    },
    /// An ELF file that cannot be used.
    #[error("{}: {source}", path.display())]
    Vmlinux {
        /// The path.
        path: PathBuf,
        /// Why.
        source: VmlinuxError,
    },
    /// A source tree that nobody configured.
    #[error("kernel source tree {} has no .config: make one there, such as by make defconfig", path.display())]
    NotConfigured {
        /// The tree.
        path: PathBuf,
    },
    /// It cannot be built.
    #[error(transparent)]
    Build(#[from] Box<BuildError>),
    /// The patches that it is built from.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// A source tree without an image.
    #[error("kernel source tree {} is not built: there is no arch/x86/boot/bzImage", path.display())]
    NotBuilt {
        /// The tree.
        path: PathBuf,
    },
    /// A directory of something else.
    #[error("{} is a directory, but no kernel source tree", path.display())]
    NotATree {
        /// The directory.
        path: PathBuf,
    },
    /// The configuration of a kernel cannot be used.
    #[error("{}: {source}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ConfigError,
    },
    /// A flavour that cannot be one of Debian's.
    #[error("`{flavour}` is no kernel flavour")]
    BadFlavour {
        /// As given.
        flavour: String,
    },
    /// A suite that cannot be one of Debian's.
    #[error("`{suite}` is no suite name")]
    BadSuite {
        /// As given.
        suite: String,
    },
    /// The machine uses no Debian mirror.
    #[error("no debian mirror in the apt sources of this machine: name a kernel by its path")]
    NoMirror,
    /// Nothing to check signatures with.
    #[error("no keyring to check debian's signatures with: install debian-archive-keyring")]
    NoKeyring,
    /// No kernel of the suites will do.
    #[error("no kernel of flavour {flavour} in {suites} will do: {reasons}")]
    NoneSuitable {
        /// Flavour.
        flavour: String,
        /// Suites, separated by commas.
        suites: String,
        /// One reason a kernel that was looked at.
        reasons: String,
    },
    /// Only the cache was allowed.
    #[error("kernel `{name}` is not fetched yet")]
    NotFetched {
        /// Entry.
        name: String,
    },
    /// apt failed and nothing is cached.
    #[error("cannot fetch a kernel: {0}")]
    Apt(#[from] AptError),
    /// Another process holds the cache.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A directory of the cache cannot be made.
    #[error(transparent)]
    Paths(#[from] PathsError),
    /// The cache cannot be written or read.
    #[error("kernel cache {}: {source}", path.display())]
    Cache {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl KernelError {
    /// Whether what the user named is at fault (exit code 2), not the host or the network (3).
    pub fn is_usage(&self) -> bool {
        use KernelError as K;
        match self {
            K::Build(error) => error.is_usage(),
            K::Series(SeriesError::Wrong { .. } | SeriesError::Read { .. })
            | K::NotConfigured { .. }
            | K::Unknown { .. }
            | K::Read { .. }
            | K::NotAKernel { .. }
            | K::BzImage { .. }
            | K::Vmlinux { .. }
            | K::NotBuilt { .. }
            | K::NotATree { .. }
            | K::Config { .. }
            | K::BadFlavour { .. }
            | K::BadSuite { .. } => true,
            K::NoMirror
            | K::NoKeyring
            | K::NoneSuitable { .. }
            | K::NotFetched { .. }
            | K::Apt(_)
            | K::Lock(_)
            | K::Paths(_)
            | K::Cache { .. }
            | K::Series(_) => false,
        }
    }
}

fn nearest_text(nearest: &[String]) -> String {
    match nearest {
        [] => ": no entry of kernels/ and no such file".to_owned(),
        names => format!(", did you mean {}?", names.join(" or ")),
    }
}
