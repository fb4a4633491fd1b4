//! What a kernel is built from: data only, no file and no program is touched here.

use std::path::PathBuf;
use std::sync::Arc;

/// Everything that decides the image: two equal recipes give one stored kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// Entry with its flavour, e.g. `v4-patched+kasan`; for people, not part of the key.
    pub name: String,
    /// The tree before any patch.
    pub source: Source,
    /// Applied in order.
    pub patches: Vec<Patch>,
    /// Merged in order onto `allnoconfig`; a later line wins over an earlier one.
    pub fragments: Vec<Fragment>,
}

/// Where a source tree comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A Debian package that holds the source as a tarball, e.g. `linux-source-7.3`.
    Debian {
        /// Package.
        package: String,
        /// Suites looked at, e.g. `trixie-backports`.
        suites: Vec<String>,
    },
    /// A revision of a git repository.
    Git {
        /// Directory of the repository.
        dir: PathBuf,
        /// What git takes as a commit.
        revision: String,
    },
    /// A directory, as it stands; it is copied and never written to.
    Directory(PathBuf),
    /// A tarball, checked before it is unpacked.
    Tarball {
        /// The file.
        path: PathBuf,
        /// SHA-256 of the file, hex.
        sha256: String,
    },
}

/// One patch of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// File name, e.g. `0006-fuse-background-on-the-next-CPU.patch`.
    pub name: String,
    /// Its text: a mail or a plain diff, not always UTF-8.
    pub text: Arc<[u8]>,
}

/// One Kconfig fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragment {
    /// File stem below `kernels/fragments`, e.g. `lean`.
    pub name: String,
    /// Lines `CONFIG_X=y`, `# CONFIG_X is not set`, comments.
    pub text: Arc<str>,
}
