//! Checks of programs, devices and directories of the host.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytesize::ByteSize;
use tokio_util::sync::CancellationToken;

use super::check::{self, Check, Level};
use crate::host::apt::{machine, sources};
use crate::host::process::{self, Program};
use crate::host::setup::{self, NEEDS, Need};
use crate::host::{files, paths};

const SETUP: &str = "lab test --setup";
const VERSION_LIMIT: Duration = Duration::from_secs(20);
/// Older ones lack what templates need.
const MIN_QEMU_MAJOR: u32 = 7;
const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// QEMU and the other host programs.
pub(super) async fn programs(qemu: Option<&Path>, cancel: &CancellationToken) -> Vec<Check> {
    let mut checks = Vec::new();
    for need in NEEDS {
        checks.push(program(need, qemu, cancel).await);
    }
    checks
}

async fn program(need: Need, qemu: Option<&Path>, cancel: &CancellationToken) -> Check {
    let name = if need.package.starts_with("qemu") { "qemu" } else { need.program };
    let check = Check::ok(name, "not installed", need.why);
    let chosen = qemu.filter(|_| name == "qemu").map(Path::to_path_buf);
    let Some(path) = chosen.or_else(|| setup::find(need.program)) else {
        return check.with(Level::Fail, Some(SETUP.into()));
    };
    let asked = process::run(Program::new(&path, ["--version"]), VERSION_LIMIT, cancel).await;
    let output = match asked {
        Ok(output) if output.status.success() => output.stdout,
        Ok(output) => {
            let found = format!("{} --version: {}", path.display(), output.status);
            return Check { found, level: Level::Fail, ..check };
        }
        Err(error) => return Check { found: error.to_string(), level: Level::Fail, ..check },
    };
    let found = output.lines().next().unwrap_or_default().to_owned();
    let check = Check { found, ..check };
    let is_old = check::qemu_major(&output).is_some_and(|major| major < MIN_QEMU_MAJOR);
    if name == "qemu" && is_old { check.with(Level::Warn, None) } else { check }
}

/// Hardware virtualisation. That the device opens proves nothing: the first run proves it.
pub(super) fn kvm() -> Check {
    let why = "without it guests are emulated, several times slower";
    let open = std::fs::File::options().read(true).write(true).open("/dev/kvm");
    match open {
        Ok(_) => Check::ok("kvm", "/dev/kvm opens; the first run proves whether it works", why),
        Err(error) => {
            let denied = error.kind() == std::io::ErrorKind::PermissionDenied;
            let fix = denied.then(|| "sudo usermod -a -G kvm $USER".to_owned());
            Check::ok("kvm", format!("/dev/kvm: {error}"), why).with(Level::Warn, fix)
        }
    }
}

/// Memory for guests.
pub(super) fn memory() -> Check {
    let why = "each guest has its memory and a copy of its image";
    let text = files::read_bounded(Path::new("/proc/meminfo"), MIB).unwrap_or_default();
    match check::available_bytes(&String::from_utf8_lossy(&text)) {
        Some(bytes) => {
            let found = format!("{} available", ByteSize::b(bytes));
            Check::ok("memory", found, why).with(check::level_of(bytes, GIB, 2 * GIB), None)
        }
        None => Check::ok("memory", "unknown", why).with(Level::Warn, None),
    }
}

/// A directory that the lab writes to: that it can, and the space there.
pub(super) fn directory(name: &'static str, path: &Path, why: &'static str) -> [Check; 2] {
    let shown = path.display().to_string();
    let write = paths::create_private(path).map_err(|error| error.to_string()).and_then(|()| {
        let file = tempfile::Builder::new().prefix(".tmp-").tempfile_in(path);
        file.map(drop).map_err(|error| format!("cannot write into {shown}: {error}"))
    });
    let writable = match write {
        Ok(()) => Check::ok(name, format!("{shown} is writable"), why),
        Err(error) => Check::ok(name, error, why).with(Level::Fail, None),
    };
    [writable, space(&format!("{name} space"), path)]
}

fn space(name: &str, path: &Path) -> Check {
    let why = "a kernel takes about 50 MiB, an image about 90 MiB";
    let existing = path.ancestors().find(|dir| dir.is_dir()).map_or("/".into(), PathBuf::from);
    match rustix::fs::statvfs(&existing) {
        Ok(stat) => {
            let bytes = stat.f_bavail.saturating_mul(stat.f_frsize);
            let level = check::level_of(bytes, 512 * MIB, 2 * GIB);
            Check::ok(name, format!("{} free", ByteSize::b(bytes)), why).with(level, None)
        }
        Err(error) => Check::ok(name, error.to_string(), why).with(Level::Warn, None),
    }
}

/// apt and a Debian mirror, by which prebuilt kernels come.
pub(super) fn apt() -> Check {
    let why = "prebuilt kernels are fetched with it; kernels named by path do without";
    let absent: Vec<_> = ["apt-get", "apt-cache", "dpkg-deb"]
        .into_iter()
        .filter(|program| setup::find(program).is_none())
        .collect();
    if !absent.is_empty() {
        let found = format!("{} not installed", absent.join(", "));
        return Check::ok("apt", found, why).with(Level::Warn, None);
    }
    let os = machine::OsRelease::read();
    let codename = os.codename.filter(|_| os.id == "debian");
    let known = machine::read_sources(Path::new("/etc/apt"));
    match sources::debian_mirror(&known, codename.as_deref()) {
        Some(mirror) => Check::ok("apt", format!("mirror {}", mirror.uri), why),
        None => Check::ok("apt", "no debian mirror in its sources", why).with(Level::Warn, None),
    }
}

/// Whether the host's own FUSE takes rings; guests have kernels of their own.
pub(super) fn fuse_ring() -> Check {
    let why = "only trials of the server on this host need it, guests do not";
    let path = "/sys/module/fuse/parameters/enable_uring";
    let check = |found: &str| Check::ok("host fuse ring", found, why);
    match std::fs::read_to_string(path).as_deref().map(str::trim) {
        Ok("Y" | "1") => check("on"),
        Ok(_) => {
            let fix = format!("echo 1 | sudo tee {path}");
            check("off").with(Level::Warn, Some(fix))
        }
        Err(_) => check("this kernel has none").with(Level::Warn, None),
    }
}
