//! The way to the host: whole frames under a lock, each of the session it belongs to.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lab_proto::frame::{self, Kind};
use lab_proto::message::{Fault, FaultKind, HelloReply, Response};

/// A writer shared by every thread of the agent.
pub(crate) struct Link {
    inner: Mutex<Inner>,
}

struct Inner {
    port: File,
    session: u64,
}

impl Link {
    /// A link without a session: nothing is sent before [`Link::adopt`].
    pub(crate) fn new(port: File) -> Link {
        Link { inner: Mutex::new(Inner { port, session: 0 }) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes `session` the current one and greets the host in it.
    pub(crate) fn adopt(&self, session: u64, reply: &HelloReply) -> io::Result<()> {
        let bytes = frame::encode_json(Kind::HelloReply, session, reply)
            .map_err(|e| io::Error::other(e.to_string()))?;
        let mut inner = self.lock();
        inner.session = session;
        inner.port.write_all(&bytes)
    }

    /// Sends a response; one of an older session is dropped, one over the bound of a frame is
    /// replaced by a fault that says so.
    pub(crate) fn respond(&self, session: u64, response: &Response) -> io::Result<()> {
        let bytes = encode(session, response)?;
        let mut inner = self.lock();
        if inner.session != session {
            return Ok(());
        }
        inner.port.write_all(&bytes)
    }

    /// Writes bytes that are no frame: deliberate damage.
    pub(crate) fn garbage(&self, bytes: &[u8]) -> io::Result<()> {
        self.lock().port.write_all(bytes)
    }
}

fn encode(session: u64, response: &Response) -> io::Result<Vec<u8>> {
    frame::encode_json(Kind::Response, session, response)
        .or_else(|e| {
            let fault =
                Fault { kind: FaultKind::Agent, text: format!("the reply does not fit: {e}") };
            let response = Response { id: response.id, result: Err(fault) };
            frame::encode_json(Kind::Response, session, &response)
        })
        .map_err(|e| io::Error::other(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab_proto::frame::Decoder;
    use lab_proto::message::Reply;
    use lab_proto::observe::{Observation, TreeObservation};

    #[test]
    fn a_reply_over_the_bound_becomes_a_fault() {
        let lines = vec!["x".repeat(1024); 4096];
        let result = Ok(Reply::Observed(Observation::Tree(TreeObservation { lines })));
        let wire = encode(5, &Response { id: 8, result }).unwrap();
        let mut decoder = Decoder::for_guest();
        decoder.push(&frame::encode(Kind::Hello, 5, b"{}").unwrap());
        decoder.push(&wire);
        decoder.next_frame().unwrap().unwrap();
        let seen: Response = decoder.next_frame().unwrap().unwrap().json().unwrap();
        assert_eq!(seen.id, 8);
        assert_eq!(seen.result.unwrap_err().kind, FaultKind::Agent);
    }
}
