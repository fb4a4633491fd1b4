//! A client process and its lines, each waited for with a limit.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use lab_proto::message::{Fault, FaultKind};

use super::run::fault;
use crate::report::tasks;
use crate::sys::process;

/// Longest line of a client, bytes.
const MAX_LINE: u64 = 4096;

/// Lines that wait for the agent at most; the client then waits for it.
const MAX_WAITING: usize = 1024;

/// A client that was started.
pub(super) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

/// What came within a limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line.
    Text(String),
    /// Nothing.
    Silent,
    /// The end of the output.
    Ended,
}

impl Client {
    /// Starts this binary in a client role.
    ///
    /// # Errors
    /// Agent when no process can be had.
    pub(super) fn start(args: &[&str]) -> Result<Client, Fault> {
        let mut command = process::own_role("client");
        command.args(args).current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped());
        let no_client = |e: &dyn std::fmt::Display| fault(FaultKind::Agent, format!("client: {e}"));
        let mut child = process::spawn(&mut command).map_err(|e| no_client(&e))?;
        let output = child.stdout.take().ok_or_else(|| no_client(&"no output"))?;
        let input = child.stdin.take();
        Ok(Client { child, input, lines: lines_of(output) })
    }

    /// Process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line, waited for at most `limit`.
    pub(super) fn line(&self, limit: Duration) -> Line {
        match self.lines.recv_timeout(limit) {
            Ok(line) => Line::Text(line),
            Err(RecvTimeoutError::Timeout) => Line::Silent,
            Err(RecvTimeoutError::Disconnected) => Line::Ended,
        }
    }

    /// Sends an empty line.
    pub(super) fn go(&mut self) {
        // A client that is gone shows at its next line.
        if let Some(input) = &mut self.input {
            let _ = input.write_all(b"\n");
        }
    }

    /// Ends the input: the sign to stop.
    pub(super) fn stop(&mut self) {
        self.input = None;
    }

    /// The fault of a call that did not return; the client stays, so that a diagnosis sees it.
    pub(super) fn hang(self, what: &str, limit: Duration) -> Fault {
        let tid = self.pid();
        let stack = tasks::stack(tid).join(" < ");
        let limit = limit.as_millis();
        self.leave();
        fault(FaultKind::Hang, format!("{what}: no return in {limit} ms, task {tid}: {stack}"))
    }

    /// Leaves a client that hangs as it is; it is reaped when it ends after all.
    pub(super) fn leave(mut self) {
        std::thread::spawn(move || self.child.wait());
    }

    /// Waits for the end of a client that has said all it has to say, kills it when that takes
    /// longer than `limit`, and leaves it alone when even that does not end it.
    pub(super) fn finish(mut self, limit: Duration) {
        self.stop();
        if process::wait_for(&mut self.child, limit).is_none() {
            let _ = self.child.kill();
            self.leave();
        }
    }
}

fn lines_of(output: impl Read + Send + 'static) -> Receiver<String> {
    let (send, receive) = mpsc::sync_channel(MAX_WAITING);
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        loop {
            let mut line = String::new();
            match output.by_ref().take(MAX_LINE).read_line(&mut line) {
                Ok(count) if count > 0 => {}
                _ => return,
            }
            if send.send(line.trim_end_matches('\n').to_owned()).is_err() {
                return;
            }
        }
    });
    receive
}

/// Unmounts in a client, since the call can block; the result is `ok`, an errno name or
/// `no return`.
pub(super) fn unmount(path: &str, flags: i32, limit: Duration) -> Result<String, Fault> {
    let client = Client::start(&["umount", path, &flags.to_string()])?;
    match client.line(limit) {
        Line::Text(result) => {
            client.finish(Duration::from_secs(1));
            Ok(result)
        }
        Line::Ended => Err(fault(FaultKind::Agent, "client: umount gave no result")),
        Line::Silent => {
            client.finish(Duration::ZERO);
            Ok("no return".to_owned())
        }
    }
}

/// Asks `ready` again and again until it says yes, at most `limit`.
pub(super) fn wait_until(limit: Duration, mut ready: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if ready() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_the_output() {
        let lines: Vec<String> = lines_of(&b"ok\n? mkdir d\nlast"[..]).iter().collect();
        assert_eq!(lines, ["ok", "? mkdir d", "last"]);
    }

    #[test]
    fn a_wait_ends_at_its_limit() {
        assert!(wait_until(Duration::ZERO, || true));
        assert!(!wait_until(Duration::from_millis(15), || false));
    }
}
