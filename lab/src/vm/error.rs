//! Why a VM is not there, or not any more.

use std::time::Duration;

use super::qmp::QmpError;
use crate::agent::AgentError;
use crate::host::process::ProcessError;

/// Failures of a VM. None of them is a verdict: the caller looks at the console first.
#[derive(Debug, thiserror::Error)]
pub enum VmError {
    /// The QEMU program is not there.
    #[error("{0}: no such program; `lab test --setup` installs QEMU")]
    QemuMissing(String),
    /// QEMU ended by itself. Also the way a guest goes that panics, reboots or powers off.
    #[error("{program} ended with {status}{}", tail(stderr))]
    QemuExited {
        /// `qemu`, or what started it.
        program: &'static str,
        /// Its status.
        status: std::process::ExitStatus,
        /// The end of its standard error.
        stderr: String,
    },
    /// Somebody stopped the QEMU process and did not let it go on.
    #[error("qemu was stopped by a signal and did not go on")]
    Stopped,
    /// QEMU made no socket within the limit.
    #[error("qemu made no socket {socket} within {} ms", limit.as_millis())]
    NoSocket {
        /// File name of the socket.
        socket: &'static str,
        /// The limit.
        limit: Duration,
    },
    /// A socket's path does not fit the system's bound.
    #[error("socket path of {} bytes, the bound is 107: {path}", path.len())]
    PathTooLong {
        /// The path.
        path: String,
    },
    /// The machine protocol failed.
    #[error(transparent)]
    Qmp(#[from] QmpError),
    /// The agent did not answer the hello.
    #[error("the agent did not answer within {} ms", limit.as_millis())]
    NoAgent {
        /// The limit.
        limit: Duration,
    },
    /// Neither console nor agent gave a sign of life.
    #[error("the guest was silent for {} ms", limit.as_millis())]
    Silent {
        /// The limit.
        limit: Duration,
    },
    /// The agent failed.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// QEMU gave the guest up: the accelerator cannot run it.
    #[error("qemu stopped the guest: internal error{}", tail(stderr))]
    InternalError {
        /// The end of QEMU's standard error.
        stderr: String,
    },
    /// A template's state could not be saved or loaded, a canary did not sing, or there is no
    /// room for a vmcore.
    #[error("{what}: {reason}")]
    State {
        /// `save`, `load`, `canary` or `vmcore`.
        what: &'static str,
        /// QEMU's reason.
        reason: String,
    },
    /// The caller gave up.
    #[error("cancelled")]
    Cancelled,
    /// The host failed.
    #[error("{what}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl VmError {
    pub(super) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> VmError {
        let what = what.into();
        move |source| VmError::Io { what, source }
    }
}

impl From<ProcessError> for VmError {
    fn from(error: ProcessError) -> VmError {
        match error {
            ProcessError::Missing { program } => VmError::QemuMissing(program),
            ProcessError::Spawn { program, source } => VmError::Io { what: program, source },
            ProcessError::Cancelled { .. } => VmError::Cancelled,
            ProcessError::Limit { .. } => {
                let text = error.to_string();
                VmError::Io { what: text, source: std::io::ErrorKind::TimedOut.into() }
            }
        }
    }
}

fn tail(stderr: &str) -> String {
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
    last.map(|line| format!(": {}", line.trim())).unwrap_or_default()
}
