//! A session with the agent: handshake, requests in flight, and its end.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lab_proto::frame::{Decoder, Frame, FrameError, Kind, encode_json};
use lab_proto::message::{Command, Fault, Hello, HelloReply, Reply, Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::artifact::{ArtifactError, Bounds, Receiver};

/// Frames that wait to be written.
const WRITE_QUEUE: usize = 32;

/// Why a request has no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// The connection ended: QEMU, the guest or the agent is gone.
    #[error("the agent is lost: {0}")]
    Lost(String),
    /// What came is not the protocol.
    #[error("the agent sent garbage: {0}")]
    Protocol(#[from] FrameError),
    /// No answer within the limit.
    #[error("no answer to {what} after {} ms", limit.as_millis())]
    Timeout {
        /// The request.
        what: String,
        /// The limit.
        limit: Duration,
    },
    /// The agent could not do it.
    #[error("{}", .0.text)]
    Fault(Fault),
    /// An artifact broke a rule.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// The caller gave up.
    #[error("cancelled")]
    Cancelled,
}

/// The two streams to a guest.
#[derive(Debug)]
pub struct Ports {
    /// Control frames, both ways.
    pub control: UnixStream,
    /// Bulk frames, from the guest.
    pub bulk: UnixStream,
}

/// A session that is past its handshake. Dropping it closes the ports.
#[derive(Debug)]
pub struct Agent {
    session: u64,
    shared: Arc<Shared>,
    frames: mpsc::Sender<Vec<u8>>,
    next_id: AtomicU32,
    artifacts: Receiver,
    tasks: [JoinHandle<()>; 2],
}

#[derive(Debug)]
struct Shared {
    pending: Mutex<HashMap<u32, oneshot::Sender<Response>>>,
    issued: AtomicU32,
    end: watch::Sender<Option<AgentError>>,
}

impl Shared {
    fn pending(&self) -> MutexGuard<'_, HashMap<u32, oneshot::Sender<Response>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Agent {
    /// Says hello under `session` and waits at most `limit` for the answer; what was queued
    /// on the ports under another session is dropped. Artifacts go to `dir`, which is made.
    ///
    /// Errors: [`AgentError::Lost`], [`AgentError::Protocol`], [`AgentError::Timeout`].
    pub async fn connect(
        ports: Ports,
        session: u64,
        hello: &Hello,
        dir: &Path,
        limit: Duration,
    ) -> Result<(Agent, HelloReply), AgentError> {
        let lost = |e: std::io::Error| AgentError::Lost(e.to_string());
        let (mut read, mut write) = ports.control.into_split();
        let mut decoder = Decoder::for_host(session);
        let shake = async {
            let frame = encode_json(Kind::Hello, session, hello)?;
            write.write_all(&frame).await.map_err(lost)?;
            next_frame(&mut read, &mut decoder).await
        };
        let answer = tokio::time::timeout(limit, shake).await;
        let frame =
            answer.map_err(|_| AgentError::Timeout { what: "the hello".into(), limit })??;
        let reply: HelloReply = frame.json()?;
        let artifacts = Receiver::start(ports.bulk, session, dir, Bounds::default())?;
        Ok((Agent::run(session, read, write, decoder, artifacts), reply))
    }

    fn run(
        session: u64,
        read: OwnedReadHalf,
        write: OwnedWriteHalf,
        decoder: Decoder,
        artifacts: Receiver,
    ) -> Agent {
        let (end, _) = watch::channel(None);
        let issued = AtomicU32::new(0);
        let shared = Arc::new(Shared { pending: Mutex::default(), issued, end });
        let (frames, queue) = mpsc::channel(WRITE_QUEUE);
        let tasks = [
            tokio::spawn(read_responses(read, decoder, Arc::clone(&shared))),
            tokio::spawn(write_frames(write, queue, Arc::clone(&shared))),
        ];
        Agent { session, shared, frames, next_id: AtomicU32::new(1), artifacts, tasks }
    }

    /// The session, which is the nonce of the hello.
    pub fn session(&self) -> u64 {
        self.session
    }

    /// Sends a request and waits at most `limit` for its answer. Requests may overlap; an
    /// answer that comes after its limit is dropped.
    ///
    /// Errors: all of [`AgentError`] but artifacts and cancellation.
    pub async fn request(&self, command: Command, limit: Duration) -> Result<Reply, AgentError> {
        let what = name_of(&command);
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (tell, answer) = oneshot::channel();
        self.shared.pending().insert(id, tell);
        self.shared.issued.fetch_max(id, Ordering::Relaxed);
        let frame = encode_json(Kind::Request, self.session, &Request { id, command })?;
        let done = tokio::time::timeout(limit, self.exchange(frame, answer)).await;
        self.shared.pending().remove(&id);
        let response = done.map_err(|_| AgentError::Timeout { what, limit })??;
        response.result.map_err(AgentError::Fault)
    }

    async fn exchange(
        &self,
        frame: Vec<u8>,
        answer: oneshot::Receiver<Response>,
    ) -> Result<Response, AgentError> {
        // A closed queue means that the end is known, or is about to be.
        let _ = self.frames.send(frame).await;
        tokio::select! {
            biased;
            Ok(response) = answer => Ok(response),
            error = self.ended() => Err(error),
            // A guest that breaks the rules of one port is not waited for on the other.
            error = self.artifacts.broken() => Err(AgentError::Artifact(error)),
        }
    }

    /// Waits until the session is over and tells why.
    pub async fn ended(&self) -> AgentError {
        let mut end = self.shared.end.subscribe();
        let reason = end.wait_for(Option::is_some).await.ok().and_then(|e| e.clone());
        reason.unwrap_or_else(|| AgentError::Lost("reader gone".into()))
    }

    /// Why the session is over, if it is.
    pub fn end(&self) -> Option<AgentError> {
        self.shared.end.borrow().clone()
    }

    /// Waits at most `limit` for the whole artifact `name` and gives its file.
    ///
    /// Errors: [`AgentError::Artifact`] when any artifact broke a rule,
    /// [`AgentError::Timeout`].
    pub async fn artifact(&self, name: &str, limit: Duration) -> Result<PathBuf, AgentError> {
        match tokio::time::timeout(limit, self.artifacts.complete(name)).await {
            Ok(path) => Ok(path?),
            Err(_) => Err(AgentError::Timeout { what: format!("artifact {name}"), limit }),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Short name of a command for messages.
fn name_of(command: &Command) -> String {
    match command {
        Command::Topology => "topology".into(),
        Command::Facts => "facts".into(),
        Command::Step { step, .. } => format!("step {}", step.kind()),
        Command::Stats => "stats".into(),
        Command::Diagnose => "diagnose".into(),
        Command::Mark { .. } => "mark".into(),
        Command::PowerOff => "power-off".into(),
    }
}

async fn next_frame(read: &mut OwnedReadHalf, decoder: &mut Decoder) -> Result<Frame, AgentError> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        if let Some(frame) = decoder.next_frame()? {
            return Ok(frame);
        }
        match read.read(&mut buffer).await {
            Ok(0) => return Err(AgentError::Lost("end of stream".into())),
            Ok(count) => decoder.push(&buffer[..count]),
            Err(e) => return Err(AgentError::Lost(e.to_string())),
        }
    }
}

async fn read_responses(mut read: OwnedReadHalf, mut decoder: Decoder, shared: Arc<Shared>) {
    let reason = loop {
        let delivered = match next_frame(&mut read, &mut decoder).await {
            Ok(frame) => deliver(&frame, &shared),
            Err(e) => Err(e),
        };
        if let Err(reason) = delivered {
            break reason;
        }
    };
    shared.end.send_replace(Some(reason));
}

fn deliver(frame: &Frame, shared: &Shared) -> Result<(), AgentError> {
    let odd = |text: String| AgentError::Protocol(FrameError::Body(text));
    if frame.kind != Kind::Response {
        return Err(odd(format!("{:?} frame where a response belongs", frame.kind)));
    }
    let response: Response = frame.json()?;
    if response.id == 0 || response.id > shared.issued.load(Ordering::Relaxed) {
        return Err(odd(format!("answer to request {}, which was never sent", response.id)));
    }
    // Nobody waits for a late answer: its sender is gone from the map.
    if let Some(waiter) = shared.pending().remove(&response.id) {
        let _ = waiter.send(response);
    }
    Ok(())
}

/// Writes whole frames, so that a request that gives up never leaves half of one.
async fn write_frames(
    mut write: OwnedWriteHalf,
    mut queue: mpsc::Receiver<Vec<u8>>,
    shared: Arc<Shared>,
) {
    while let Some(frame) = queue.recv().await {
        if let Err(e) = write.write_all(&frame).await {
            let lost = AgentError::Lost(e.to_string());
            // The reader's reason, if it has one, says more.
            shared.end.send_if_modified(|end| end.is_none() && end.replace(lost).is_none());
            break;
        }
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
