//! Entries of `kernels/`, checked.

use std::path::PathBuf;

use crate::kernel::recipe::{Fragment, Source};

/// One kernel that can be tested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelEntry {
    /// File stem, e.g. `stock`, with its flavours: `v7.3+kasan`.
    pub name: String,
    /// One line for people.
    pub summary: String,
    /// Where it comes from.
    pub source: KernelSource,
    /// Its vmlinux with debug info, where that is not part of the source.
    pub vmlinux: Option<PathBuf>,
    /// Additions to the kernel command line.
    pub cmdline: Vec<String>,
    /// The queue policy that it claims, e.g. `submitting-cpu`; names the snapshots it is held to.
    pub queue_policy: Option<String>,
    /// What it offers beyond what every kernel does, e.g. `fewer-queues`.
    pub offers: Vec<String>,
}

/// Where a kernel comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelSource {
    /// The newest prebuilt Debian kernel of a flavour with the options named.
    Debian {
        /// Suites looked at, e.g. `trixie-backports`.
        suites: Vec<String>,
        /// Flavour, e.g. `cloud-amd64`.
        flavour: String,
        /// Options that must be `y`, without `CONFIG_`.
        requires: Vec<String>,
    },
    /// A bzImage, a vmlinux, or a source tree.
    Path(PathBuf),
    /// Built by the lab.
    Built(BuildSpec),
}

/// What a kernel is built from, its base's parts first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildSpec {
    /// The tree before any patch.
    pub source: Source,
    /// Patches, in order.
    pub series: Vec<SeriesSpec>,
    /// Fragments of the configuration; a later one wins.
    pub fragments: Vec<Fragment>,
}

/// A series, or the beginning of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesSpec {
    /// Where it is.
    pub place: SeriesPlace,
    /// So many patches of it; all of them if absent.
    pub patches: Option<usize>,
}

/// Where a series is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeriesPlace {
    /// A directory of patches, or an mbox.
    Path(PathBuf),
    /// A directory below `kernels/series` that travels inside `lab`.
    Shipped(String),
    /// Commits of a git repository, as in `A..B`.
    Git {
        /// The repository.
        dir: PathBuf,
        /// The range.
        range: String,
    },
    /// A message-id, fetched by b4.
    Lore(String),
}

/// A Kconfig fragment of `kernels/fragments`, which is a flavour, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flavour {
    /// The fragment.
    pub fragment: Fragment,
    /// Additions to the kernel command line, from its line `# kernel-args: ...`.
    pub cmdline: Vec<String>,
}

impl Flavour {
    /// A fragment called `name`.
    pub fn new(name: &str, text: &str) -> Flavour {
        let args = text.lines().find_map(|line| line.strip_prefix("# kernel-args:"));
        let cmdline = args.unwrap_or_default().split_whitespace().map(str::to_owned).collect();
        Flavour { fragment: Fragment { name: name.into(), text: text.into() }, cmdline }
    }
}
