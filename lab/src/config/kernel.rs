//! Entries of `kernels/`, checked.

/// One kernel that can be tested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelEntry {
    /// File stem, e.g. `stock`.
    pub name: String,
    /// One line for people.
    pub summary: String,
    /// Where it comes from.
    pub source: KernelSource,
    /// Its vmlinux with debug info, where that is not part of the source.
    pub vmlinux: Option<std::path::PathBuf>,
    /// Additions to the kernel command line.
    pub cmdline: Vec<String>,
    /// The queue policy that it claims, e.g. `submitting-cpu`; names the snapshots it is held to.
    pub queue_policy: Option<String>,
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
    /// A bzImage, a vmlinux, or a built source tree.
    Path(std::path::PathBuf),
}
