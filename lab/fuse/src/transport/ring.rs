//! All queues of a ring: a thread each, made before the ring is claimed, then registered.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};
use thiserror::Error;

use crate::errno::{Errno, Result as FsResult};
use crate::session::Handler;
use crate::sys::cpu;

use super::device::Device;
use super::ring_queue::RingQueue;

/// Bound of each step of the start, and of the end.
const STEP_LIMIT: Duration = Duration::from_secs(20);

/// Why there is no ring.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum RingError {
    /// The kernel's INIT has no bit for it.
    #[error("kernel (fuse 7.{minor}) does not offer io_uring: fuse.enable_uring is {parameter}")]
    NotOffered {
        /// Protocol minor of the kernel.
        minor: u32,
        /// The module parameter's value, or `absent`.
        parameter: String,
    },
    /// Fewer queues than possible CPUs were asked for.
    #[error("kernel (fuse 7.{minor}) does not offer fewer queues than possible CPUs")]
    AllQueues {
        /// Protocol minor of the kernel.
        minor: u32,
    },
    /// io_uring or the buffers of a queue could not be made.
    #[error("io_uring of queue {queue} cannot be set up: errno {errno} ({text})")]
    Setup {
        /// Queue id.
        queue: u32,
        /// Error number.
        errno: i32,
        /// Its text.
        text: String,
    },
    /// The kernel refused an entry.
    #[error("kernel refused REGISTER on queue {queue}: errno {errno} ({text})")]
    Refused {
        /// Queue id.
        queue: u32,
        /// Error number.
        errno: i32,
        /// Its text.
        text: String,
    },
    /// A queue's thread did not answer in time, or died.
    #[error("a queue thread died or gave no answer within {} s", STEP_LIMIT.as_secs())]
    Silent,
}

#[derive(Debug)]
enum Word {
    Made(u32, FsResult<()>),
    Registered(u32, FsResult<()>),
    Ended,
}

/// The queues. Dropped, their threads end.
#[derive(Debug)]
pub struct Ring {
    stop: Arc<OwnedFd>,
    go: Vec<Sender<Arc<Handler>>>,
    words: Receiver<Word>,
    running: usize,
}

impl Ring {
    /// Starts a thread for each queue of `queues`, pinned to the CPU of the queue's number where that is
    /// online, and makes io_uring and buffers in each. The kernel's FUSE side hears nothing.
    ///
    /// # Errors
    /// The first queue that cannot be made.
    pub fn prepare(
        device: &Arc<Device>,
        queues: &[u32],
        depth: u32,
        payload_len: usize,
    ) -> Result<Ring, RingError> {
        let fail =
            |queue, errno: Errno| RingError::Setup { queue, errno: errno.raw(), text: text(errno) };
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let stop = Arc::new(stop.map_err(|error| fail(0, error.into()))?);
        let (sender, words) = mpsc::channel();
        let mut ring = Ring { stop, go: Vec::new(), words, running: 0 };
        let online = cpu::online();
        for &queue in queues {
            let (go, when) = mpsc::channel();
            let thread = QueueThread {
                queue,
                depth,
                payload_len,
                pin: online.contains(&queue),
                device: device.clone(),
                stop: ring.stop.clone(),
                when,
                words: sender.clone(),
            };
            let spawned =
                thread::Builder::new().name(format!("ring-{queue}")).spawn(move || thread.run());
            spawned.map_err(|error| fail(queue, error.into()))?;
            ring.go.push(go);
            ring.running += 1;
        }
        drop(sender);
        ring.gather(|word| match word {
            Word::Made(queue, Err(errno)) => Err(fail(queue, errno)),
            _ => Ok(()),
        })?;
        Ok(ring)
    }

    /// Registers all entries of all queues; after that the ring serves.
    ///
    /// # Errors
    /// The first queue that the kernel refused.
    pub fn register(&mut self, handler: &Arc<Handler>) -> Result<(), RingError> {
        for go in &self.go {
            go.send(handler.clone()).map_err(|_| RingError::Silent)?;
        }
        self.gather(|word| match word {
            Word::Registered(queue, Err(errno)) => {
                Err(RingError::Refused { queue, errno: errno.raw(), text: text(errno) })
            }
            _ => Ok(()),
        })
    }

    /// One word of each thread, within the bound.
    fn gather(&self, check: impl Fn(Word) -> Result<(), RingError>) -> Result<(), RingError> {
        let end = Instant::now() + STEP_LIMIT;
        for _ in 0..self.go.len() {
            let left = end.saturating_duration_since(Instant::now());
            check(self.words.recv_timeout(left).map_err(|_| RingError::Silent)?)?;
        }
        Ok(())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        self.go.clear();
        let end = Instant::now() + STEP_LIMIT;
        while self.running > 0 {
            let left = end.saturating_duration_since(Instant::now());
            match self.words.recv_timeout(left) {
                Ok(Word::Ended) => self.running -= 1,
                Ok(_) => {}
                Err(_) => break,
            }
        }
    }
}

fn text(errno: Errno) -> String {
    let text = std::io::Error::from_raw_os_error(errno.raw()).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

struct QueueThread {
    queue: u32,
    depth: u32,
    payload_len: usize,
    pin: bool,
    device: Arc<Device>,
    stop: Arc<OwnedFd>,
    when: Receiver<Arc<Handler>>,
    words: Sender<Word>,
}

impl QueueThread {
    fn run(self) {
        if self.pin {
            cpu::pin(self.queue);
        }
        self.serve();
        let words = self.words.clone();
        // The ring and the device are closed before the end is told.
        drop(self);
        let _ = words.send(Word::Ended);
    }

    fn serve(&self) {
        let device = self.device.as_raw_fd();
        let made = RingQueue::new(self.queue as u16, self.depth, self.payload_len, device);
        let mut queue = match made {
            Ok(queue) => queue,
            Err(errno) => return drop(self.words.send(Word::Made(self.queue, Err(errno)))),
        };
        let _ = self.words.send(Word::Made(self.queue, Ok(())));
        let Ok(handler) = self.when.recv() else { return };
        let registered = queue.register(self.stop.as_raw_fd());
        let failed = registered.is_err();
        let _ = self.words.send(Word::Registered(self.queue, registered));
        if !failed {
            let _ = queue.run(&handler);
        }
    }
}
