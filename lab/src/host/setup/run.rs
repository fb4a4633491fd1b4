//! Looks at the machine, and installs what is missing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::plan::{self, Facts, Need, Plan, PlanError, Right};
use crate::host::apt::machine::{self, OsRelease};
use crate::host::apt::root::{self, AptError, AptRoot, Installed};
use crate::host::files;
use crate::host::lock::{self, LockError};
use crate::host::paths::{self, Paths, PathsError};
use crate::host::process::{self, Program};

const INSTALL_LIMIT: Duration = Duration::from_secs(1200);
const ASK_LIMIT: Duration = Duration::from_secs(20);
const MAX_LIST_BYTES: u64 = 1 << 20;
const ETC_APT: &str = "/etc/apt";

/// Why something is still missing. All of these are the host's (exit code 3).
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// No apt here.
    #[error("this machine has no apt: install {programs} yourself")]
    NoApt {
        /// What is missing.
        programs: String,
    },
    /// This user cannot install.
    #[error("this user cannot install {packages}; run: {command}")]
    NeedsRoot {
        /// Packages.
        packages: String,
        /// The exact command, ready for a shell.
        command: String,
    },
    /// The packages cannot be found together.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// apt failed.
    #[error("cannot install {packages}: {source}")]
    Install {
        /// Packages.
        packages: String,
        /// Why.
        source: AptError,
    },
    /// The private root cannot be made.
    #[error(transparent)]
    Root(#[from] AptError),
    /// A directory of the cache cannot be made.
    #[error(transparent)]
    Paths(#[from] PathsError),
    /// Another process is installing.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// apt was content, but the program is not there.
    #[error("{package} was installed, but there is no {program} in PATH")]
    StillMissing {
        /// Program.
        program: &'static str,
        /// Its package.
        package: &'static str,
    },
}

/// Which of `needs` this host lacks.
pub fn missing(needs: &[Need]) -> Vec<Need> {
    needs.iter().filter(|need| find(need.program).is_none()).copied().collect()
}

/// The path of a host program, by PATH; one with a `/` is looked for where it says.
pub fn find(program: &str) -> Option<PathBuf> {
    if program.starts_with('/') {
        return Path::new(program).exists().then(|| program.into());
    }
    crate::image::closure::which(program, &std::env::var("PATH").unwrap_or_default())
}

/// Installs what is missing of `needs`, as root or through sudo; does nothing when nothing is. `tell`
/// takes lines about what takes long. Ends within half an hour.
///
/// # Errors
///
/// [`SetupError`]; [`SetupError::NeedsRoot`] has the command that would do it.
pub async fn run(
    needs: &[Need],
    paths: &Paths,
    tell: &(dyn Fn(&str) + Send + Sync),
    cancel: &CancellationToken,
) -> Result<Vec<Need>, SetupError> {
    let missing = missing(needs);
    if missing.is_empty() {
        return Ok(missing);
    }
    let (plan, root) = prepare(&missing, paths, tell, cancel).await?;
    let right = right(cancel).await;
    let command = plan::install_command(&plan, root.config(), right);
    let packages = plan.packages.join(", ");
    if right == Right::None {
        let command = shell_words::join(&command);
        return Err(SetupError::NeedsRoot { packages, command });
    }
    tell(&format!("installing {packages}: {}", shell_words::join(&command)));
    let program = Program::new(&command[0], &command[1..]);
    root::checked(program, INSTALL_LIMIT, cancel)
        .await
        .map_err(|source| SetupError::Install { packages, source })?;
    match missing.iter().find(|need| find(need.program).is_none()) {
        Some(&Need { program, package, .. }) => Err(SetupError::StillMissing { program, package }),
        None => Ok(missing),
    }
}

/// Plans, and makes the private root with fresh lists; needs no privilege, so that the command
/// it leads to works as it stands.
///
/// # Errors
///
/// [`SetupError`].
pub async fn prepare(
    missing: &[Need],
    paths: &Paths,
    tell: &(dyn Fn(&str) + Send + Sync),
    cancel: &CancellationToken,
) -> Result<(Plan, AptRoot), SetupError> {
    if find("apt-get").is_none() {
        let programs: Vec<_> = missing.iter().map(|need| need.program).collect();
        return Err(SetupError::NoApt { programs: programs.join(", ") });
    }
    let plan = plan::plan(missing, &facts(cancel).await)?;
    let dir = paths.apt().join("setup");
    paths::create_private(&dir)?;
    let _lock = lock::exclusive(&dir.join("lock"), INSTALL_LIMIT, cancel).await?;
    let parts = Path::new(ETC_APT).join("sources.list.d");
    let root = AptRoot::create(
        &dir,
        Installed::Machine,
        ("lab.list", &plan.sources_list),
        parts.is_dir().then_some(&parts),
    )?;
    tell("reading the package lists");
    // A source of somebody else's may be out of order; whether that matters shows when the
    // packages are installed.
    if let Err(error) = root.update(cancel).await {
        tell(&format!("not all package lists could be read: {error}"));
    }
    Ok((plan, root))
}

async fn facts(cancel: &CancellationToken) -> Facts {
    let list = files::read_bounded(&Path::new(ETC_APT).join("sources.list"), MAX_LIST_BYTES);
    Facts {
        os: OsRelease::read(),
        installed: installed_qemu(cancel).await,
        sources: machine::read_sources(Path::new(ETC_APT)),
        sources_list: String::from_utf8_lossy(&list.unwrap_or_default()).into_owned(),
        keyring: machine::keyring().map(|path| path.to_string_lossy().into_owned()),
    }
}

async fn installed_qemu(cancel: &CancellationToken) -> Vec<(String, String)> {
    let format = "${Package} ${Version} ${db:Status-Status}\\n";
    let program = Program::new("dpkg-query", ["-W", "-f", format, "qemu-*"]);
    // It fails when it knows no such package, which is an answer too.
    let output = process::run(program, ASK_LIMIT, cancel).await;
    output.map(|output| parse_installed(&output.stdout)).unwrap_or_default()
}

fn parse_installed(text: &str) -> Vec<(String, String)> {
    let row = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [package, version, "installed"] => Some((package.to_owned(), version.to_owned())),
        _ => None,
    };
    text.lines().filter_map(row).collect()
}

async fn right(cancel: &CancellationToken) -> Right {
    if rustix::process::geteuid().is_root() {
        return Right::Root;
    }
    let asked = process::run(Program::new("sudo", ["-n", "true"]), ASK_LIMIT, cancel).await;
    if asked.is_ok_and(|output| output.status.success()) { Right::Sudo } else { Right::None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_installed_counts() {
        let text = "qemu-utils 1:10~bpo12 installed\nqemu-kvm  not-installed\n\
                    qemu-system-x86 1:9 config-files\n";
        assert_eq!(parse_installed(text), [("qemu-utils".to_owned(), "1:10~bpo12".to_owned())]);
    }
}
