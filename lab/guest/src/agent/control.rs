//! The loop over the control port.

use std::fs::File;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lab_proto::CONTROL_PORT;
use lab_proto::frame::{Decoder, Frame, Kind};
use lab_proto::message::{Fault, FaultKind, Hello, HelloReply, Request, Response};

use super::handler::Handler;
use super::link::Link;
use super::port;
use crate::sys::{clock, kmsg, process, random};

/// How long the control port may take to appear.
const PORT_LIMIT: Duration = Duration::from_secs(20);

/// Most requests that run at a time.
const MAX_IN_FLIGHT: usize = 64;

struct Agent {
    link: Arc<Link>,
    handler: Arc<Handler>,
    in_flight: Arc<AtomicUsize>,
    session: u64,
}

/// Runs the agent. Returns only when the control port is gone.
pub(crate) fn main() -> ExitCode {
    process::name("lab-agent");
    let opened = port::open(CONTROL_PORT, PORT_LIMIT);
    match opened.and_then(|reader| Ok((reader.try_clone()?, reader))) {
        Ok((writer, reader)) => {
            let e = Agent::new(writer).run(reader);
            kmsg::error(&format!("lab-agent: control port: {e}"));
        }
        Err(e) => kmsg::error(&format!("lab-agent: control port: {e}")),
    }
    ExitCode::FAILURE
}

impl Agent {
    fn new(writer: File) -> Agent {
        let link = Arc::new(Link::new(writer));
        let handler = Arc::new(Handler::new(Arc::clone(&link)));
        Agent { link, handler, in_flight: Arc::default(), session: 0 }
    }

    fn run(&mut self, mut reader: File) -> io::Error {
        let mut decoder = Decoder::for_guest();
        let mut buffer = vec![0; 64 << 10];
        loop {
            match port::read_some(&mut reader, &mut buffer) {
                Ok(count) => decoder.push(&buffer[..count]),
                Err(e) => return e,
            }
            loop {
                match decoder.next_frame() {
                    Ok(Some(frame)) => self.take(&frame),
                    Ok(None) => break,
                    Err(e) => {
                        // The stream is out of step: wait for the next hello.
                        kmsg::error(&format!("lab-agent: {e}"));
                        decoder = Decoder::for_guest();
                        break;
                    }
                }
            }
        }
    }

    fn take(&mut self, frame: &Frame) {
        let taken = match frame.kind {
            Kind::Hello => frame.json().map(|hello| self.hello(frame.session, &hello)),
            Kind::Request => frame.json().map(|request| self.request(request)),
            _ => return kmsg::error("lab-agent: a frame that only guests send"),
        };
        if let Err(e) = taken {
            kmsg::error(&format!("lab-agent: {e}"));
        }
    }

    fn hello(&mut self, session: u64, hello: &Hello) {
        self.session = session;
        if let Err(e) = clock::set_realtime(hello.wall_time_ns) {
            kmsg::error(&format!("lab-agent: clock: {e}"));
        }
        if let Err(e) = random::reseed(hello.rng_seed) {
            kmsg::error(&format!("lab-agent: random seed: {e}"));
        }
        self.handler.new_session();
        let reply = HelloReply {
            agent_version: env!("CARGO_PKG_VERSION").to_owned(),
            boottime_ns: clock::boottime_ns(),
        };
        if let Err(e) = self.link.adopt(session, &reply) {
            kmsg::error(&format!("lab-agent: hello: {e}"));
        }
    }

    /// Starts a request on a thread of its own, so that one that hangs blocks no other.
    fn request(&self, request: Request) {
        let id = request.id;
        if self.in_flight.fetch_add(1, Ordering::AcqRel) >= MAX_IN_FLIGHT {
            self.in_flight.fetch_sub(1, Ordering::AcqRel);
            return self.refuse(id, "too many requests in flight");
        }
        let (link, handler) = (Arc::clone(&self.link), Arc::clone(&self.handler));
        let (in_flight, session) = (Arc::clone(&self.in_flight), self.session);
        let work = move || {
            let result = handler.handle(session, request.command);
            if let Err(e) = link.respond(session, &Response { id, result }) {
                kmsg::error(&format!("lab-agent: response: {e}"));
            }
            in_flight.fetch_sub(1, Ordering::AcqRel);
        };
        if let Err(e) = std::thread::Builder::new().name(format!("request-{id}")).spawn(work) {
            self.in_flight.fetch_sub(1, Ordering::AcqRel);
            self.refuse(id, &format!("no thread: {e}"));
        }
    }

    fn refuse(&self, id: u32, text: &str) {
        let fault = Fault { kind: FaultKind::Agent, text: text.to_owned() };
        let response = Response { id, result: Err(fault) };
        if let Err(e) = self.link.respond(self.session, &response) {
            kmsg::error(&format!("lab-agent: response: {e}"));
        }
    }
}
