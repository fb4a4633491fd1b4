//! Runs of make: their limits, what they leave, what their failure means.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::error::BuildError;
use super::sandbox::Sandbox;
use crate::host::files;
use crate::host::process::{self, Output, ProcessError};
use crate::host::setup;

/// Longest build of a kernel; a distribution's own configuration on two cores needs an hour.
const LIMIT: Duration = Duration::from_secs(4 * 3600);
/// Longest question to the toolchain.
const QUESTION: Duration = Duration::from_secs(30);

/// Equal inputs give equal images: what would tell builds apart is fixed.
const ENV: [(&str, &str); 6] = [
    ("KBUILD_BUILD_TIMESTAMP", "Thu Jan  1 00:00:00 UTC 2026"),
    ("KBUILD_BUILD_USER", "lab"),
    ("KBUILD_BUILD_HOST", "lab"),
    ("KBUILD_BUILD_VERSION", "1"),
    ("LC_ALL", "C"),
    ("TZ", "UTC"),
];

/// Variables that would change what make does.
const UNSET: [&str; 9] = [
    "MAKEFLAGS",
    "MAKELEVEL",
    "MFLAGS",
    "ARCH",
    "CROSS_COMPILE",
    "KCFLAGS",
    "KBUILD_OUTPUT",
    "LLVM",
    "LOCALVERSION",
];

/// make in a tree.
pub(super) struct Make<'a> {
    pub(super) sandbox: &'a Sandbox,
    /// Source, written to by nobody during a build.
    pub(super) src: &'a Path,
    /// Objects.
    pub(super) obj: &'a Path,
    /// How many compilers at once.
    pub(super) jobs: usize,
    /// Name of the kernel, for messages.
    pub(super) name: &'a str,
}

impl Make<'_> {
    /// One run; a failure of make itself is in the output.
    pub(super) async fn run(
        &self,
        args: &[String],
        cancel: &CancellationToken,
    ) -> Result<Output, BuildError> {
        let mut all: Vec<String> = UNSET.iter().map(|name| format!("-u{name}")).collect();
        all.extend(ENV.iter().map(|(name, value)| format!("{name}={value}")));
        all.extend(["make".into(), "-C".into(), self.src.display().to_string()]);
        all.push(format!("O={}", self.obj.display()));
        all.push(format!("-j{}", self.jobs));
        all.extend(args.iter().cloned());
        let program = self.sandbox.wrap("env", all, &[self.src, self.obj]);
        match process::run(program, LIMIT, cancel).await {
            Ok(output) if full(&output) => Err(BuildError::NoSpace(self.obj.to_owned())),
            Ok(output) => Ok(output),
            Err(ProcessError::Limit { .. }) => {
                Err(BuildError::Limit { name: self.name.to_owned(), minutes: LIMIT.as_secs() / 60 })
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn full(output: &Output) -> bool {
    !output.status.success() && output.stdout.contains("No space left on device")
}

/// Writes the log of a build, whole or not at all.
pub(super) fn write_log(path: &Path, output: &Output) -> Result<PathBuf, BuildError> {
    files::replace(path, output.stdout.as_bytes()).map_err(BuildError::io(path))?;
    Ok(path.to_owned())
}

/// What compiles: part of the key of every kernel.
pub(super) async fn toolchain(cancel: &CancellationToken) -> Result<String, BuildError> {
    let mut lines = Vec::new();
    for tool in ["gcc", "ld"] {
        let program = process::Program::new(tool, ["--version"]);
        let output = process::run(program, QUESTION, cancel).await?;
        lines.push(output.stdout.lines().next().unwrap_or_default().to_owned());
    }
    Ok(lines.join("\n"))
}

/// All tools are here. A build without bubblewrap is possible, and told.
pub(super) fn check_tools() -> Result<(), BuildError> {
    let missing: Vec<_> =
        setup::missing(&setup::BUILD_NEEDS).into_iter().filter(|n| n.program != "bwrap").collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    Err(BuildError::Tools {
        missing: missing.iter().map(|need| need.program.to_owned()).collect(),
        fix: format!("`--setup` installs them, or: apt-get install {}", packages.join(" ")),
    })
}
