//! The one way to start a host program: bounded in time and output, in a process group of its
//! own, dead when the lab is dead.
//!
//! Standard input is empty. A program that leaves children behind has them killed with its
//! group. Nothing here knows what the programs are for.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Child;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::capture::Capture;
use super::spawner;

/// Bytes kept of the head and of the tail of each output stream.
pub const KEEP: usize = 512 << 10;

/// How long the pipes of an ended program may stay open before they are given up.
const PIPES_LIMIT: Duration = Duration::from_secs(2);

/// What to start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// Name looked up in PATH, or a path.
    pub program: OsString,
    /// Arguments.
    pub args: Vec<OsString>,
    /// Additions to the lab's own environment.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory; absent means the lab's own.
    pub cwd: Option<PathBuf>,
    /// Whether it has the lab's terminal: its standard streams and its process group.
    pub attached: bool,
}

impl Program {
    /// A program with arguments, the lab's environment and working directory.
    pub fn new<A: Into<OsString>>(
        program: impl Into<OsString>,
        args: impl IntoIterator<Item = A>,
    ) -> Program {
        Program {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            ..Program::default()
        }
    }

    /// The program's name for messages.
    pub fn name(&self) -> String {
        self.program.to_string_lossy().into_owned()
    }
}

/// How a program ended and what it said.
#[derive(Debug, Clone)]
pub struct Output {
    /// Exit status; not necessarily success.
    pub status: ExitStatus,
    /// Standard output, head and tail of at most [`KEEP`] bytes each.
    pub stdout: String,
    /// Standard error, bounded likewise.
    pub stderr: String,
}

/// Why there is no [`Output`].
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// No such program.
    #[error("{program}: no such program")]
    Missing {
        /// Its name.
        program: String,
    },
    /// It could not be started.
    #[error("{program}: cannot be started")]
    Spawn {
        /// Its name.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// It did not end within its limit and was killed.
    #[error("{program}: not done after {} ms", limit.as_millis())]
    Limit {
        /// Its name.
        program: String,
        /// The limit.
        limit: Duration,
        /// What it wrote to standard error, bounded.
        stderr: String,
    },
    /// The caller gave up and it was killed.
    #[error("{program}: cancelled")]
    Cancelled {
        /// Its name.
        program: String,
    },
}

/// Runs a program to its end. A status other than success is not an error here.
///
/// Ends within `limit` plus two seconds; then, or when `cancel` fires, the whole process group
/// is killed. Errors: [`ProcessError`].
pub async fn run(
    program: Program,
    limit: Duration,
    cancel: &CancellationToken,
) -> Result<Output, ProcessError> {
    let name = program.name();
    let process = spawn(program).await?;
    let status = tokio::select! {
        () = cancel.cancelled() => return Err(ProcessError::Cancelled { program: name }),
        ended = tokio::time::timeout(limit, process.wait()) => ended,
    };
    match status {
        Ok(status) => {
            process.drained().await;
            Ok(Output { status, stdout: process.stdout(), stderr: process.stderr() })
        }
        Err(_) => {
            process.kill_group();
            Err(ProcessError::Limit { program: name, limit, stderr: process.stderr() })
        }
    }
}

/// Starts a program and leaves it running. Errors: [`ProcessError::Missing`],
/// [`ProcessError::Spawn`].
pub async fn spawn(program: Program) -> Result<Process, ProcessError> {
    let name = program.name();
    let mut child = spawner::spawn(program).await.map_err(|source| {
        if source.kind() == io::ErrorKind::NotFound {
            ProcessError::Missing { program: name.clone() }
        } else {
            ProcessError::Spawn { program: name.clone(), source }
        }
    })?;
    let no_pid = || io::Error::other("no process id");
    let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).ok_or_else(no_pid);
    let pid = pid.map_err(|source| ProcessError::Spawn { program: name, source })?;
    let stdout = Pipe::follow(child.stdout.take());
    let stderr = Pipe::follow(child.stderr.take());
    let (ended, exit) = watch::channel(None);
    let group = Arc::new(Group { pid, alive: Mutex::new(true) });
    tokio::spawn(reap(child, Arc::clone(&group), ended));
    Ok(Process { group, exit, stdout, stderr })
}

/// A running program. Dropping it kills its process group.
#[derive(Debug)]
pub struct Process {
    group: Arc<Group>,
    exit: watch::Receiver<Option<ExitStatus>>,
    stdout: Pipe,
    stderr: Pipe,
}

impl Process {
    /// Process id, which is also that of its group.
    pub fn pid(&self) -> u32 {
        self.group.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// Waits for its end. May be called any number of times, also at once from several tasks.
    pub async fn wait(&self) -> ExitStatus {
        let mut exit = self.exit.clone();
        let status = exit.wait_for(Option::is_some).await.ok().and_then(|status| *status);
        // The sender goes without a value only with the runtime, which kills the child.
        status.unwrap_or_else(killed)
    }

    /// How it ended, if it did.
    pub fn exited(&self) -> Option<ExitStatus> {
        *self.exit.borrow()
    }

    /// Kills the whole group; nothing happens when it is gone already.
    pub fn kill_group(&self) {
        self.group.kill();
    }

    /// Waits until both output streams ended, at most two seconds.
    pub async fn drained(&self) {
        let both = async {
            self.stdout.ended().await;
            self.stderr.ended().await;
        };
        let _ = tokio::time::timeout(PIPES_LIMIT, both).await;
    }

    /// Standard output so far, bounded.
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// Standard error so far, bounded.
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill_group();
    }
}

#[derive(Debug)]
struct Group {
    pid: Pid,
    alive: Mutex<bool>,
}

impl Group {
    fn kill(&self) {
        let alive = self.alive.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if *alive {
            let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
        }
    }

    /// Kills what the ended leader left behind, then lets go of the number, which the kernel
    /// may give to others from now on.
    fn close(&self) {
        self.kill();
        *self.alive.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = false;
    }
}

async fn reap(mut child: Child, group: Arc<Group>, ended: watch::Sender<Option<ExitStatus>>) {
    let status = child.wait().await;
    group.close();
    let _ = ended.send(Some(status.unwrap_or_else(|_| killed())));
}

/// The status of a program whose own one cannot be had: never a success.
fn killed() -> ExitStatus {
    ExitStatus::from_raw(Signal::KILL.as_raw())
}

/// One output stream, read to its end by a task of its own.
#[derive(Debug)]
struct Pipe {
    capture: Arc<Mutex<Capture>>,
    done: watch::Receiver<bool>,
    task: JoinHandle<()>,
}

impl Pipe {
    fn follow<R: AsyncRead + Unpin + Send + 'static>(stream: Option<R>) -> Pipe {
        let capture = Arc::new(Mutex::new(Capture::new(KEEP, KEEP)));
        let (tell, done) = watch::channel(false);
        let sink = Arc::clone(&capture);
        let task = tokio::spawn(async move {
            if let Some(mut stream) = stream {
                read_all(&mut stream, &sink).await;
            }
            let _ = tell.send(true);
        });
        Pipe { capture, done, task }
    }

    async fn ended(&self) {
        let _ = self.done.clone().wait_for(|done| *done).await;
    }

    fn text(&self) -> String {
        self.capture.lock().unwrap_or_else(std::sync::PoisonError::into_inner).text()
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn read_all<R: AsyncRead + Unpin>(stream: &mut R, sink: &Mutex<Capture>) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        sink.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(&buffer[..count]);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn shell(script: &str) -> Program {
        Program::new("sh", ["-c", script])
    }

    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn status_and_both_streams_are_kept() {
        let cancel = CancellationToken::new();
        let output = run(shell("echo out; echo err >&2; exit 3"), LONG, &cancel).await.unwrap();
        assert_eq!(output.status.code(), Some(3));
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("out\n", "err\n"));
    }

    #[tokio::test]
    async fn a_missing_program_is_told_apart() {
        let cancel = CancellationToken::new();
        let missing = Program::new("lab-no-such-program", ["x"]);
        let error = run(missing, LONG, &cancel).await.unwrap_err();
        assert!(matches!(error, ProcessError::Missing { .. }), "{error}");
    }

    #[tokio::test]
    async fn the_limit_kills_the_whole_group() {
        let cancel = CancellationToken::new();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let script = format!("sleep 60 & echo $! > {}; wait", file.display());
        let begin = Instant::now();
        let error = run(shell(&script), Duration::from_millis(300), &cancel).await.unwrap_err();
        assert!(matches!(error, ProcessError::Limit { .. }), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(5));
        let pid: i32 = std::fs::read_to_string(file).unwrap().trim().parse().unwrap();
        assert!(gone(pid).await, "grandchild {pid} is alive");
    }

    /// Whether a process ends soon; a zombie that nobody reaps counts as ended.
    async fn gone(pid: i32) -> bool {
        for _ in 0..100 {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
            if stat.map_or(true, |stat| stat.contains(") Z ")) {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    }

    #[tokio::test]
    async fn cancelling_ends_it() {
        let cancel = CancellationToken::new();
        let later = cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            later.cancel();
        });
        let error = run(shell("sleep 60"), LONG, &cancel).await.unwrap_err();
        assert!(matches!(error, ProcessError::Cancelled { .. }), "{error}");
    }

    #[tokio::test]
    async fn endless_output_is_bounded() {
        let cancel = CancellationToken::new();
        let output = run(shell("head -c 30000000 /dev/zero"), LONG, &cancel).await.unwrap();
        assert!(output.stdout.len() < 2 * KEEP + 100, "{}", output.stdout.len());
    }

    #[tokio::test]
    async fn dropping_kills() {
        let process = spawn(shell("sleep 60")).await.unwrap();
        let pid = process.pid().cast_signed();
        drop(process);
        assert!(gone(pid).await);
    }

    #[test]
    fn a_child_outlives_the_runtime_threads_that_asked_for_it() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let asked = std::thread::spawn({
            let handle = runtime.handle().clone();
            move || handle.block_on(spawn(shell("sleep 60"))).unwrap()
        });
        let process = asked.join().unwrap();
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(process.exited(), None);
    }
}
