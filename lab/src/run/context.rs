//! What every attempt of a run shares.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio_util::sync::CancellationToken;

use super::log::EventLog;
use super::options::Isolation;
use super::record::RunDir;
use crate::host::scratch::Scratch;
use crate::host::slots::Slots;
use crate::vm::Limits;
use crate::vm::qemu::Qemu;
use crate::vm::spec::Accel;

/// One run on one host.
pub(super) struct Context {
    /// The record.
    pub(super) log: Arc<EventLog>,
    /// Where it is.
    pub(super) run_dir: RunDir,
    /// Sockets.
    pub(super) scratch: Scratch,
    /// The QEMU in use.
    pub(super) qemu: Qemu,
    /// The accelerator in use.
    pub(super) accel: Accel,
    /// Limits of VMs.
    pub(super) limits: Limits,
    /// Directory of the snapshots.
    pub(super) snapshots: PathBuf,
    /// Under CI: nothing below `snapshots` is written, NEW and FLAKY fail.
    pub(super) strict: bool,
    /// Clones or cold boots.
    pub(super) isolation: Isolation,
    /// Slots of this machine.
    pub(super) slots: Slots,
    /// Number of the next socket directory.
    pub(super) next_dir: AtomicU32,
    /// Fires when the user interrupts.
    pub(super) cancel: CancellationToken,
}

impl Context {
    /// A directory for the sockets of one VM, not made yet. Its name is short: the path of a
    /// socket is bounded by 107 bytes.
    pub(super) fn socket_dir(&self) -> PathBuf {
        let number = self.next_dir.fetch_add(1, Ordering::Relaxed);
        self.scratch.path().join(number.to_string())
    }
}
