//! Where a case gets its VM from: a clone of a template, or a cold boot.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::boot::{Broken, boot};
use super::context::{Context, slowdown};
use super::events::Event;
use super::options::Isolation;
use super::session::{chain, millis};
use crate::config::scenario::ImageKind;
use crate::host::slots::Slot;
use crate::kernel::Kernel;
use crate::plan::Case;
use crate::vm::machine::Machine;
use crate::vm::spec::{Accel, Ram, VmSpec};
use crate::vm::template::{Draft, Template};
use crate::vm::{Limits, Slowdown, VmError};

/// On every kernel command line: the console that is read, an end instead of a reboot after a
/// panic, answers to the lab's questions from the first second on (distributions allow only some
/// of them, and the agent may never run), and the subject switched on.
const BASE_CMDLINE: &str =
    "console=ttyS0 panic=-1 sysrq_always_enabled unknown_nmi_panic fuse.enable_uring=1";

/// What the VMs of adjacent cases have in common: the key of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) kernel: String,
    pub(super) topology: String,
    pub(super) image: PathBuf,
    pub(super) cmdline: String,
}

/// Where VMs come from.
pub(super) enum Source {
    /// A saved VM.
    Template(Box<Template>),
    /// Each case boots.
    Cold,
    /// The kernel did not come up; every case of the key ends like this.
    Broken(Box<Broken>),
}

/// The kernel command line of a case.
pub(super) fn cmdline(slowdown: Slowdown, kernel: &[String], case: &Case) -> String {
    let mut text = BASE_CMDLINE.to_string();
    // The kernel takes the last word: its entry and the case win over the lab.
    let own = slowdown.kernel_args();
    for part in own.iter().chain(kernel).chain(&case.scenario.kernel_args) {
        let _ = write!(text, " {part}");
    }
    text
}

/// The kernel command line of a case on a kernel that is at hand.
pub(super) fn cmdline_of(accel: Accel, kernel: &Kernel, case: &Case) -> String {
    cmdline(slowdown(accel, kernel), &kernel.cmdline, case)
}

/// The VM of a case, booting from cold, with its sockets in `dir`.
pub(super) fn spec(
    context: &Context,
    kernel: &Kernel,
    image: &Path,
    case: &Case,
    dir: PathBuf,
) -> VmSpec {
    VmSpec {
        qemu: context.qemu.path.clone(),
        name: case.id.clone(),
        accel: context.accel,
        topology: (*case.topology).clone(),
        kernel: kernel.image.clone(),
        initrd: image.to_owned(),
        cmdline: cmdline_of(context.accel, kernel, case),
        ram: Ram::Anonymous,
        incoming: false,
        dir,
        vng: context.vng.clone().filter(|_| case.scenario.image == ImageKind::Host),
    }
}

/// Prepares the VMs of a key: boots and saves a template where clones are asked for and
/// possible. Says in the record what came of it.
pub(super) async fn prepare(
    context: &Arc<Context>,
    spec: &VmSpec,
    key: &Key,
    limits: &Limits,
    record: &Path,
) -> Source {
    // The host's root changes under a saved guest.
    if context.isolation == Isolation::Boot || spec.vng.is_some() {
        return Source::Cold;
    }
    let slot = context.slot(&spec.topology).await;
    let Ok(_slot): Result<Slot, _> = slot else {
        return Source::Cold; // each case waits for a slot itself and says what is wrong
    };
    let begin = Instant::now();
    let draft = match Draft::new(spec) {
        Ok(draft) => draft,
        Err(e) => return Source::Broken(Box::new(Broken::new(e, record))),
    };
    let machine = match boot(context, draft.spec(), record, limits).await {
        Ok(machine) => machine,
        Err(broken) => return Source::Broken(Box::new(broken)),
    };
    match draft.save(machine, limits, &context.cancel).await {
        Ok(template) => {
            tell(context, key, "clone", None, millis(template.boot_time()));
            Source::Template(Box::new(template))
        }
        // The guest came up, so its cases can boot cold.
        Err(e @ (VmError::State { .. } | VmError::Qmp(_))) => {
            tell(context, key, "boot", Some(chain(&e)), millis(begin.elapsed()));
            Source::Cold
        }
        Err(e) => Source::Broken(Box::new(Broken::new(e, record))),
    }
}

fn tell(context: &Context, key: &Key, isolation: &str, reason: Option<String>, boot_ms: u64) {
    let event = Event::VmReady {
        kernel: key.kernel.clone(),
        topology: key.topology.clone(),
        isolation: isolation.into(),
        reason,
        accel: context.accel.name().into(),
        qemu: context.qemu.version.clone(),
        boot_ms,
    };
    let _ = context.log.emit(event);
}

impl Source {
    /// `clone` or `boot`, as in records.
    pub(super) fn isolation(&self) -> &'static str {
        match self {
            Source::Template(_) => "clone",
            Source::Cold | Source::Broken(_) => "boot",
        }
    }

    /// A VM whose agent answered.
    pub(super) async fn machine(
        &self,
        context: &Context,
        spec: &VmSpec,
        limits: &Limits,
        record: &Path,
    ) -> Result<Machine, Broken> {
        let Source::Template(template) = self else {
            return boot(context, spec, record, limits).await;
        };
        let clone = (**template).clone_into(&spec.name, &spec.dir, record, limits, &context.cancel);
        clone.await.map_err(|e| Broken::clone(e, record))
    }
}
