//! Kernel release, taint, state of the subject, programs of the image.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use lab_proto::observe::Facts;

use super::read;
use crate::sys::process;

/// Where the image has fio.
pub(crate) const FIO: &str = "/usr/bin/fio";

/// Limit of `fio --version`.
const FIO_LIMIT: Duration = Duration::from_secs(30);

/// Everything of [`Facts`].
pub(crate) fn report() -> Facts {
    static FIO_VERSION: OnceLock<Option<String>> = OnceLock::new();
    Facts {
        release: read::text("/proc/sys/kernel/osrelease").unwrap_or_default(),
        version: read::text("/proc/sys/kernel/version").unwrap_or_default(),
        cmdline: read::text("/proc/cmdline").unwrap_or_default(),
        tainted: tainted(),
        enable_uring: enable_uring(),
        traces_fuse: traces_fuse(),
        fio: FIO_VERSION.get_or_init(fio_version).clone(),
    }
}

/// Taint bits; all ones when the kernel does not tell.
pub(crate) fn tainted() -> u64 {
    read::value("/proc/sys/kernel/tainted").unwrap_or(u64::MAX)
}

/// Parameter enable_uring of the FUSE module, none where there is no such parameter.
pub(crate) fn enable_uring() -> Option<bool> {
    match read::text("/sys/module/fuse/parameters/enable_uring")?.as_str() {
        "Y" | "y" | "1" => Some(true),
        _ => Some(false),
    }
}

/// Whether the kernel has tracepoint fuse_request_send.
pub(crate) fn traces_fuse() -> bool {
    Path::new("/sys/kernel/tracing/events/fuse/fuse_request_send").exists()
}

fn fio_version() -> Option<String> {
    if !Path::new(FIO).exists() {
        return None;
    }
    let mut command = Command::new(FIO);
    command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped());
    let mut child = process::spawn(&mut command).ok()?;
    if process::wait_for(&mut child, FIO_LIMIT).is_none() {
        let _ = child.kill();
        return None;
    }
    let mut text = String::new();
    child.stdout.take()?.take(256).read_to_string(&mut text).ok()?;
    text.lines().next().map(str::to_owned)
}
