//! One request in, one result out.

use std::sync::Arc;
use std::time::Duration;

use lab_proto::message::{Command, Fault, FaultKind, Reply};

use super::diagnose;
use super::link::Link;
use crate::report::{facts, topology};
use crate::sys::{kmsg, power};

/// What requests share.
pub(crate) struct Handler {
    #[allow(dead_code)]
    link: Arc<Link>,
}

impl Handler {
    /// A handler with no servers and no session.
    pub(crate) fn new(link: Arc<Link>) -> Handler {
        Handler { link }
    }

    /// Forgets everything of an older session.
    pub(crate) fn new_session(&self, _session: u64) {}

    /// Carries out `command`, which may take as long as a step does.
    ///
    /// # Errors
    /// A fault says why there is no reply.
    pub(crate) fn handle(&self, _session: u64, command: Command) -> Result<Reply, Fault> {
        match command {
            Command::Topology => Ok(Reply::Topology(topology::report())),
            Command::Facts => Ok(Reply::Facts(facts::report())),
            Command::Stats => Ok(Reply::Stats(Vec::new())),
            Command::Diagnose => Ok(Reply::Diagnosis(diagnose::report())),
            Command::Mark { marker } => mark(&marker),
            Command::PowerOff => Ok(power_off()),
            Command::Step { step, .. } => {
                Err(unsupported(&format!("step {} is not known here", step.kind())))
            }
        }
    }
}

fn mark(marker: &str) -> Result<Reply, Fault> {
    let good = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if marker.is_empty() || marker.len() > 64 || !marker.bytes().all(good) {
        return Err(Fault { kind: FaultKind::Agent, text: "not a marker".to_owned() });
    }
    let tainted = facts::tainted();
    kmsg::write(5, &format!("lab-mark: {marker}"))
        .map_err(|e| Fault { kind: FaultKind::Agent, text: format!("kernel log: {e}") })?;
    Ok(Reply::Marked { tainted })
}

/// Powers off a moment later, so that the reply is out first.
fn power_off() -> Reply {
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_millis(50));
        power::sync_and_off();
    });
    Reply::PoweringOff
}

fn unsupported(text: &str) -> Fault {
    Fault { kind: FaultKind::Unsupported, text: text.to_owned() }
}
