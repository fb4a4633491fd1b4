//! What every attempt of a run shares.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::bases::Bases;
use super::events::Event;
use super::log::EventLog;
use super::options::Isolation;
use super::record::RunDir;
use crate::config::topology::Topology;
use crate::host::scratch::Scratch;
use crate::host::slots::{Slot, SlotError, Slots};
use crate::kernel::Kernel;
use crate::vm::qemu::Qemu;
use crate::vm::spec::Accel;
use crate::vm::{Limits, Slowdown};

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
    /// virtme-ng, where cases need it.
    pub(super) vng: Option<PathBuf>,
    /// The accelerator in use.
    pub(super) accel: Accel,
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
    /// Whether a hang leaves a vmcore.
    pub(super) vmcore: bool,
    /// What the base came to.
    pub(super) bases: Bases,
    /// Fires when the user interrupts.
    pub(super) cancel: CancellationToken,
}

/// Longest wait for a VM slot: other runs may be long.
const SLOT_LIMIT: Duration = Duration::from_secs(3600);

/// Memory of a VM beside that of its guest, bytes: QEMU and its translated code.
const VM_OVERHEAD: u64 = 256 << 20;

impl Context {
    /// Records an event that tells of the base, too.
    pub(super) fn tell(&self, event: Event) -> io::Result<()> {
        self.bases.on(&event);
        self.log.emit(event)
    }

    /// Waits until a VM of this layout may run. Says in the record when that takes long.
    pub(super) async fn slot(&self, topology: &Topology) -> Result<Slot, SlotError> {
        let bytes = topology.memory_bytes().saturating_add(VM_OVERHEAD);
        // A note that cannot be written decides nothing; the next event of the case will tell.
        let tell = |text| drop(self.log.emit(Event::Note { text }));
        self.slots.acquire(bytes, SLOT_LIMIT, &tell, &self.cancel).await
    }

    /// Limits of the VMs of a kernel.
    pub(super) fn limits(&self, kernel: &Kernel) -> Limits {
        Limits::new(slowdown(self.accel, kernel))
    }

    /// A directory for the sockets of one VM, not made yet. Its name is short: the path of a
    /// socket is bounded by 107 bytes.
    pub(super) fn socket_dir(&self) -> PathBuf {
        let number = self.next_dir.fetch_add(1, Ordering::Relaxed);
        self.scratch.path().join(number.to_string())
    }
}

/// How slow the guests of a kernel are under an accelerator.
pub(super) fn slowdown(accel: Accel, kernel: &Kernel) -> Slowdown {
    let config = kernel.config.as_ref();
    let set = |name: &str| config.is_some_and(|c| c.get(name).is_some_and(|value| value == "y"));
    Slowdown::of(accel, set)
}
