//! One running FUSE server: its process, its report, and bounded questions to it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use lab_proto::message::{Fault, FaultKind};
use lab_proto::server::{ServerAsk, ServerLine, ServerReport, ServerSpec, ServerStats};

use crate::sys::process::{self, End};

/// Limit of the start, guest time: slow guests need seconds for it.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Longest line of a server, bytes.
const MAX_LINE: u64 = 2 << 20;

/// A server that said it is ready.
pub(crate) struct Server {
    /// What it became.
    pub(crate) report: ServerReport,
    child: Mutex<Child>,
    channel: Mutex<Channel>,
}

struct Channel {
    input: ChildStdin,
    lines: Receiver<ServerLine>,
    /// Answers to questions that were given up; they come before any other.
    owed: u32,
}

impl Server {
    /// Starts the server role with `spec` and waits until it is ready.
    ///
    /// # Errors
    /// Transport when the server says that this is the reason, else Server.
    pub(crate) fn start(spec: &ServerSpec) -> Result<Server, Fault> {
        let mut command = process::own_role("serve");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = process::spawn(&mut command).map_err(|e| failed(&e.to_string()))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.ok_or_else(|| failed("no pipes"))?;
        let mut channel = Channel { input, lines: lines_of(output), owed: 0 };
        match channel.first(spec) {
            Ok(report) => {
                Ok(Server { report, child: Mutex::new(child), channel: Mutex::new(channel) })
            }
            Err(mut fault) => {
                let end = process::wait_for(&mut child, Duration::from_secs(1));
                let _ = child.kill();
                if let Some(End::Signal(signal)) = end {
                    fault.text.push_str(&format!(" (signal {signal})"));
                }
                Err(fault)
            }
        }
    }

    /// Telemetry, or why there is none.
    ///
    /// # Errors
    /// Server when it does not answer within `limit`.
    pub(crate) fn stats(&self, limit: Duration) -> Result<ServerStats, Fault> {
        match self.ask(&ServerAsk::Stats, limit)? {
            ServerLine::Stats(stats) => Ok(stats),
            _ => Err(failed("another answer than stats")),
        }
    }

    /// Asks one question.
    ///
    /// # Errors
    /// Server when it does not answer within `limit`.
    pub(crate) fn ask(&self, ask: &ServerAsk, limit: Duration) -> Result<ServerLine, Fault> {
        let end = Instant::now() + limit;
        self.channel(end)?.ask(ask, end)
    }

    fn channel(&self, end: Instant) -> Result<MutexGuard<'_, Channel>, Fault> {
        loop {
            match self.channel.try_lock() {
                Ok(channel) => return Ok(channel),
                Err(TryLockError::Poisoned(e)) => return Ok(e.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() >= end => {
                    return Err(failed("busy with another question"));
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// Sends SIGKILL.
    pub(crate) fn kill(&self) -> io::Result<()> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner).kill()
    }

    /// How the process ended, none when it still runs after `limit`.
    pub(crate) fn end(&self, limit: Duration) -> Option<End> {
        process::wait_for(&mut self.child.lock().unwrap_or_else(PoisonError::into_inner), limit)
    }
}

impl Channel {
    fn first(&mut self, spec: &ServerSpec) -> Result<ServerReport, Fault> {
        self.say(spec)?;
        match self.line(Instant::now() + START_LIMIT)? {
            ServerLine::Ready(report) => Ok(report),
            ServerLine::Failed { transport: true, text } => {
                Err(Fault { kind: FaultKind::Transport, text })
            }
            ServerLine::Failed { text, .. } => Err(failed(&text)),
            _ => Err(failed("the first line is neither ready nor failed")),
        }
    }

    fn ask(&mut self, ask: &ServerAsk, end: Instant) -> Result<ServerLine, Fault> {
        while self.owed > 0 {
            self.line(end)?;
            self.owed -= 1;
        }
        self.say(ask)?;
        self.line(end).inspect_err(|_| self.owed += 1)
    }

    fn say<T: serde::Serialize>(&mut self, value: &T) -> Result<(), Fault> {
        let mut line = serde_json::to_vec(value).map_err(|e| failed(&e.to_string()))?;
        line.push(b'\n');
        self.input.write_all(&line).map_err(|e| failed(&format!("does not listen: {e}")))
    }

    fn line(&mut self, end: Instant) -> Result<ServerLine, Fault> {
        self.lines.recv_timeout(end.saturating_duration_since(Instant::now())).map_err(
            |e| match e {
                mpsc::RecvTimeoutError::Timeout => failed("no answer in time"),
                mpsc::RecvTimeoutError::Disconnected => failed("ended without an answer"),
            },
        )
    }
}

/// Lines of the server as they come. One that is no [`ServerLine`] ends them.
fn lines_of(output: impl Read + Send + 'static) -> Receiver<ServerLine> {
    // A server only speaks when it is asked, so few lines wait here.
    let (send, receive) = mpsc::sync_channel(16);
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        loop {
            let mut line = Vec::new();
            match output.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
                Ok(count) if count > 0 => {}
                _ => return,
            }
            let Ok(line) = serde_json::from_slice(&line) else { return };
            if send.send(line).is_err() {
                return;
            }
        }
    });
    receive
}

fn failed(text: &str) -> Fault {
    Fault { kind: FaultKind::Server, text: format!("server: {text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_where_the_server_talks_nonsense() {
        let text = b"\"done\"\n\"stopped\"\nnonsense\n\"done\"\n";
        let lines: Vec<ServerLine> = lines_of(&text[..]).iter().collect();
        assert_eq!(lines, [ServerLine::Done, ServerLine::Stopped]);
    }
}
