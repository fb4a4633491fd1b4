//! The QEMU program: where it is and which version.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::error::VmError;
use crate::host::process::{self, Program};

/// Name looked up in PATH.
pub const PROGRAM: &str = "qemu-system-x86_64";

const VERSION_LIMIT: Duration = Duration::from_secs(10);

/// A QEMU that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qemu {
    /// The program.
    pub path: PathBuf,
    /// Its version as it says, e.g. `10.0.2 (Debian 1:10.0.2+ds-2)`.
    pub version: String,
}

impl Qemu {
    /// Finds QEMU, at `path` or in PATH, and asks for its version.
    ///
    /// Errors: [`VmError::QemuMissing`]; [`VmError::Io`] when it does not tell a version.
    pub async fn find(path: Option<&Path>, cancel: &CancellationToken) -> Result<Qemu, VmError> {
        let path = path.map_or_else(|| PathBuf::from(PROGRAM), Path::to_path_buf);
        let program = Program::new(&path, ["--version"]);
        let output = process::run(program, VERSION_LIMIT, cancel).await?;
        let version = parse(&output.stdout).map(str::to_string).ok_or_else(|| {
            let what = format!("{} --version", path.display());
            VmError::Io { what, source: std::io::ErrorKind::InvalidData.into() }
        })?;
        Ok(Qemu { path, version })
    }
}

/// The version in the first line of `--version`.
fn parse(text: &str) -> Option<&str> {
    let (_, version) = text.lines().next()?.split_once(" version ")?;
    let version = version.trim();
    version.starts_with(|c: char| c.is_ascii_digit()).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        let debian = "QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)\nCopyright";
        assert_eq!(parse(debian), Some("10.0.2 (Debian 1:10.0.2+ds-2)"));
        assert_eq!(parse("QEMU emulator version 9.1.0\n"), Some("9.1.0"));
        assert_eq!(parse("qemu: not found"), None);
        assert_eq!(parse(""), None);
    }
}
