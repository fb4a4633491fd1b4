//! A root of apt's own beside the machine's: sources, lists and configuration in a directory
//! that needs no privilege.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::host::files;
use crate::host::paths::{self, PathsError};
use crate::host::process::{self, Output, ProcessError, Program};

const UPDATE_LIMIT: Duration = Duration::from_secs(300);
const QUERY_LIMIT: Duration = Duration::from_secs(60);
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(900);
const UNPACK_LIMIT: Duration = Duration::from_secs(120);
/// Lines of a program's complaint that go into an error.
const COMPLAINT_LINES: usize = 4;

/// Why apt did not do it.
#[derive(Debug, thiserror::Error)]
pub enum AptError {
    /// A path that apt's configuration cannot hold.
    #[error("{} cannot be used as a directory of apt: it has a quote or a line break", path.display())]
    OddPath {
        /// The path.
        path: PathBuf,
    },
    /// A directory of the root cannot be made.
    #[error(transparent)]
    Paths(#[from] PathsError),
    /// A file of the root cannot be written.
    #[error("cannot write the private root of apt: {0}")]
    Write(#[from] io::Error),
    /// The program could not be run to its end.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The program said no.
    #[error("{program} failed: {complaint}")]
    Failed {
        /// Which.
        program: String,
        /// The end of what it said.
        complaint: String,
    },
}

/// Which packages count as installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Installed {
    /// None; for downloads that are unpacked and not installed.
    Nothing,
    /// Those of the machine; for installing on it.
    Machine,
}

/// A private root.
#[derive(Debug, Clone)]
pub struct AptRoot {
    config: PathBuf,
}

impl AptRoot {
    /// Writes a root into `dir`. `file_name` is that of its source file: its suffix tells apt
    /// the form of `sources`. `more_sources` is a directory of further source files.
    ///
    /// # Errors
    ///
    /// Directories and files that cannot be made.
    pub fn create(
        dir: &Path,
        installed: Installed,
        (file_name, sources): (&str, &str),
        more_sources: Option<&Path>,
    ) -> Result<AptRoot, AptError> {
        let text = config_text(dir, installed, file_name, more_sources)?;
        for part in ["lists/partial", "cache/archives/partial"] {
            paths::create_private(&dir.join(part))?;
        }
        files::replace(&dir.join("status"), b"")?;
        files::replace(&dir.join(file_name), sources.as_bytes())?;
        let config = dir.join("apt.conf");
        files::replace(&config, text.as_bytes())?;
        Ok(AptRoot { config })
    }

    /// The configuration file, for `apt-get -c`.
    pub fn config(&self) -> &Path {
        &self.config
    }

    /// Fetches the lists; ends within five minutes. A suite that cannot be fetched or whose
    /// signature is wrong is an error.
    ///
    /// # Errors
    ///
    /// [`AptError`].
    pub async fn update(&self, cancel: &CancellationToken) -> Result<(), AptError> {
        let program = self.program("apt-get", ["update"]);
        checked(program, UPDATE_LIMIT, cancel).await.map(drop)
    }

    /// Package names that match an extended regular expression, sorted.
    ///
    /// # Errors
    ///
    /// [`AptError`].
    pub async fn search(
        &self,
        pattern: &str,
        cancel: &CancellationToken,
    ) -> Result<Vec<String>, AptError> {
        let program = self.program("apt-cache", ["search", "--names-only", pattern]);
        let output = checked(program, QUERY_LIMIT, cancel).await?;
        let name = |line: &str| Some(line.split_once(" - ")?.0.to_owned());
        let mut names: Vec<String> = output.stdout.lines().filter_map(name).collect();
        names.sort();
        Ok(names)
    }

    /// Versions of packages, as `apt-cache madison` prints them.
    ///
    /// # Errors
    ///
    /// [`AptError`].
    pub async fn madison(
        &self,
        names: &[String],
        cancel: &CancellationToken,
    ) -> Result<String, AptError> {
        let args = std::iter::once("madison").chain(names.iter().map(String::as_str));
        let output = checked(self.program("apt-cache", args), QUERY_LIMIT, cancel).await?;
        Ok(output.stdout)
    }

    /// Downloads packages given as `name=version` into `into`; signatures and digests are
    /// apt's to check. Ends within 15 minutes.
    ///
    /// # Errors
    ///
    /// [`AptError`].
    pub async fn download(
        &self,
        packages: &[String],
        into: &Path,
        cancel: &CancellationToken,
    ) -> Result<(), AptError> {
        let args = std::iter::once("download").chain(packages.iter().map(String::as_str));
        let mut program = self.program("apt-get", args);
        program.cwd = Some(into.to_path_buf());
        checked(program, DOWNLOAD_LIMIT, cancel).await.map(drop)
    }

    fn program<'a>(&self, name: &str, args: impl IntoIterator<Item = &'a str>) -> Program {
        let mut program = Program::new(name, args);
        program.args.insert(0, "-c".into());
        program.args.insert(1, self.config.as_os_str().to_owned());
        program.env = vec![("LC_ALL".into(), "C".into())];
        program
    }
}

/// Unpacks a `.deb` into a directory without installing it; ends within two minutes.
///
/// # Errors
///
/// [`AptError`].
pub async fn unpack(deb: &Path, into: &Path, cancel: &CancellationToken) -> Result<(), AptError> {
    let args = ["-x".as_ref(), deb.as_os_str(), into.as_os_str()];
    checked(Program::new("dpkg-deb", args), UNPACK_LIMIT, cancel).await.map(drop)
}

/// Runs a program for which only success will do.
pub(crate) async fn checked(
    program: Program,
    limit: Duration,
    cancel: &CancellationToken,
) -> Result<Output, AptError> {
    let name = program.name();
    let output = process::run(program, limit, cancel).await?;
    if output.status.success() {
        return Ok(output);
    }
    let complaint = complaint(&output.stderr);
    Err(AptError::Failed { program: name, complaint })
}

/// The last lines of a program's standard error in one.
fn complaint(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let tail = &lines[lines.len().saturating_sub(COMPLAINT_LINES)..];
    if tail.is_empty() { "it does not say why".to_owned() } else { tail.join("; ") }
}

/// The configuration of a root. It is read after the machine's, so that proxies and the like
/// stay in force; hooks of the machine do not.
fn config_text(
    dir: &Path,
    installed: Installed,
    file_name: &str,
    more_sources: Option<&Path>,
) -> Result<String, AptError> {
    let at = |part: &str| quoted(&dir.join(part));
    let mut lines = vec![
        "#clear APT::Update::Pre-Invoke;".to_owned(),
        "#clear APT::Update::Post-Invoke;".to_owned(),
        "#clear APT::Update::Post-Invoke-Success;".to_owned(),
        format!("Dir::Etc::sourcelist {};", at(file_name)?),
        format!(
            "Dir::Etc::sourceparts {};",
            quoted(more_sources.unwrap_or(Path::new("/dev/null")))?
        ),
        format!("Dir::State::lists {};", at("lists")?),
        "Dir::Cache::pkgcache \"\";".to_owned(),
        "Dir::Cache::srcpkgcache \"\";".to_owned(),
        // The directories are the user's alone: apt's helper user could not enter them.
        "APT::Sandbox::User \"\";".to_owned(),
        "APT::Update::Error-Mode \"any\";".to_owned(),
        "Acquire::Languages \"none\";".to_owned(),
        "Acquire::Retries \"2\";".to_owned(),
        "Acquire::AllowInsecureRepositories \"false\";".to_owned(),
        "Acquire::AllowWeakRepositories \"false\";".to_owned(),
        "Acquire::AllowDowngradeToInsecureRepositories \"false\";".to_owned(),
        "APT::Get::AllowUnauthenticated \"false\";".to_owned(),
    ];
    if installed == Installed::Nothing {
        lines.extend([
            format!("Dir::State::status {};", at("status")?),
            format!("Dir::Cache {};", at("cache")?),
            "Dir::Etc::preferences \"/dev/null\";".to_owned(),
            "Dir::Etc::preferencesparts \"/dev/null\";".to_owned(),
            "APT::Architecture \"amd64\";".to_owned(),
            "#clear APT::Architectures;".to_owned(),
            "APT::Architectures { \"amd64\"; };".to_owned(),
        ]);
    }
    Ok(lines.join("\n") + "\n")
}

fn quoted(path: &Path) -> Result<String, AptError> {
    match path.to_str() {
        Some(text) if !text.contains(['"', '\n', '\\']) => Ok(format!("\"{text}\"")),
        _ => Err(AptError::OddPath { path: path.to_path_buf() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_always_required() {
        for installed in [Installed::Nothing, Installed::Machine] {
            let text = config_text(Path::new("/r"), installed, "lab.list", None).unwrap();
            assert!(text.contains("APT::Get::AllowUnauthenticated \"false\";"));
            assert!(text.contains("Acquire::AllowInsecureRepositories \"false\";"));
        }
    }

    #[test]
    fn only_a_root_for_downloads_hides_what_is_installed() {
        let text = |installed| config_text(Path::new("/r"), installed, "l.list", None).unwrap();
        assert!(text(Installed::Nothing).contains("Dir::State::status \"/r/status\";"));
        assert!(!text(Installed::Machine).contains("Dir::State::status"));
        assert!(!text(Installed::Machine).contains("preferences"));
    }

    #[test]
    fn a_path_cannot_smuggle_in_settings() {
        let path = Path::new("/r\"; Acquire::AllowInsecureRepositories \"true");
        let error = config_text(path, Installed::Nothing, "l.list", None).unwrap_err();
        assert!(matches!(error, AptError::OddPath { .. }));
    }

    #[test]
    fn a_complaint_is_the_end_of_what_was_said() {
        assert_eq!(complaint(""), "it does not say why");
        assert_eq!(complaint("1\n2\n\n3\n4\n5\n"), "2; 3; 4; 5");
    }
}
