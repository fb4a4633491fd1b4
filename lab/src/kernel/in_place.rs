//! A source tree that a developer works in: built where it stands, when it is stale.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio_util::sync::CancellationToken;
use walkdir::WalkDir;

use super::build::{self, BuildError};
use super::error::KernelError;
use super::fetch::Fetch;
use crate::host::process::{self, ProcessError, Program};
use crate::host::{files, lock, paths};

/// Longest build; a distribution's configuration on two cores needs an hour.
const LIMIT: Duration = Duration::from_secs(4 * 3600);

/// Whether a directory is a kernel source tree, built or not.
pub(super) fn is_tree(path: &Path) -> bool {
    path.join("Kconfig").is_file() && path.join("Makefile").is_file()
}

/// Builds the tree in `path` where its image is missing or older than a source. `place` is a
/// directory of the cache, for the log and the lock.
pub(super) async fn ensure(
    path: &Path,
    place: &Path,
    mode: Fetch,
    tell: &(dyn Fn(&str) + Send + Sync),
    cancel: &CancellationToken,
) -> Result<(), KernelError> {
    let Some(reason) = stale(path) else { return Ok(()) };
    if mode == Fetch::CacheOnly {
        // Shown without being started: what is there is shown.
        return Ok(());
    }
    if !path.join(".config").is_file() {
        return Err(KernelError::NotConfigured { path: path.to_owned() });
    }
    paths::create_private(place)?;
    let id = files::sha256_bytes(path.as_os_str().as_encoded_bytes())[..16].to_owned();
    let held = lock::exclusive(&place.join(format!("{id}.lock")), LIMIT, cancel).await?;
    tell(&format!("building {} ({reason})", path.display()));
    let log = place.join(format!("{id}.log"));
    let built = make(path, log, cancel).await;
    drop(held);
    built.map_err(|error| KernelError::Build(Box::new(error)))
}

async fn make(path: &Path, log: PathBuf, cancel: &CancellationToken) -> Result<(), BuildError> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let script = "exec nice make -C \"$1\" -j\"$2\" bzImage 2>&1";
    let args =
        ["-c", script, "sh", &path.display().to_string(), &jobs.to_string()].map(String::from);
    let mut program = Program::new("sh", args);
    program.env = vec![("LC_ALL".into(), "C".into())];
    let name = path.display().to_string();
    let output = match process::run(program, LIMIT, cancel).await {
        Err(ProcessError::Limit { .. }) => {
            return Err(BuildError::Limit { name, minutes: LIMIT.as_secs() / 60 });
        }
        ended => ended?,
    };
    files::replace(&log, output.stdout.as_bytes())
        .map_err(|source| BuildError::Io { path: log.clone(), source })?;
    if output.status.success() {
        return Ok(());
    }
    if output.stdout.contains("No space left on device") {
        return Err(BuildError::NoSpace(path.to_owned()));
    }
    let errors = build::errors(&output.stdout, &name);
    Err(BuildError::Compile { name, errors, log })
}

/// Why a tree has to be built: there is no image, or something is newer.
fn stale(path: &Path) -> Option<String> {
    let image = path.join("arch/x86/boot/bzImage");
    let Ok(built) = std::fs::metadata(&image).and_then(|meta| meta.modified()) else {
        return Some("it is not built".into());
    };
    let newer = newer_than(path, built)?;
    Some(format!("{} is newer than its image", newer.display()))
}

fn newer_than(root: &Path, built: SystemTime) -> Option<PathBuf> {
    let is_source = |name: &str| {
        let end = name.rsplit('.').next().unwrap_or_default();
        matches!(end, "c" | "h" | "S" | "lds" | "rs" | "config" | "inc" | "tbl" | "sh")
            || name.starts_with("Kconfig")
            || name.starts_with("Makefile")
            || name == "Kbuild"
    };
    let entries = WalkDir::new(root).into_iter().filter_entry(|e| e.file_name() != ".git");
    let newer = |entry: &walkdir::DirEntry| {
        let time = entry.metadata().ok().and_then(|meta| meta.modified().ok());
        entry.file_type().is_file()
            && is_source(&entry.file_name().to_string_lossy())
            && time.is_some_and(|time| time > built)
    };
    let found = entries.flatten().find(newer)?;
    Some(found.path().strip_prefix(root).unwrap_or(found.path()).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::bzimage::tests::sample;

    struct Tree {
        dir: tempfile::TempDir,
    }

    impl Tree {
        fn new() -> Tree {
            let tree = Tree { dir: tempfile::tempdir().unwrap() };
            let makefile = "bzImage:\n\tmkdir -p arch/x86/boot\n\t! grep broken a.c\n\
                            \tcp sample.bin arch/x86/boot/bzImage\n";
            tree.put("Makefile", makefile.as_bytes());
            tree.put("Kconfig", b"");
            tree.put("a.c", b"int a;\n");
            tree.put("sample.bin", &sample("7.3.4 (x) #1"));
            tree
        }

        fn put(&self, name: &str, bytes: &[u8]) {
            std::fs::write(self.dir.path().join(name), bytes).unwrap();
        }

        /// What was said, or the error.
        async fn ensure(&self) -> Result<String, KernelError> {
            let said = std::sync::Mutex::new(String::new());
            let tell = |line: &str| said.lock().unwrap().push_str(line);
            let (cancel, place) = (CancellationToken::new(), self.dir.path().join("cache"));
            ensure(self.dir.path(), &place, Fetch::Auto, &tell, &cancel).await?;
            Ok(said.into_inner().unwrap())
        }
    }

    #[tokio::test]
    async fn a_tree_is_built_when_it_is_stale_and_only_then() {
        let tree = Tree::new();
        assert!(matches!(tree.ensure().await, Err(KernelError::NotConfigured { .. })));
        tree.put(".config", b"CONFIG_A=y\n");
        assert!(tree.ensure().await.unwrap().contains("it is not built"));
        assert_eq!(tree.ensure().await.unwrap(), "");
        std::thread::sleep(Duration::from_millis(20));
        tree.put("a.c", b"int b;\n");
        assert!(tree.ensure().await.unwrap().contains("a.c is newer than its image"));
        std::thread::sleep(Duration::from_millis(20));
        tree.put("a.c", b"broken\n");
        let error = tree.ensure().await.unwrap_err();
        assert!(matches!(error, KernelError::Build(_)) && error.is_usage(), "{error}");
        // It stays stale.
        assert!(tree.ensure().await.is_err());
    }
}
