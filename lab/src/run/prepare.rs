//! What must be at hand before the first case: QEMU, kernels, images, the accelerator.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::launch::{Host, RunError};
use super::options::AccelChoice;
use super::source::cmdline_of;
use crate::config::kernel::KernelEntry;
use crate::config::scenario::ImageKind;
use crate::config::topology::Topology;
use crate::image::{self, ImageError};
use crate::kernel::{self, Fetch, Kernel, Resolver};
use crate::plan::Plan;
use crate::vm::accel::{self, AccelRequest};
use crate::vm::qemu::Qemu;
use crate::vm::spec::{Accel, Ram, VmSpec};

/// Everything that the cases of a plan need.
pub(super) struct Prepared {
    pub(super) qemu: Qemu,
    pub(super) accel: Accel,
    /// Why it is not KVM, where KVM was wanted.
    pub(super) accel_note: Option<String>,
    pub(super) kernels: BTreeMap<String, Arc<Kernel>>,
    pub(super) images: BTreeMap<ImageKind, PathBuf>,
    /// virtme-ng, for cases on the host's root; or why there is none.
    pub(super) vng: Option<Result<PathBuf, String>>,
}

/// Finds, fetches and builds. Nothing is left half done when it fails or is interrupted.
pub(super) async fn prepare(
    host: &Host<'_>,
    plan: &Plan,
    accel: AccelChoice,
    cancel: &CancellationToken,
) -> Result<Prepared, RunError> {
    let qemu = Qemu::find(host.qemu.as_deref(), cancel).await?;
    let kernels = kernels(host, plan, Fetch::Auto, cancel).await?;
    another_base(plan, &kernels)?;
    let mut kinds: BTreeSet<ImageKind> = plan.cases.iter().map(|c| c.scenario.image).collect();
    kinds.insert(ImageKind::Agent); // the canary's
    let mut images = BTreeMap::new();
    let guest = guest(host)?;
    for kind in kinds {
        let cache = host.paths.images();
        let image = image::ensure(kind, &cache, guest.clone(), cancel).await?;
        images.insert(kind, image.path);
    }
    let (accel, accel_note) = choose(host, plan, accel, &qemu, &kernels, &images, cancel).await?;
    let vng = match images.contains_key(&ImageKind::Host) {
        true => Some(vng(host, cancel).await),
        false => None,
    };
    Ok(Prepared { qemu, accel, accel_note, kernels, images, vng })
}

/// virtme-ng: the one that was named, or the lab's own.
pub(super) async fn vng(host: &Host<'_>, cancel: &CancellationToken) -> Result<PathBuf, String> {
    match &host.vng {
        Some(path) => Ok(path.clone()),
        None => crate::host::vng::ensure(&host.paths.cache, host.tell, cancel).await,
    }
}

/// The guest binary. That it is another than the lab's own is told: nothing such a run says
/// counts for a kernel.
fn guest(host: &Host<'_>) -> Result<Cow<'static, [u8]>, RunError> {
    let other = host.guest.as_deref();
    if let Some(path) = other {
        (host.tell)(&format!("guest binary {}, not the lab's own", path.display()));
    }
    image::guest::chosen(other).map_err(|source| {
        ImageError::Io { path: other.unwrap_or(Path::new("")).to_owned(), source }.into()
    })
}

/// A kernel held against itself under another name would be excused everything.
fn another_base(plan: &Plan, kernels: &BTreeMap<String, Arc<Kernel>>) -> Result<(), RunError> {
    let Some((name, base)) = plan.base.as_ref().and_then(|base| kernels.get_key_value(base)) else {
        return Ok(());
    };
    let same = |kernel: &&Arc<Kernel>| {
        kernel.name != *name && kernel.sha256 == base.sha256 && kernel.cmdline == base.cmdline
    };
    kernels.values().find(same).map_or(Ok(()), |kernel| {
        Err(RunError::SameKernel { base: name.clone(), kernel: kernel.name.clone() })
    })
}

/// The kernels of a plan.
pub(super) async fn kernels(
    host: &Host<'_>,
    plan: &Plan,
    mode: Fetch,
    cancel: &CancellationToken,
) -> Result<BTreeMap<String, Arc<Kernel>>, RunError> {
    let entries: Vec<KernelEntry> = plan.kernels.values().map(|k| (**k).clone()).collect();
    let resolver = Resolver { entries: &entries, paths: host.paths, mode, tell: host.tell };
    let mut kernels = BTreeMap::new();
    for name in plan.kernels.keys() {
        let kernel = kernel::resolve(name, &resolver, cancel).await?;
        kernels.insert(name.clone(), Arc::new(kernel));
    }
    Ok(kernels)
}

async fn choose(
    host: &Host<'_>,
    plan: &Plan,
    wanted: AccelChoice,
    qemu: &Qemu,
    kernels: &BTreeMap<String, Arc<Kernel>>,
    images: &BTreeMap<ImageKind, PathBuf>,
    cancel: &CancellationToken,
) -> Result<(Accel, Option<String>), RunError> {
    let request = match wanted {
        AccelChoice::Auto => AccelRequest::Auto,
        AccelChoice::Kvm => AccelRequest::Kvm,
        AccelChoice::Tcg => AccelRequest::Tcg,
    };
    let (Some(case), Some(kernel)) = (plan.cases.first(), kernels.values().next()) else {
        return Ok((Accel::Tcg, None)); // no case will run
    };
    let temp = crate::host::paths::private_temp()?;
    let canary = VmSpec {
        qemu: qemu.path.clone(),
        name: "canary".into(),
        accel: Accel::Kvm,
        topology: (*case.topology).clone(),
        kernel: kernel.image.clone(),
        initrd: images[&ImageKind::Agent].clone(),
        cmdline: cmdline_of(Accel::Kvm, kernel, case),
        ram: Ram::Anonymous,
        incoming: false,
        dir: temp.path().to_owned(),
        vng: None,
    };
    let memory = host.paths.cache.join("accel.json");
    let choice = accel::choose(request, &canary, qemu, &memory, cancel).await?;
    let note = choice.reason.map(|reason| {
        let source = if choice.remembered { " (found earlier since this boot)" } else { "" };
        // What QEMU itself said is in accel.json of the cache.
        let short = reason.split(": qemu-system").next().unwrap_or(&reason);
        format!("using TCG: {short}{source}")
    });
    note.iter().for_each(|line| (host.tell)(line));
    Ok((choice.accel, note))
}

/// What the boot benchmark needs, prepared as a run would.
pub struct BenchInput {
    /// Accelerator in use.
    pub accel: Accel,
    /// The layout.
    pub topology: Topology,
    /// Kernel image.
    pub kernel: PathBuf,
    /// Initramfs with the agent alone.
    pub image: PathBuf,
    /// Kernel command line.
    pub cmdline: String,
}

/// Prepares one kernel and topology of the project for the boot benchmark.
///
/// # Errors
///
/// As [`super::test`].
pub async fn for_bench(
    host: &Host<'_>,
    plan: &Plan,
    cancel: &CancellationToken,
) -> Result<BenchInput, RunError> {
    let prepared = prepare(host, plan, AccelChoice::Auto, cancel).await?;
    let case = plan.cases.first().ok_or(RunError::Nothing)?;
    let kernel = &prepared.kernels[&case.kernel];
    Ok(BenchInput {
        accel: prepared.accel,
        topology: (*case.topology).clone(),
        kernel: kernel.image.clone(),
        image: prepared.images[&ImageKind::Agent].clone(),
        cmdline: cmdline_of(prepared.accel, kernel, case),
    })
}
