//! All checks in their order.

use std::path::Path;

use tokio_util::sync::CancellationToken;

use super::check::{Check, Level};
use super::host;
use crate::config::kernel::KernelEntry;
use crate::host::paths::Paths;
use crate::kernel::build::BuildError;
use crate::kernel::{Fetch, KernelError, Resolver, resolve};

/// Checks the host. Changes nothing but makes the lab's own directories; asks no network. Ends
/// within a minute; rendering is the caller's.
///
/// `qemu` is the program that is used instead of the one in PATH.
pub async fn run(
    paths: &Paths,
    qemu: Option<&Path>,
    entries: &[KernelEntry],
    cancel: &CancellationToken,
) -> Vec<Check> {
    let mut checks = host::programs(qemu, cancel).await;
    checks.push(host::kvm());
    checks.push(host::memory());
    checks.extend(host::directory("cache", &paths.cache, "kernels and images are kept there"));
    checks.extend(host::directory("runs", &paths.runs, "each run is recorded there"));
    checks.push(host::apt());
    for entry in entries {
        checks.push(kernel(entry, paths, cancel).await);
    }
    checks.push(host::fuse_ring());
    checks
}

/// The worst level, which decides how the verb ends; ok when there is no check.
pub fn worst(checks: &[Check]) -> Level {
    checks.iter().map(|check| check.level).max().unwrap_or(Level::Ok)
}

async fn kernel(entry: &KernelEntry, paths: &Paths, cancel: &CancellationToken) -> Check {
    let one = std::slice::from_ref(entry);
    let resolver = Resolver { entries: one, paths, mode: Fetch::CacheOnly, tell: &|_| () };
    let name = format!("kernel {}", entry.name);
    let check = |found: String| Check::ok(&name, found, "it is one of those that can be tested");
    match resolve(&entry.name, &resolver, cancel).await {
        Ok(kernel) => check(format!("{}, {}", kernel.release, kernel.origin)),
        Err(error @ KernelError::NotFetched { .. }) => {
            // It comes by itself with the first run, so nothing is broken.
            let fix = format!("lab test --kernel {}", entry.name);
            check(error.to_string()).with(Level::Warn, Some(fix))
        }
        Err(KernelError::Build(error)) => {
            let text = error.to_string();
            let found = match *error {
                // Its source is not here yet, or nothing needed it so far.
                BuildError::NotBuilt(_) | BuildError::Source { .. } => "not built yet".to_owned(),
                _ => text,
            };
            let fix = format!("lab kernel build --setup {}", entry.name);
            let level = if found == "not built yet" { Level::Ok } else { Level::Warn };
            check(found).with(level, Some(fix))
        }
        Err(error) => check(error.to_string()).with(Level::Fail, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::kernel::KernelSource;

    #[tokio::test]
    async fn a_missing_kernel_and_a_file_for_a_directory_fail() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let paths = Paths { cache: dir.path().join("cache"), runs: file.join("runs") };
        let entry = KernelEntry {
            name: "gone".into(),
            summary: String::new(),
            source: KernelSource::Path(dir.path().join("gone")),
            vmlinux: None,
            cmdline: vec![],
            queue_policy: None,
            offers: Vec::new(),
        };
        let checks = run(&paths, None, &[entry], &CancellationToken::new()).await;
        let level = |name: &str| checks.iter().find(|c| c.name == name).unwrap().level;
        assert_eq!(level("cache"), Level::Ok);
        assert_eq!(level("runs"), Level::Fail);
        assert_eq!(level("kernel gone"), Level::Fail);
        assert_eq!(worst(&checks), Level::Fail);
        assert_eq!(worst(&[]), Level::Ok);
    }
}
