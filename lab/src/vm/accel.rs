//! Which accelerator: KVM where a guest was seen running under it, else TCG.
//!
//! A /dev/kvm that opens proves nothing, and neither does a VM that it makes: only a guest
//! kernel that prints does. The result is remembered until the host boots again or QEMU
//! changes.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::console::MarkerError;
use super::end::End;
use super::error::VmError;
use super::limits::{Limits, Slowdown};
use super::machine::Machine;
use super::qemu::Qemu;
use super::spec::{Accel, Ram, VmSpec};

/// What every Linux kernel prints first.
const SIGN_OF_LIFE: &str = "Linux version";

/// How long the canary may be silent.
const CANARY_LIMIT: Duration = Duration::from_secs(5);

/// What the user asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccelRequest {
    /// KVM where it works, else TCG.
    Auto,
    /// KVM or an error.
    Kvm,
    /// TCG.
    Tcg,
}

/// What is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccelChoice {
    /// The accelerator.
    pub accel: Accel,
    /// Why not KVM, in one line, where it was wanted.
    pub reason: Option<String>,
    /// Whether the answer was remembered from an earlier run.
    pub remembered: bool,
}

/// Why there is no choice.
#[derive(Debug, thiserror::Error)]
pub enum AccelError {
    /// KVM was demanded and cannot run a guest.
    #[error("kvm cannot be used: {0}")]
    NoKvm(String),
    /// The caller gave up.
    #[error("cancelled")]
    Cancelled,
}

/// Chooses. `canary` is any VM that boots Linux with a serial console; its accelerator,
/// memory and directory are replaced. `cache` is the file that remembers.
///
/// Takes at most about [`CANARY_LIMIT`] plus the start and end of QEMU. Errors: [`AccelError`].
pub async fn choose(
    request: AccelRequest,
    canary: &VmSpec,
    qemu: &Qemu,
    cache: &Path,
    cancel: &CancellationToken,
) -> Result<AccelChoice, AccelError> {
    if request == AccelRequest::Tcg {
        return Ok(AccelChoice { accel: Accel::Tcg, reason: None, remembered: false });
    }
    let (obstacle, remembered) = obstacle(canary, qemu, cache, cancel).await?;
    match (obstacle, request) {
        (None, _) => Ok(AccelChoice { accel: Accel::Kvm, reason: None, remembered }),
        (Some(reason), AccelRequest::Kvm) => Err(AccelError::NoKvm(reason)),
        (reason, _) => Ok(AccelChoice { accel: Accel::Tcg, reason, remembered }),
    }
}

/// What keeps KVM from running a guest, if anything, and whether that was remembered.
async fn obstacle(
    canary: &VmSpec,
    qemu: &Qemu,
    cache: &Path,
    cancel: &CancellationToken,
) -> Result<(Option<String>, bool), AccelError> {
    let device = std::fs::File::options().read(true).write(true).open("/dev/kvm");
    if let Err(e) = device {
        return Ok((Some(format!("/dev/kvm cannot be opened: {e}")), false));
    }
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let key = Memory { boot_id: boot_id.trim().into(), qemu: qemu.version.clone(), obstacle: None };
    if let Some(known) = Memory::load(cache).filter(|known| known.same_host(&key)) {
        return Ok((known.obstacle, true));
    }
    let found = run_canary(canary, cancel).await?;
    // Silence may be the load of this minute; what QEMU itself said is true until the next boot.
    if found.as_ref().is_none_or(|obstacle| obstacle.certain) {
        Memory { obstacle: found.as_ref().map(|o| o.reason.clone()), ..key }.store(cache);
    }
    Ok((found.map(|obstacle| obstacle.reason), false))
}

/// What keeps KVM from running a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// One line.
    pub reason: String,
    /// Whether QEMU said so; a guest that was merely silent may have been starved.
    pub certain: bool,
}

/// What an earlier run found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Memory {
    boot_id: String,
    qemu: String,
    /// What keeps KVM from running a guest; absent where it runs one.
    obstacle: Option<String>,
}

impl Memory {
    fn same_host(&self, other: &Memory) -> bool {
        !self.boot_id.is_empty() && self.boot_id == other.boot_id && self.qemu == other.qemu
    }

    fn load(path: &Path) -> Option<Memory> {
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }

    /// A result that cannot be kept is found again the next time.
    fn store(&self, path: &Path) {
        let Some(dir) = path.parent() else { return };
        let write = || {
            std::fs::create_dir_all(dir)?;
            let mut file = tempfile::NamedTempFile::new_in(dir)?;
            serde_json::to_writer(&mut file, self)?;
            file.persist(path)?;
            Ok::<_, std::io::Error>(())
        };
        let _ = write();
    }
}

/// Runs a guest under KVM and gives what kept it from running, if anything did.
///
/// `canary` as in [`choose`], and the same bound. Errors: [`AccelError::Cancelled`].
pub async fn run_canary(
    canary: &VmSpec,
    cancel: &CancellationToken,
) -> Result<Option<Obstacle>, AccelError> {
    let obstacle = |certain, reason| Ok(Some(Obstacle { reason, certain }));
    let dir = match tempfile::Builder::new().prefix("lab-kvm-").tempdir() {
        Ok(dir) => dir,
        Err(e) => return obstacle(false, format!("no directory for the canary: {e}")),
    };
    let mut spec = canary.clone();
    spec.name = "kvm-canary".into();
    spec.accel = Accel::Kvm;
    spec.ram = Ram::Anonymous;
    spec.incoming = false;
    spec.dir = dir.path().into();
    if !spec.cmdline.contains("earlyprintk") {
        spec.cmdline.push_str(" earlyprintk=ttyS0");
    }
    match watch_canary(&spec, cancel).await {
        Ok(()) => Ok(None),
        Err(VmError::Cancelled) => Err(AccelError::Cancelled),
        Err(VmError::InternalError { .. }) => {
            obstacle(true, "a guest under kvm stopped with internal-error".into())
        }
        Err(e @ VmError::QemuExited { .. }) => {
            obstacle(true, format!("a guest under kvm did not run: {e}"))
        }
        Err(e) => obstacle(false, format!("a guest under kvm did not run: {e}")),
    }
}

async fn watch_canary(spec: &VmSpec, cancel: &CancellationToken) -> Result<(), VmError> {
    let mut limits = Limits::new(Slowdown::plain(Accel::Kvm));
    limits.connect = CANARY_LIMIT;
    limits.greeting = CANARY_LIMIT;
    limits.end = Duration::from_secs(1);
    let machine = Machine::start(spec, &spec.dir, &limits, cancel).await?;
    let life = machine.console().wait_for(SIGN_OF_LIFE, CANARY_LIMIT);
    let seen = match machine.guard(cancel, life).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(MarkerError::Timeout(_))) => Err(silent()),
        // The console goes right before QEMU does.
        Ok(Err(MarkerError::End)) => {
            let gone = tokio::time::timeout(CANARY_LIMIT, machine.gone()).await;
            Err(gone.unwrap_or_else(|_| silent()))
        }
        Err(e) => Err(e),
    };
    machine.end(End::Quit).await;
    seen
}

fn silent() -> VmError {
    let reason = format!("no sign of a kernel in {} ms", CANARY_LIMIT.as_millis());
    VmError::State { what: "canary", reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_holds_for_one_boot_and_one_qemu() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/kvm.json");
        let memory = Memory { boot_id: "b".into(), qemu: "10".into(), obstacle: Some("no".into()) };
        assert_eq!(Memory::load(&path), None);
        memory.store(&path);
        assert_eq!(Memory::load(&path), Some(memory.clone()));
        assert!(memory.same_host(&Memory { obstacle: None, ..memory.clone() }));
        assert!(!memory.same_host(&Memory { boot_id: "c".into(), ..memory.clone() }));
        assert!(!memory.same_host(&Memory { qemu: "11".into(), ..memory.clone() }));
        std::fs::write(&path, "{torn").unwrap();
        assert_eq!(Memory::load(&path), None);
    }
}
