//! A running VM: started, supervised, talked to.
//!
//! Whatever is waited for, the wait ends at once when QEMU ends, when QEMU gives the guest up,
//! and when the caller cancels. Dropping a [`Machine`] kills QEMU.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lab_proto::message::{Command, Hello, HelloReply, Reply};
use tokio::net::UnixStream;
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::argv::{self, argv};
use super::console::Console;
use super::error::VmError;
use super::limits::Limits;
use super::qmp::{Qmp, QmpError, QmpEvent};
use super::spec::VmSpec;
use super::vng;
use crate::agent::{Agent, AgentError, Ports};
use crate::host::process::{self, Process, Program};

/// Pause between attempts to connect to a socket.
const RETRY: Duration = Duration::from_millis(2);

/// How long after a broken connection QEMU's end may be seen.
const SETTLE: Duration = Duration::from_millis(200);

/// How often, and how many times in a row, QEMU must be seen stopped to be given up.
const STOPPED_POLL: Duration = Duration::from_millis(500);
const STOPPED_LOOKS: u32 = 6;

/// Bytes of QEMU's standard error in messages.
const STDERR_TAIL: usize = 4 << 10;

/// File name of the console's log in the record's directory.
pub const CONSOLE_LOG: &str = "console.log";

/// Directory of artifacts in the record's directory.
pub const ARTIFACTS: &str = "artifacts";

/// A VM that was started.
#[derive(Debug)]
pub struct Machine {
    pub(super) process: Process,
    /// What that is, for messages.
    program: &'static str,
    pub(super) qmp: Arc<Qmp>,
    pub(super) limits: Limits,
    pub(super) console: Arc<Console>,
    pub(super) agent: Option<Arc<Agent>>,
    internal_error: watch::Receiver<bool>,
    watcher: JoinHandle<()>,
    ports: Option<Ports>,
    artifacts: std::path::PathBuf,
    started: Instant,
    ready: Option<Duration>,
}

impl Machine {
    /// Starts QEMU and connects everything; the guest runs, unless it waits for a state.
    ///
    /// `record` gets [`CONSOLE_LOG`] and [`ARTIFACTS`]; both it and [`VmSpec::dir`] are made.
    /// Errors: [`VmError`], with QEMU's own words when it ended.
    pub async fn start(
        spec: &VmSpec,
        record: &Path,
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> Result<Machine, VmError> {
        if let Some(path) = argv::too_long(&spec.dir) {
            return Err(VmError::PathTooLong { path });
        }
        for dir in [record, &spec.dir] {
            std::fs::create_dir_all(dir).map_err(VmError::io(dir.display().to_string()))?;
        }
        let started = Instant::now();
        let program = match &spec.vng {
            None => Program::new(&spec.qemu, argv(spec)),
            Some(vng) => {
                let is_root = rustix::process::geteuid().is_root();
                vng::program(vng, spec, &vng::Guest::Agent, is_root)
            }
        };
        let process = process::spawn(program).await?;
        let by = if spec.vng.is_some() { "virtme-ng" } else { "qemu" };
        let connect = connect(spec, record, limits);
        let (qmp, console, ports) = watch_start((&process, by), cancel, connect).await?;
        let qmp = Arc::new(qmp);
        let (tell, internal_error) = watch::channel(false);
        let watcher =
            tokio::spawn(watch_stops(Arc::clone(&qmp), qmp.events(), limits.command, tell));
        let machine = Machine {
            process,
            program: by,
            qmp,
            limits: *limits,
            console: Arc::new(console),
            agent: None,
            internal_error,
            watcher,
            ports: Some(ports),
            artifacts: record.join(ARTIFACTS),
            started,
            ready: None,
        };
        if !spec.incoming {
            machine.command(qapi::qmp::cont {}, cancel).await?;
        }
        Ok(machine)
    }

    /// Shakes hands with the agent under a fresh nonce, with the wall time and a fresh seed.
    ///
    /// Errors: [`VmError::NoAgent`] after `limit`, [`VmError::Silent`] when even the console is, [`VmError::Agent`] for garbage, and what
    /// [`Machine::guard`] finds.
    pub async fn agent_hello(
        &mut self,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> Result<HelloReply, VmError> {
        let lost = || AgentError::Lost("the ports are taken".into());
        let ports = self.ports.take().ok_or_else(lost)?;
        let (session, hello) = fresh_hello()?;
        let artifacts = self.artifacts.clone();
        let shake = Agent::connect(ports, session, &hello, &artifacts, limit);
        let silent = self.console.quiet(self.limits.silence, limit * 2);
        let shaken = async {
            tokio::select! {
                biased;
                shaken = shake => Ok(shaken),
                _ = silent => Err(VmError::Silent { limit: self.limits.silence }),
            }
        };
        let (agent, reply) = match self.guard(cancel, shaken).await?? {
            Ok(shaken) => shaken,
            Err(AgentError::Timeout { limit, .. }) => return Err(VmError::NoAgent { limit }),
            Err(e) => return Err(self.cause(e.into()).await),
        };
        self.agent = Some(Arc::new(agent));
        self.ready = Some(self.started.elapsed());
        Ok(reply)
    }

    /// Sends a request to the agent; ends early when the VM does.
    ///
    /// Errors: [`VmError::Agent`], and what [`Machine::guard`] finds.
    pub async fn request(
        &self,
        command: Command,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> Result<Reply, VmError> {
        let agent = self.agent()?;
        match self.guard(cancel, agent.request(command, limit)).await? {
            Ok(reply) => Ok(reply),
            Err(e) => Err(self.cause(e.into()).await),
        }
    }

    /// Sends a command to QEMU within the limit for commands; ends early when QEMU does.
    ///
    /// Errors: [`VmError::Qmp`], and what [`Machine::guard`] finds.
    pub async fn command<C: qapi::Command>(
        &self,
        command: C,
        cancel: &CancellationToken,
    ) -> Result<C::Ok, VmError> {
        match self.guard(cancel, self.qmp.execute(command, self.limits.command)).await? {
            Ok(reply) => Ok(reply),
            Err(e) => Err(self.cause(e.into()).await),
        }
    }

    /// Awaits `future`, unless QEMU ends, gives the guest up, or `cancel` fires first.
    ///
    /// Errors: [`VmError::QemuExited`], [`VmError::InternalError`], [`VmError::Cancelled`].
    pub async fn guard<T>(
        &self,
        cancel: &CancellationToken,
        future: impl Future<Output = T>,
    ) -> Result<T, VmError> {
        tokio::select! {
            biased;
            result = future => Ok(result),
            gone = self.gone() => Err(gone),
            () = cancel.cancelled() => Err(VmError::Cancelled),
        }
    }

    /// The end of QEMU where a broken connection is its first echo, else the error itself.
    async fn cause(&self, error: VmError) -> VmError {
        let broken = matches!(
            error,
            VmError::Agent(AgentError::Lost(_)) | VmError::Qmp(QmpError::Closed(_))
        );
        if broken && let Ok(status) = tokio::time::timeout(SETTLE, self.process.wait()).await {
            return self.exited(status).await;
        }
        error
    }

    /// Waits until QEMU ended or gave the guest up, and tells which.
    pub async fn gone(&self) -> VmError {
        tokio::select! {
            status = self.process.wait() => self.exited(status).await,
            () = self.gave_up() => VmError::InternalError { stderr: self.stderr_tail() },
            () = stopped(self.pid()) => VmError::Stopped,
        }
    }

    /// Returns when QEMU says that it had to stop the guest; never when it did not.
    async fn gave_up(&self) {
        let mut error = self.internal_error.clone();
        if error.wait_for(|error| *error).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    async fn exited(&self, status: std::process::ExitStatus) -> VmError {
        self.process.drained().await;
        VmError::QemuExited { program: self.program, status, stderr: self.stderr_tail() }
    }

    /// The end of QEMU's standard error so far.
    pub fn stderr_tail(&self) -> String {
        let text = self.process.stderr();
        let from = text.len().saturating_sub(STDERR_TAIL);
        let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text[from..].to_string()
    }

    /// The agent. Errors: [`AgentError::Lost`] before the handshake.
    pub fn agent(&self) -> Result<&Arc<Agent>, AgentError> {
        self.agent.as_ref().ok_or_else(|| AgentError::Lost("no handshake yet".into()))
    }

    /// The console, also beyond the end of the machine.
    pub fn console(&self) -> &Arc<Console> {
        &self.console
    }

    /// The machine protocol.
    pub fn qmp(&self) -> &Qmp {
        &self.qmp
    }

    /// QEMU's process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// From the start of QEMU to the agent's answer to the hello.
    pub fn ready_after(&self) -> Option<Duration> {
        self.ready
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

/// Asks for the state whenever the VM stops, and tells when that is an internal error.
async fn watch_stops(
    qmp: Arc<Qmp>,
    mut events: broadcast::Receiver<QmpEvent>,
    limit: Duration,
    tell: watch::Sender<bool>,
) {
    loop {
        match events.recv().await {
            // Among the lost ones may have been a stop.
            Ok(QmpEvent::Stop) | Err(broadcast::error::RecvError::Lagged(_)) => {}
            Ok(_) => continue,
            Err(broadcast::error::RecvError::Closed) => return,
        }
        let status = qmp.execute(qapi::qmp::query_status {}, limit).await;
        if status.is_ok_and(|info| info.status == qapi::qmp::RunState::internal_error) {
            tell.send_replace(true);
        }
    }
}

/// Returns when the process was stopped by a signal and stayed so: nothing can be told of its
/// guest then, and none of the guest's limits should be waited for.
async fn stopped(pid: u32) {
    let mut seen = 0;
    while seen < STOPPED_LOOKS {
        tokio::time::sleep(STOPPED_POLL).await;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        seen = if state.starts_with('T') { seen + 1 } else { 0 };
    }
}

async fn watch_start<T>(
    (process, program): (&Process, &'static str),
    cancel: &CancellationToken,
    connect: impl Future<Output = Result<T, VmError>>,
) -> Result<T, VmError> {
    let result = tokio::select! {
        biased;
        result = connect => result,
        _ = process.wait() => Err(VmError::Cancelled),
        () = cancel.cancelled() => return Err(VmError::Cancelled),
    };
    if result.is_ok() {
        return result;
    }
    // A connection that failed because QEMU is ending: its end says more.
    match tokio::time::timeout(SETTLE, process.wait()).await {
        Ok(status) => {
            process.drained().await;
            let stderr = process.stderr();
            Err(VmError::QemuExited { program, status, stderr })
        }
        Err(_) => result,
    }
}

async fn connect(
    spec: &VmSpec,
    record: &Path,
    limits: &Limits,
) -> Result<(Qmp, Console, Ports), VmError> {
    let socket = |name| open(&spec.dir, name, limits.connect);
    let console = socket(argv::CONSOLE_SOCKET).await?;
    let log = record.join(CONSOLE_LOG);
    let console = Console::follow(console, &log).map_err(VmError::io(log.display().to_string()))?;
    let control = socket(argv::CONTROL_SOCKET).await?;
    let bulk = socket(argv::BULK_SOCKET).await?;
    let qmp = Qmp::open(socket(argv::QMP_SOCKET).await?, limits.greeting).await?;
    Ok((qmp, console, Ports { control, bulk }))
}

async fn open(dir: &Path, socket: &'static str, limit: Duration) -> Result<UnixStream, VmError> {
    let path = dir.join(socket);
    let attempts = async {
        loop {
            if let Ok(stream) = UnixStream::connect(&path).await {
                return stream;
            }
            tokio::time::sleep(RETRY).await;
        }
    };
    let stream = tokio::time::timeout(limit, attempts).await;
    stream.map_err(|_| VmError::NoSocket { socket, limit })
}

/// A session number that no other VM has, and its hello.
fn fresh_hello() -> Result<(u64, Hello), VmError> {
    let mut random = [0; 40];
    let read = std::fs::File::open("/dev/urandom")
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut random));
    read.map_err(VmError::io("/dev/urandom"))?;
    let mut session = [0; 8];
    let mut rng_seed = [0; 32];
    session.copy_from_slice(&random[..8]);
    rng_seed.copy_from_slice(&random[8..]);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let wall_time_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
    Ok((u64::from_le_bytes(session), Hello { wall_time_ns, rng_seed }))
}
