//! What a VM is to be, as data.

use std::path::PathBuf;

use crate::config::topology::Topology;

/// How guest code is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Accel {
    /// In hardware.
    Kvm,
    /// Translated.
    Tcg,
}

impl Accel {
    /// QEMU's name, also that in records.
    pub fn name(self) -> &'static str {
        match self {
            Accel::Kvm => "kvm",
            Accel::Tcg => "tcg",
        }
    }

    /// Factor on every limit.
    pub fn slowdown(self) -> u32 {
        match self {
            Accel::Kvm => 1,
            Accel::Tcg => 4,
        }
    }
}

/// Where guest memory lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ram {
    /// QEMU's own anonymous memory.
    Anonymous,
    /// One file a node with memory, in node order.
    Files {
        /// Paths, `/proc/<pid of lab>/fd/<n>` of memfds that lab holds.
        paths: Vec<PathBuf>,
        /// Shared for a template, private for a clone.
        shared: bool,
    },
}

/// Everything that decides QEMU's command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VmSpec {
    /// QEMU program.
    pub qemu: PathBuf,
    /// Shown in process lists, e.g. the case id.
    pub name: String,
    /// Accelerator.
    pub accel: Accel,
    /// Layout.
    pub topology: Topology,
    /// bzImage or PVH vmlinux.
    pub kernel: PathBuf,
    /// One initramfs file, layers concatenated.
    pub initrd: PathBuf,
    /// Whole kernel command line.
    pub cmdline: String,
    /// Memory.
    pub ram: Ram,
    /// Start with `-incoming defer`.
    pub incoming: bool,
    /// Directory of the sockets `qmp.sock`, `console.sock`, `control.sock`, `bulk.sock`.
    pub dir: PathBuf,
    /// virtme-ng, where the guest has the host's root instead of an initramfs; `initrd` is the
    /// guest binary then.
    pub vng: Option<PathBuf>,
}
