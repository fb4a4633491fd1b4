//! The machine protocol: commands with the types of `qapi`, over a bounded reader of our own.
//!
//! QEMU is trusted no more than needed: a line over the bound or not JSON ends the connection
//! with that reason, an event outside the schema is kept as it came, a reply that nobody waits
//! for any more is dropped, and every command has a limit.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use qapi::{Command, Execute};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{broadcast, oneshot, watch};
use tokio::task::JoinHandle;

use super::line::{LineError, Lines};

/// Longest line taken from QEMU, bytes.
pub const MAX_LINE: usize = 512 << 10;

/// Events that a slow subscriber may be behind before it loses the oldest.
const EVENT_QUEUE: usize = 256;

/// Something QEMU told unasked.
#[derive(Debug, Clone, PartialEq)]
pub enum QmpEvent {
    /// The VM does not run any more: paused, panicked, or an internal error.
    Stop,
    /// It runs.
    Resume,
    /// It is going down.
    Shutdown {
        /// Whether the guest asked for it.
        guest: bool,
        /// QEMU's word: `guest-shutdown`, `guest-reset`, `guest-panic`, `host-qmp-quit` …
        reason: String,
    },
    /// The guest told of a panic.
    GuestPanicked,
    /// The guest was reset.
    Reset,
    /// Any other, also one that the schema does not know.
    Other {
        /// Its name.
        name: String,
        /// The event as it came.
        raw: Value,
    },
}

impl QmpEvent {
    fn parse(name: &str, raw: Value) -> QmpEvent {
        let data = |key: &str| raw.get("data").and_then(|data| data.get(key));
        match name {
            "STOP" => QmpEvent::Stop,
            "RESUME" => QmpEvent::Resume,
            "SHUTDOWN" => QmpEvent::Shutdown {
                guest: data("guest").and_then(Value::as_bool).unwrap_or(false),
                reason: data("reason").and_then(Value::as_str).unwrap_or("unknown").into(),
            },
            "GUEST_PANICKED" => QmpEvent::GuestPanicked,
            "RESET" => QmpEvent::Reset,
            _ => QmpEvent::Other { name: name.into(), raw },
        }
    }
}

/// Why a command has no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QmpError {
    /// Nothing, or something else, in place of the greeting.
    #[error("no greeting from qemu: {0}")]
    NoGreeting(String),
    /// The connection is over.
    #[error("qemu's machine protocol ended: {0}")]
    Closed(String),
    /// No reply within the limit.
    #[error("no reply to {command} after {} ms", limit.as_millis())]
    Timeout {
        /// Name of the command.
        command: &'static str,
        /// The limit.
        limit: Duration,
    },
    /// QEMU refused.
    #[error("qemu refused {command}: {text}")]
    Refused {
        /// Name of the command.
        command: &'static str,
        /// QEMU's words.
        text: String,
    },
    /// The reply is not of the type that the command has.
    #[error("unexpected reply to {command}: {text}")]
    Reply {
        /// Name of the command.
        command: &'static str,
        /// What differs.
        text: String,
    },
}

/// A connection that is past the greeting and the negotiation.
#[derive(Debug)]
pub struct Qmp {
    writer: tokio::sync::Mutex<OwnedWriteHalf>,
    shared: Arc<Shared>,
    closed: watch::Receiver<Option<String>>,
    next_id: AtomicU64,
    version: String,
    reader: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    pending: Mutex<HashMap<u64, oneshot::Sender<Value>>>,
    events: broadcast::Sender<QmpEvent>,
}

impl Shared {
    fn pending(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Value>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Qmp {
    /// Takes a fresh connection through greeting and negotiation, `limit` for each of them.
    ///
    /// Errors: [`QmpError::NoGreeting`], and those of [`Qmp::execute`].
    pub async fn open(stream: UnixStream, limit: Duration) -> Result<Qmp, QmpError> {
        let (read, write) = stream.into_split();
        let mut lines = Lines::new(read, MAX_LINE);
        let version = greeting(&mut lines, limit).await?;
        let (events, _) = broadcast::channel(EVENT_QUEUE);
        let shared = Arc::new(Shared { pending: Mutex::default(), events });
        let (tell, closed) = watch::channel(None);
        let reader = tokio::spawn(follow(lines, Arc::clone(&shared), tell));
        let writer = tokio::sync::Mutex::new(write);
        let qmp = Qmp { writer, shared, closed, next_id: AtomicU64::new(1), version, reader };
        qmp.execute(qapi::qmp::qmp_capabilities { enable: None }, limit).await?;
        Ok(qmp)
    }

    /// QEMU's version as it greeted, `major.minor.micro`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Events from now on. A receiver that falls far behind is told so by the channel.
    pub fn events(&self) -> broadcast::Receiver<QmpEvent> {
        self.shared.events.subscribe()
    }

    /// Waits until the connection is over and tells why.
    pub async fn closed(&self) -> String {
        let mut closed = self.closed.clone();
        let reason = closed.wait_for(Option::is_some).await.ok().and_then(|r| r.clone());
        reason.unwrap_or_else(|| "reader gone".into())
    }

    /// Sends a command and waits for its reply, at most `limit`. Commands may overlap.
    ///
    /// Errors: [`QmpError`]; after a timeout the connection stays usable.
    pub async fn execute<C: Command>(
        &self,
        command: C,
        limit: Duration,
    ) -> Result<C::Ok, QmpError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (tell, reply) = oneshot::channel();
        self.shared.pending().insert(id, tell);
        let answer = tokio::time::timeout(limit, self.exchange(command, id, reply)).await;
        self.shared.pending().remove(&id);
        let value = answer.map_err(|_| QmpError::Timeout { command: C::NAME, limit })??;
        if let Some(error) = value.get("error") {
            let text = error.get("desc").and_then(Value::as_str).unwrap_or("no reason given");
            return Err(QmpError::Refused { command: C::NAME, text: text.into() });
        }
        let result = value.get("return").cloned().unwrap_or(Value::Null);
        serde_json::from_value(result)
            .map_err(|e| QmpError::Reply { command: C::NAME, text: e.to_string() })
    }

    async fn exchange<C: Command>(
        &self,
        command: C,
        id: u64,
        reply: oneshot::Receiver<Value>,
    ) -> Result<Value, QmpError> {
        let mut line = serde_json::to_vec(&Execute::new(command, Some(id)))
            .map_err(|e| QmpError::Reply { command: C::NAME, text: e.to_string() })?;
        line.push(b'\n');
        // A write that is cut off by the limit could leave half a line; commands are far
        // smaller than a socket's buffer, so a write that waits means that QEMU is stuck.
        let written = self.writer.lock().await.write_all(&line).await;
        written.map_err(|e| QmpError::Closed(e.to_string()))?;
        tokio::select! {
            biased;
            value = reply => value.map_err(|_| QmpError::Closed("reader gone".into())),
            reason = self.closed() => Err(QmpError::Closed(reason)),
        }
    }
}

impl Drop for Qmp {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// The version in the greeting.
async fn greeting(lines: &mut Lines<OwnedReadHalf>, limit: Duration) -> Result<String, QmpError> {
    let line = tokio::time::timeout(limit, lines.next())
        .await
        .map_err(|_| QmpError::NoGreeting(format!("silent for {} ms", limit.as_millis())))?
        .map_err(|e| QmpError::NoGreeting(e.to_string()))?;
    let greeting: qapi::qmp::QapiCapabilities = serde_json::from_slice(&line)
        .map_err(|e| QmpError::NoGreeting(format!("not a greeting: {e}")))?;
    let version = greeting.QMP.version.qemu;
    Ok(format!("{}.{}.{}", version.major, version.minor, version.micro))
}

async fn follow(
    mut lines: Lines<OwnedReadHalf>,
    shared: Arc<Shared>,
    closed: watch::Sender<Option<String>>,
) {
    let reason = loop {
        match lines.next().await {
            Ok(line) => {
                if let Err(reason) = deliver(&line, &shared) {
                    break reason;
                }
            }
            Err(LineError::End) => break "end of stream".into(),
            Err(e) => break e.to_string(),
        }
    };
    let _ = closed.send(Some(reason));
}

/// Gives one line to whom it concerns.
fn deliver(line: &[u8], shared: &Shared) -> Result<(), String> {
    let value: Value = serde_json::from_slice(line).map_err(|e| format!("not JSON: {e}"))?;
    if let Some(name) = value.get("event").and_then(Value::as_str) {
        let event = QmpEvent::parse(name, value.clone());
        let _ = shared.events.send(event);
    } else if let Some(id) = value.get("id").and_then(Value::as_u64) {
        // Nobody waits for a late reply: its sender is gone from the map.
        if let Some(waiter) = shared.pending().remove(&id) {
            let _ = waiter.send(value);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt, BufReader};

    use super::*;

    const SHORT: Duration = Duration::from_millis(100);
    const LONG: Duration = Duration::from_secs(10);
    const GREETING: &str = r#"{"QMP":{"version":{"qemu":{"micro":2,"minor":0,"major":10},"package":""},"capabilities":["oob"]}}"#;

    /// A QEMU that greets, agrees, and then answers each command by `answer(name, id)`.
    async fn qemu(answer: fn(&str, u64) -> String) -> Qmp {
        let (ours, theirs) = UnixStream::pair().unwrap();
        tokio::spawn(async move {
            let (read, mut write) = theirs.into_split();
            let mut lines = BufReader::new(read).lines();
            write.write_all(format!("{GREETING}\r\n").as_bytes()).await.unwrap();
            while let Ok(Some(line)) = lines.next_line().await {
                let command: Value = serde_json::from_str(&line).unwrap();
                let id = command["id"].as_u64().unwrap();
                let text = match command["execute"].as_str().unwrap() {
                    "qmp_capabilities" => format!("{{\"return\":{{}},\"id\":{id}}}\r\n"),
                    name => answer(name, id),
                };
                if write.write_all(text.as_bytes()).await.is_err() {
                    break;
                }
            }
        });
        Qmp::open(ours, LONG).await.unwrap()
    }

    fn status(id: u64) -> String {
        format!("{{\"return\":{{\"running\":true,\"status\":\"running\"}},\"id\":{id}}}\n")
    }

    #[tokio::test]
    async fn unknown_events_are_kept_and_known_ones_typed() {
        let qmp = qemu(|_, id| {
            let events = "{\"event\":\"FROM_THE_FUTURE\",\"data\":{\"a\":[1]}}\n\
                {\"event\":\"SHUTDOWN\",\"data\":{\"guest\":true,\"reason\":\"guest-reset\"}}\n";
            events.to_string() + &status(id)
        })
        .await;
        let mut events = qmp.events();
        let status = qmp.execute(qapi::qmp::query_status {}, LONG).await.unwrap();
        assert!(status.running);
        let first = events.recv().await.unwrap();
        assert!(matches!(first, QmpEvent::Other { ref name, .. } if name == "FROM_THE_FUTURE"));
        let reason = "guest-reset".to_string();
        assert_eq!(events.recv().await.unwrap(), QmpEvent::Shutdown { guest: true, reason });
        assert_eq!(qmp.version(), "10.0.2");
    }

    #[tokio::test]
    async fn a_late_reply_is_dropped_and_the_next_command_served() {
        let qmp = qemu(|name, id| match name {
            "stop" => String::new(),
            _ => format!("{{\"return\":{{}},\"id\":{}}}\n", id - 1) + &status(id),
        })
        .await;
        let error = qmp.execute(qapi::qmp::stop {}, SHORT).await.unwrap_err();
        assert_eq!(error, QmpError::Timeout { command: "stop", limit: SHORT });
        assert!(qmp.execute(qapi::qmp::query_status {}, LONG).await.unwrap().running);
    }

    #[tokio::test]
    async fn refusals_and_wrong_types_are_told_apart() {
        let qmp = qemu(|name, id| match name {
            "stop" => format!(
                "{{\"error\":{{\"class\":\"GenericError\",\"desc\":\"no\"}},\"id\":{id}}}\n"
            ),
            _ => format!("{{\"return\":[],\"id\":{id}}}\n"),
        })
        .await;
        let error = qmp.execute(qapi::qmp::stop {}, LONG).await.unwrap_err();
        assert!(matches!(error, QmpError::Refused { ref text, .. } if text == "no"), "{error}");
        let error = qmp.execute(qapi::qmp::query_status {}, LONG).await.unwrap_err();
        assert!(matches!(error, QmpError::Reply { .. }), "{error}");
    }

    #[tokio::test]
    async fn an_endless_line_ends_the_connection() {
        let qmp = qemu(|_, _| "x".repeat(MAX_LINE + 1)).await;
        let error = qmp.execute(qapi::qmp::query_status {}, LONG).await.unwrap_err();
        assert!(matches!(error, QmpError::Closed(_)), "{error}");
    }

    #[tokio::test]
    async fn silence_is_no_greeting() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let error = Qmp::open(ours, SHORT).await.unwrap_err();
        assert!(matches!(error, QmpError::NoGreeting(_)), "{error}");
    }
}
