//! Guest memory in memfds that the lab holds: nothing is left when the lab is killed.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, SealFlags};

use super::error::VmError;
use crate::config::topology::Topology;

/// A memfd and the path under which QEMU opens it.
#[derive(Debug)]
pub(super) struct MemFile(OwnedFd);

impl MemFile {
    /// An empty file of `bytes` bytes.
    pub(super) fn new(name: &str, bytes: u64) -> Result<MemFile, VmError> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let make = || {
            let file = rustix::fs::memfd_create(name, flags)?;
            rustix::fs::ftruncate(&file, bytes)?;
            Ok(file)
        };
        let file = make().map_err(|e: rustix::io::Errno| e.into());
        Ok(MemFile(file.map_err(VmError::io("memory file"))?))
    }

    /// Valid for other processes of the same user while the lab runs.
    pub(super) fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()).into()
    }

    /// From now on nobody can change it; fails while somebody could through a mapping.
    pub(super) fn seal(&self) -> Result<(), VmError> {
        let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        let sealed = rustix::fs::fcntl_add_seals(&self.0, seals);
        sealed.map_err(|e| VmError::io("seal of a memory file")(e.into()))
    }
}

/// One file for each node with memory, in node order.
pub(super) fn files_of(topology: &Topology) -> Result<Vec<MemFile>, VmError> {
    let sizes = topology.nodes.iter().map(|node| node.memory_bytes).filter(|bytes| *bytes > 0);
    sizes.map(|bytes| MemFile::new("lab-ram", bytes)).collect()
}
