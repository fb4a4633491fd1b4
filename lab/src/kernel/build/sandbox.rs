//! Build programs, kept from the network and from the home directory where bubblewrap can.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::host::process::{self, Program};

const PROBE_LIMIT: Duration = Duration::from_secs(10);

/// How programs of a build are run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sandbox {
    /// By bubblewrap.
    Bubblewrap,
    /// As they are, and why.
    None(String),
}

impl Sandbox {
    /// Tries bubblewrap out: being installed does not mean that it may make namespaces.
    pub(super) async fn find(cancel: &CancellationToken) -> Sandbox {
        let probe = Sandbox::Bubblewrap.wrap("true", [""; 0], &[]);
        match process::run(probe, PROBE_LIMIT, cancel).await {
            Ok(output) if output.status.success() => Sandbox::Bubblewrap,
            Ok(output) => {
                let why = output.stderr.lines().last().unwrap_or("it failed").to_owned();
                Sandbox::None(format!("bubblewrap does not work here ({why})"))
            }
            Err(_) => Sandbox::None("bubblewrap is not installed".into()),
        }
    }

    /// `program` with its output on one stream, at low priority, able to write in `places` only.
    pub(super) fn wrap<A: Into<OsString>>(
        &self,
        program: &str,
        args: impl IntoIterator<Item = A>,
        places: &[&Path],
    ) -> Program {
        let mut all: Vec<OsString> = Vec::new();
        if *self == Sandbox::Bubblewrap {
            all.push("bwrap".into());
            all.extend(bubblewrap(places, std::env::var_os("HOME").map(PathBuf::from)));
        }
        all.extend([program.into()]);
        all.extend(args.into_iter().map(Into::into));
        // One stream keeps warnings beside what they belong to.
        let script = "exec nice \"$@\" 2>&1";
        let args = ["-c".into(), script.into(), "sh".into()].into_iter().chain(all);
        Program::new("sh", args.collect::<Vec<OsString>>())
    }
}

/// The host read-only, no network, an empty home, and the places that may be written.
fn bubblewrap(places: &[&Path], home: Option<PathBuf>) -> Vec<OsString> {
    let mut args: Vec<OsString> = [
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--tmpfs",
        "/tmp",
        "--unshare-net",
        "--unshare-ipc",
        "--unshare-pid",
        "--die-with-parent",
        "--new-session",
    ]
    .map(OsString::from)
    .into();
    // A home that is the root directory, or holds a tool on PATH, cannot be hidden.
    let tools = std::env::var_os("PATH").unwrap_or_default();
    if let Some(home) = home.filter(|home| home.is_dir() && home.parent().is_some()) {
        args.extend(["--tmpfs".into(), home.clone().into()]);
        for tool in std::env::split_paths(&tools).filter(|dir| dir.starts_with(&home)) {
            if tool.is_dir() {
                args.extend(["--ro-bind".into(), tool.clone().into(), tool.into()]);
            }
        }
    }
    for place in places {
        args.extend(["--bind".into(), (*place).into(), (*place).into()]);
    }
    args.push("--".into());
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_build_sees_neither_network_nor_home() {
        let cancel = CancellationToken::new();
        let sandbox = Sandbox::find(&cancel).await;
        if matches!(sandbox, Sandbox::None(_)) {
            return; // the build test holds what is left then
        }
        let dir = tempfile::tempdir().unwrap();
        let script = "ls -A $HOME | wc -l; ls /sys/class/net; cat /proc/net/dev | wc -l; \
                      echo x > $0/made && touch /usr/x";
        let program =
            sandbox.wrap("sh", ["-c", script, dir.path().to_str().unwrap()], &[dir.path()]);
        let output = process::run(program, PROBE_LIMIT, &cancel).await.unwrap();
        assert!(!output.status.success(), "{}", output.stdout);
        assert!(output.stdout.contains("Read-only file system"), "{}", output.stdout);
        assert!(dir.path().join("made").exists());
        // Two lines of headings and the loopback.
        let lines: Vec<&str> = output.stdout.lines().collect();
        assert!(lines.contains(&"3"), "{lines:?}");
    }
}
