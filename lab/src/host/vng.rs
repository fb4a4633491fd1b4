//! virtme-ng, an external program, in a Python environment of the lab's own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::process::{self, Program};
use super::{files, lock, paths};

/// The version that the lab is tested with.
pub const VERSION: &str = "1.42";

const INSTALL_LIMIT: Duration = Duration::from_secs(600);
const LOCK_LIMIT: Duration = Duration::from_secs(900);
const ASK_LIMIT: Duration = Duration::from_secs(60);

/// The environment of this version below a cache directory.
fn place(cache: &Path) -> PathBuf {
    cache.join("venv").join(format!("virtme-ng-{VERSION}"))
}

/// vng, if it is installed already.
pub fn find(cache: &Path) -> Option<PathBuf> {
    let place = place(cache);
    let vng = place.join("bin/vng");
    (place.join("lab-complete").is_file() && vng.is_file()).then_some(vng)
}

/// vng, installed where it is missing. A second process waits for the first.
///
/// # Errors
///
/// One line for people, with the fix where there is one.
pub async fn ensure(
    cache: &Path,
    tell: &(dyn Fn(&str) + Send + Sync),
    cancel: &CancellationToken,
) -> Result<PathBuf, String> {
    if let Some(vng) = find(cache) {
        return Ok(vng);
    }
    let place = place(cache);
    let dir = cache.join("venv");
    paths::create_private(&dir).map_err(|e| e.to_string())?;
    let held = lock::exclusive(&dir.join("lock"), LOCK_LIMIT, cancel).await;
    let _held = held.map_err(|e| e.to_string())?;
    if let Some(vng) = find(cache) {
        return Ok(vng);
    }
    tell(&format!("installing virtme-ng {VERSION}"));
    // Scripts in it hold its path, so it is made in place; a mark says that it is whole.
    let _ = std::fs::remove_dir_all(&place);
    let python = ["-m".into(), "venv".into(), place.display().to_string()];
    run(Program::new("python3", python), "python3 -m venv", cancel).await?;
    let pip = place.join("bin/pip");
    let what = format!("virtme-ng=={VERSION}");
    let args = ["install", "--quiet", "--disable-pip-version-check", &what];
    run(Program::new(&pip, args), "pip install virtme-ng", cancel).await?;
    let vng = place.join("bin/vng");
    run(Program::new(&vng, ["--version"]), "vng --version", cancel).await?;
    files::replace(&place.join("lab-complete"), b"").map_err(|e| e.to_string())?;
    Ok(vng)
}

async fn run(program: Program, what: &str, cancel: &CancellationToken) -> Result<(), String> {
    let limit = if what.ends_with("--version") { ASK_LIMIT } else { INSTALL_LIMIT };
    let output = process::run(program, limit, cancel).await;
    let output = output.map_err(|e| format!("virtme-ng cannot be had: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let last = output.stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no word");
    Err(format!("virtme-ng cannot be had: {what}: {last}"))
}
