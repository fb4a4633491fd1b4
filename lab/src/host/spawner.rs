//! The thread that starts host programs, so that they die when the lab dies.
//!
//! The kernel sends a parent-death signal when the *thread* that spawned a child ends. Worker
//! threads of an async runtime come and go, so all programs are started by one thread that
//! lives as long as the process. Nothing else lives here.
#![allow(unsafe_code)] // pre_exec: the parent-death signal can only be set between fork and exec

use std::io;
use std::process::Stdio;
use std::sync::{Mutex, OnceLock, mpsc};

use rustix::process::{Pid, Signal};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::process::Program;

struct Job {
    program: Program,
    runtime: Handle,
    answer: oneshot::Sender<io::Result<Child>>,
}

/// Starts `program` on the spawner thread, in a process group of its own.
///
/// Must be called within a tokio runtime, which then drives the child's pipes.
pub(super) async fn spawn(program: Program) -> io::Result<Child> {
    let (answer, result) = oneshot::channel();
    let job = Job { program, runtime: Handle::current(), answer };
    queue()?.send(job).map_err(|_| gone())?;
    result.await.map_err(|_| gone())?
}

fn gone() -> io::Error {
    io::Error::other("the spawner thread is gone")
}

/// The way to the spawner thread, which the first call starts.
fn queue() -> io::Result<mpsc::Sender<Job>> {
    static QUEUE: OnceLock<Mutex<Option<mpsc::Sender<Job>>>> = OnceLock::new();
    let mut slot = QUEUE.get_or_init(Mutex::default).lock().map_err(|_| gone())?;
    if let Some(queue) = &*slot {
        return Ok(queue.clone());
    }
    let (sender, jobs) = mpsc::channel::<Job>();
    std::thread::Builder::new().name("lab-spawner".into()).spawn(move || serve(&jobs))?;
    Ok(slot.insert(sender).clone())
}

fn serve(jobs: &mpsc::Receiver<Job>) {
    for job in jobs {
        let _guard = job.runtime.enter();
        // A caller that is gone drops the child, and kill_on_drop ends it.
        let _ = job.answer.send(start(&job.program));
    }
}

fn start(program: &Program) -> io::Result<Child> {
    let mut command = Command::new(&program.program);
    command
        .args(&program.args)
        .envs(program.env.iter().map(|(name, value)| (name, value)))
        .kill_on_drop(true);
    if !program.attached {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    }
    if let Some(cwd) = &program.cwd {
        command.current_dir(cwd);
    }
    let parent = rustix::process::getpid();
    // SAFETY: the closure runs between fork and exec and makes only two plain system calls; it
    // neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(move || die_with(parent));
    }
    #[allow(clippy::disallowed_methods)] // this is the one place
    command.spawn()
}

/// Asks for SIGKILL at the parent's death, and fails if that has happened already.
fn die_with(parent: Pid) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() == Some(parent) {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(rustix::io::Errno::SRCH.raw_os_error()))
    }
}
