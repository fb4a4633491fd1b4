//! A running server: started whole or not at all, readable while it runs, stopped in bounds.

use std::fs;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lab_proto::server::{
    FileSystem as FsSpec, Queues, ServerReport, ServerSpec, ServerStats, Transport,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use thiserror::Error;
use zerocopy::IntoBytes;

use crate::errno::Errno;
use crate::fs::FileSystem;
use crate::fs::memory::Memory;
use crate::fs::passthrough::Passthrough;
use crate::session::{
    Agreed, FaultPlan, Handler, InitError, Offer, answer_init, parse_init, payload_len,
};
use crate::sys::cpu;
use crate::sys::mount::Mount;
use crate::telemetry::Telemetry;
use crate::transport::{Device, Ring, RingError, Role, serve_device};

/// Wait for the kernel's INIT, and for the mount's first answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// Wait for a plain unmount before the mount is forced away.
const UNMOUNT_LIMIT: Duration = Duration::from_secs(5);
/// Wait for reader threads after the unmount.
const JOIN_LIMIT: Duration = Duration::from_secs(5);
/// Largest depth of a queue.
const DEPTH_MAX: u32 = 4096;
/// Largest payload, bytes.
const MAX_WRITE_MAX: u32 = 16 << 20;

/// Why a server did not start. Nothing is left mounted then.
#[derive(Debug, Error)]
pub enum StartError {
    /// A value of the spec is out of bounds.
    #[error("spec: {0}")]
    Spec(&'static str),
    /// The directory to serve cannot be opened.
    #[error("source {path}: {error}")]
    Source {
        /// Its path.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// /dev/fuse, the mount, or a thread could not be had.
    #[error("{what}: {error}")]
    System {
        /// What failed.
        what: &'static str,
        /// Why.
        error: std::io::Error,
    },
    /// The kernel's first request was not answerable.
    #[error("init: {0}")]
    Init(#[from] InitError),
    /// Mounted, but not answering.
    #[error("{what} did not happen within {} s", ANSWER_LIMIT.as_secs())]
    Late {
        /// What was waited for.
        what: &'static str,
    },
    /// The ring was asked for and not obtained.
    #[error("ring: {0}")]
    Ring(#[from] RingError),
}

impl StartError {
    /// Whether the transport asked for is the reason.
    pub fn is_transport(&self) -> bool {
        matches!(self, StartError::Ring(_))
    }
}

fn system(what: &'static str) -> impl Fn(Errno) -> StartError {
    move |errno| StartError::System { what, error: std::io::Error::from_raw_os_error(errno.raw()) }
}

/// A mounted server.
pub struct Server {
    report: ServerReport,
    handler: Arc<Handler>,
    // Dropped in this order: first the mount, so that all threads see their connection end.
    mount: Mount,
    ring: Option<Ring>,
    readers: Vec<JoinHandle<()>>,
}

impl Server {
    /// Mounts and serves; returns when the mount answers.
    ///
    /// # Errors
    /// See [`StartError`]. With `fallback` a missing ring is no error.
    pub fn start(spec: &ServerSpec) -> Result<Server, StartError> {
        check(spec)?;
        raise_file_limit();
        match Server::attempt(spec, spec.transport) {
            Err(error) if error.is_transport() && spec.fallback => {
                let mut server = Server::attempt(spec, Transport::Classic)?;
                server.report.fallback_reason = Some(error.to_string());
                Ok(server)
            }
            other => other,
        }
    }

    /// What the server became.
    pub fn report(&self) -> &ServerReport {
        &self.report
    }

    /// Telemetry since the start or the last reset.
    pub fn stats(&self) -> ServerStats {
        let mut stats = ServerStats {
            name: self.report.name.clone(),
            connection: self.report.connection,
            ..ServerStats::default()
        };
        self.handler.telemetry().fill(&mut stats);
        stats
    }

    /// Starts all counts anew.
    pub fn reset(&self) {
        self.handler.telemetry().reset();
    }

    /// Unmounts and ends all threads. True when the plain unmount was enough; else the
    /// connection was aborted.
    pub fn stop(mut self) -> bool {
        let clean = self.mount.unmount(UNMOUNT_LIMIT);
        self.ring = None;
        let end = Instant::now() + JOIN_LIMIT;
        while self.readers.iter().any(|reader| !reader.is_finished()) && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
        clean
    }

    fn attempt(spec: &ServerSpec, transport: Transport) -> Result<Server, StartError> {
        let start = Start::new(spec, transport)?;
        let ring = start.ring()?;
        // After the ring: should a later step fail, the mount goes first.
        let mount = Mount::new(start.device.as_fd(), &spec.name, &spec.mount_point)
            .map_err(system("mount"))?;
        let offer = start.offer()?;
        if ring.is_some() && !offer.has_ring() {
            let parameter = enable_uring();
            return Err(RingError::NotOffered { minor: offer.minor, parameter }.into());
        }
        if ring.is_some() && spec.queues != Queues::All && !offer.has_fewer_queues() {
            return Err(RingError::AllQueues { minor: offer.minor }.into());
        }
        let (agreed, reply) = answer_init(&offer, spec, ring.is_some());
        start.device.reply(offer.unique, Ok(reply.as_bytes())).map_err(system("init reply"))?;
        start.serve(spec, offer, agreed, mount, ring)
    }
}

/// The parts of a server before it is one.
struct Start {
    transport: Transport,
    /// Ids of the queues (ring), or numbers of the readers (classic).
    queues: Vec<u32>,
    readers: u32,
    depth: u32,
    payload_len: usize,
    handler: Arc<Handler>,
    device: Arc<Device>,
}

impl Start {
    fn new(spec: &ServerSpec, transport: Transport) -> Result<Start, StartError> {
        let (queues, readers, depth) = match transport {
            Transport::Ring => (ring_queues(&spec.queues)?, 1, spec.depth),
            Transport::Classic => {
                let threads = cpu::online().len().max(2) as u32;
                ((0..threads).collect(), threads, 1)
            }
        };
        let fs: Arc<dyn FileSystem> = match &spec.file_system {
            FsSpec::Memory => Arc::new(Memory::new()),
            FsSpec::Passthrough { source } => {
                Arc::new(Passthrough::new(source, spec.writeback).map_err(|errno| {
                    let error = std::io::Error::from_raw_os_error(errno.raw());
                    StartError::Source { path: source.clone(), error }
                })?)
            }
        };
        let telemetry = Arc::new(Telemetry::new(&queues, readers));
        let fault = spec.fault.as_ref().and_then(FaultPlan::new);
        let handler = Arc::new(Handler::new(spec, fs, telemetry, fault));
        let device = Arc::new(Device::open().map_err(system("open /dev/fuse"))?);
        let payload_len = payload_len(spec);
        Ok(Start { transport, queues, readers, depth, payload_len, handler, device })
    }

    fn ring(&self) -> Result<Option<Ring>, StartError> {
        match self.transport {
            Transport::Classic => Ok(None),
            Transport::Ring => {
                let (queues, depth) = (&self.queues, self.depth);
                Ok(Some(Ring::prepare(&self.device, queues, depth, self.payload_len)?))
            }
        }
    }

    fn offer(&self) -> Result<Offer, StartError> {
        let late = StartError::Late { what: "the kernel's init" };
        if !self.device.wait(ANSWER_LIMIT).map_err(system("poll /dev/fuse"))? {
            return Err(late);
        }
        let mut buffer = vec![0u8; self.payload_len + 4096];
        let len = self.device.read(&mut buffer).map_err(system("read /dev/fuse"))?;
        Ok(parse_init(&buffer[..len.ok_or(late)?])?)
    }

    fn serve(
        &self,
        spec: &ServerSpec,
        offer: Offer,
        agreed: Agreed,
        mount: Mount,
        mut ring: Option<Ring>,
    ) -> Result<Server, StartError> {
        if let Some(ring) = &mut ring {
            ring.register(&self.handler)?;
        }
        let report = ServerReport {
            name: spec.name.clone(),
            mount_point: spec.mount_point.clone(),
            pid: std::process::id(),
            transport: self.transport,
            fallback_reason: None,
            queues: self.queues.len() as u32,
            depth: self.depth,
            kernel_minor: offer.minor,
            minor: agreed.minor,
            offered_flags: offer.flags,
            accepted_flags: agreed.flags,
            max_write: agreed.max_write,
            connection: mount.connection(),
        };
        let handler = self.handler.clone();
        let mut server = Server { report, handler, mount, ring, readers: Vec::new() };
        for number in 0..self.readers {
            server.readers.push(self.reader(number)?);
        }
        answers(server.mount.point())?;
        self.handler.begin();
        Ok(server)
    }

    fn reader(&self, number: u32) -> Result<JoinHandle<()>, StartError> {
        let (device, handler) = (self.device.clone(), self.handler.clone());
        let payload_len = self.payload_len;
        let role = match self.transport {
            Transport::Ring => Role::BesideRing,
            Transport::Classic => Role::Server,
        };
        // An error of the device ends the thread; the kernel then ends the connection.
        let body = move || {
            let _ = serve_device(&device, &handler, payload_len, role, number);
        };
        thread::Builder::new()
            .name(format!("fuse-{number}"))
            .spawn(body)
            .map_err(|error| StartError::System { what: "reader thread", error })
    }
}

/// Asks the mount for its figures, in a thread that may be left behind: a mount that does
/// not answer is forced away by the caller, which ends the call too.
fn answers(point: &str) -> Result<(), StartError> {
    let (sender, receiver) = mpsc::channel();
    let point = point.to_owned();
    thread::spawn(move || sender.send(rustix::fs::statfs(point.as_str()).map(drop)));
    match receiver.recv_timeout(ANSWER_LIMIT) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(system("statfs of the mount")(error.into())),
        Err(_) => Err(StartError::Late { what: "the mount's first answer" }),
    }
}

/// Queue ids: CPU numbers, ascending.
fn ring_queues(queues: &Queues) -> Result<Vec<u32>, StartError> {
    let possible = cpu::possible();
    let found: Vec<u32> = match queues {
        Queues::All => possible,
        Queues::First { count } => possible.into_iter().take(*count as usize).collect(),
        Queues::Of { cpus } => possible.into_iter().filter(|cpu| cpus.contains(cpu)).collect(),
        Queues::PerNode => cpu::first_of_each_node(),
    };
    match found.is_empty() {
        true => Err(StartError::Spec("queues name no possible CPU")),
        false => Ok(found),
    }
}

fn check(spec: &ServerSpec) -> Result<(), StartError> {
    let rules = [
        ((1..=DEPTH_MAX).contains(&spec.depth), "depth must be 1 to 4096"),
        ((4096..=MAX_WRITE_MAX).contains(&spec.max_write), "max_write must be 4 KiB to 16 MiB"),
        (spec.max_background > 0, "max_background must not be 0"),
        (spec.mount_point.starts_with('/'), "mount_point must be absolute"),
        (
            spec.fault.as_ref().is_none_or(|fault| FaultPlan::new(fault).is_some()),
            "fault names no opcode of the protocol, or the 0th request",
        ),
    ];
    let broken = rules.iter().find(|(holds, _)| !holds);
    broken.map_or(Ok(()), |(_, rule)| Err(StartError::Spec(rule)))
}

/// Each node of a passthrough holds a descriptor.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let more = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let _ = setrlimit(Resource::Nofile, more);
}

fn enable_uring() -> String {
    let value = fs::read_to_string("/sys/module/fuse/parameters/enable_uring");
    value.map_or_else(|_| "absent".to_owned(), |value| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use lab_proto::server::ServerFault;

    use super::*;

    fn spec() -> ServerSpec {
        ServerSpec {
            name: "t".into(),
            mount_point: "/nowhere".into(),
            transport: Transport::Classic,
            fallback: false,
            file_system: FsSpec::Memory,
            depth: 1,
            max_write: 4096,
            max_background: 1,
            cache_ms: 0,
            direct_io: false,
            writeback: false,
            queues: Queues::All,
            fault: None,
        }
    }

    #[test]
    fn values_out_of_bounds_are_refused_before_anything_is_done() {
        assert!(check(&spec()).is_ok());
        let fault = ServerFault::DropReply { opcode: "nothing".into(), nth: 1 };
        let bad = [
            ServerSpec { depth: 0, ..spec() },
            ServerSpec { depth: 4097, ..spec() },
            ServerSpec { max_write: 4095, ..spec() },
            ServerSpec { max_background: 0, ..spec() },
            ServerSpec { mount_point: "relative".into(), ..spec() },
            ServerSpec { fault: Some(fault), ..spec() },
        ];
        for spec in bad {
            assert!(matches!(Server::start(&spec), Err(StartError::Spec(_))), "{spec:?}");
        }
    }

    #[test]
    fn a_missing_source_is_named() {
        let source = "/no/such/directory".to_owned();
        let spec = ServerSpec { file_system: FsSpec::Passthrough { source }, ..spec() };
        let error = Server::start(&spec).err().unwrap();
        assert!(error.to_string().contains("/no/such/directory") && !error.is_transport());
    }
}
