//! What a transport calls for each request: telemetry, faults, then the file system.

use std::sync::Arc;
use std::time::Duration;

use lab_proto::server::ServerSpec;
use zerocopy::FromBytes;

use crate::abi::flags::open;
use crate::abi::opcode::Opcode;
use crate::abi::reply::{Attr, AttrOut, EntryOut, OpenOut};
use crate::abi::request::{BatchForgetIn, ForgetOne};
use crate::errno::{Errno, Result};
use crate::fs::{Entry, FileSystem, Opened};
use crate::sys::cpu;
use crate::telemetry::{Queue, Seen, Telemetry};

use super::fault::FaultPlan;
use super::request::Request;

/// What is to be done after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Reply with that many bytes of the payload, or with an error.
    Reply(Result<usize>),
    /// The kind has no reply.
    Silent,
    /// A fault took the reply; the request stays unanswered.
    Dropped,
}

/// Serves one session's requests; shared by all threads of its transport.
pub struct Handler {
    pub(super) fs: Arc<dyn FileSystem>,
    telemetry: Arc<Telemetry>,
    fault: Option<FaultPlan>,
    cache: Duration,
    open_flags: u32,
}

impl Handler {
    /// For a spec whose fault, if any, was made into a plan.
    pub fn new(
        spec: &ServerSpec,
        fs: Arc<dyn FileSystem>,
        telemetry: Arc<Telemetry>,
        fault: Option<FaultPlan>,
    ) -> Handler {
        let open_flags = match (spec.direct_io, spec.cache_ms > 0) {
            (true, _) => open::DIRECT_IO | open::PARALLEL_DIRECT_WRITES,
            (false, true) => open::KEEP_CACHE,
            (false, false) => 0,
        };
        Handler { fs, telemetry, fault, cache: Duration::from_millis(spec.cache_ms), open_flags }
    }

    /// The counters of a queue, for [`Handler::serve`].
    pub fn telemetry(&self) -> &Arc<Telemetry> {
        &self.telemetry
    }

    /// Begins the life after start: nothing counted, faults armed.
    pub fn begin(&self) {
        if let Some(fault) = &self.fault {
            fault.arm();
        }
        self.telemetry.reset();
    }

    /// Answers one request that arrived on `queue`.
    pub fn serve(&self, queue: &Queue, request: &mut Request<'_>) -> Outcome {
        let header = &request.header;
        queue.arrived(Seen {
            at_ns: self.telemetry.now_ns(),
            unique: header.unique,
            opcode: header.opcode.min(u32::from(u16::MAX)) as u16,
            cpu: cpu::current() as u16,
            pid: header.pid,
        });
        let outcome = self.answer(request);
        if outcome != Outcome::Dropped {
            queue.finished(outcome != Outcome::Silent);
        }
        outcome
    }

    /// Answers one request outside the queues, i.e. from /dev/fuse while the ring serves.
    pub fn answer(&self, request: &mut Request<'_>) -> Outcome {
        let Some(opcode) = Opcode::from_number(request.header.opcode) else {
            return Outcome::Reply(Err(Errno::ENOSYS));
        };
        match opcode {
            Opcode::Forget => self.forget(request),
            Opcode::BatchForget => self.batch_forget(request),
            // Requests are answered where they arrive, so there is nothing to interrupt.
            Opcode::Interrupt => Outcome::Silent,
            _ if self.fault.as_ref().is_some_and(|fault| fault.hits(opcode)) => Outcome::Dropped,
            _ => Outcome::Reply(self.dispatch(opcode, request)),
        }
    }

    fn forget(&self, request: &Request<'_>) -> Outcome {
        if let Ok(count) = request.fixed::<u64>() {
            self.fs.forget(request.header.nodeid, count);
        }
        Outcome::Silent
    }

    fn batch_forget(&self, request: &Request<'_>) -> Outcome {
        let head = request.fixed::<BatchForgetIn>();
        if let (Ok(head), Ok(mut rest)) = (head, request.data()) {
            for _ in 0..head.count {
                let Ok((one, after)) = ForgetOne::read_from_prefix(rest) else { break };
                self.fs.forget(one.nodeid, one.nlookup);
                rest = after;
            }
        }
        Outcome::Silent
    }

    pub(super) fn entry_out(&self, entry: &Entry) -> EntryOut {
        EntryOut {
            nodeid: entry.node,
            generation: 0,
            entry_valid: self.cache.as_secs(),
            attr_valid: self.cache.as_secs(),
            entry_valid_nsec: self.cache.subsec_nanos(),
            attr_valid_nsec: self.cache.subsec_nanos(),
            attr: entry.attr,
        }
    }

    pub(super) fn attr_out(&self, attr: Attr) -> AttrOut {
        AttrOut {
            attr_valid: self.cache.as_secs(),
            attr_valid_nsec: self.cache.subsec_nanos(),
            dummy: 0,
            attr,
        }
    }

    pub(super) fn open_out(&self, opened: Opened) -> OpenOut {
        OpenOut { fh: opened.handle, open_flags: self.open_flags, backing_id: 0 }
    }
}
