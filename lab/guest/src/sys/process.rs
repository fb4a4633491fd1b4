//! fork, wait, kill and child processes with a bounded wait.
#![allow(unsafe_code)] // fork, wait and kill are not in std

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Which side of a fork this is.
pub(crate) enum Fork {
    /// The new process.
    Child,
    /// The old process, with the id of the new one.
    Parent(i32),
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// By exit, with its code.
    Exit(i32),
    /// By a signal.
    Signal(i32),
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            End::Exit(code) => write!(f, "exit {code}"),
            End::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

impl From<ExitStatus> for End {
    fn from(status: ExitStatus) -> End {
        match status.signal() {
            Some(signal) => End::Signal(signal),
            None => End::Exit(status.code().unwrap_or(-1)),
        }
    }
}

/// Forks. Only for a process with one thread.
pub(crate) fn fork() -> io::Result<Fork> {
    // SAFETY: the caller has one thread, so no lock of another thread is left locked in the
    // child.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(pid)),
    }
}

/// Waits for any child to end.
pub(crate) fn wait_any() -> io::Result<(i32, End)> {
    loop {
        let mut status = 0;
        // SAFETY: status is a valid place for the result.
        let pid = unsafe { libc::waitpid(-1, &mut status, 0) };
        if pid > 0 {
            return Ok((pid, ExitStatus::from_raw(status).into()));
        }
        let e = io::Error::last_os_error();
        if e.kind() != io::ErrorKind::Interrupted {
            return Err(e);
        }
    }
}

/// Sends a signal to this process.
pub(crate) fn signal_self(signal: i32) -> io::Result<()> {
    // SAFETY: takes no pointers.
    let result = unsafe { libc::kill(libc::getpid(), signal) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sends a signal to another process.
pub(crate) fn signal(pid: u32, signal: i32) -> io::Result<()> {
    // 0 and what is negative as i32 would name groups.
    let Ok(pid @ 1..) = i32::try_from(pid) else { return Err(io::ErrorKind::InvalidInput.into()) };
    // SAFETY: takes no pointers.
    let result = unsafe { libc::kill(pid, signal) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Starts a program of the guest: the one place of this package that does.
#[allow(clippy::disallowed_methods)] // the lint guards host programs; this runs in the guest
pub(crate) fn spawn(command: &mut Command) -> io::Result<Child> {
    command.spawn()
}

/// Names the calling process, so that a list of tasks tells the roles apart. The kernel keeps
/// 15 bytes.
pub(crate) fn name(name: &str) {
    let _ = std::fs::write("/proc/self/comm", name);
}

/// This binary in another role.
pub(crate) fn own_role(role: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg(role);
    command
}

/// Waits until `child` ends, at most `limit`; none when it still runs.
pub(crate) fn wait_for(child: &mut Child, limit: Duration) -> Option<End> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.into()),
            Ok(None) if start.elapsed() >= limit => return None,
            Ok(None) => std::thread::sleep(pause),
            Err(_) => return None,
        }
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}
