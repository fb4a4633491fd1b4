//! One request in, one result out.

use std::sync::Arc;
use std::time::Duration;

use lab_proto::message::{Command, Fault, FaultKind, Reply};
use lab_proto::step::Step;

use super::{Bulk, Case, Link, diagnose};
use crate::report::{facts, topology};
use crate::steps::{self, Context};
use crate::sys::{kmsg, power};

/// Limit of a question for telemetry, guest time.
const STATS_LIMIT: Duration = Duration::from_secs(2);

/// What requests share.
pub(crate) struct Handler {
    link: Arc<Link>,
    bulk: Bulk,
    case: Case,
}

impl Handler {
    /// A handler with no servers.
    pub(crate) fn new(link: Arc<Link>) -> Handler {
        Handler { link, bulk: Bulk::default(), case: Case::default() }
    }

    /// Forgets everything of an older session.
    pub(crate) fn new_session(&self) {
        self.case.clear();
    }

    /// Carries out `command`, which may take as long as a step does.
    ///
    /// # Errors
    /// A fault says why there is no reply.
    pub(crate) fn handle(&self, session: u64, command: Command) -> Result<Reply, Fault> {
        match command {
            Command::Topology => Ok(Reply::Topology(topology::report())),
            Command::Facts => Ok(Reply::Facts(facts::report())),
            Command::Stats => Ok(Reply::Stats(self.case.stats(STATS_LIMIT).0)),
            Command::Diagnose => Ok(Reply::Diagnosis(diagnose::report(&self.case))),
            Command::Mark { marker } => mark(&marker),
            Command::PowerOff => Ok(power_off()),
            Command::Step { step, seed, call_limit_ms } => {
                self.step(session, step, seed, Duration::from_millis(call_limit_ms))
            }
        }
    }

    fn step(
        &self,
        session: u64,
        step: Step,
        seed: u64,
        call_limit: Duration,
    ) -> Result<Reply, Fault> {
        let (link, bulk, case) = (&*self.link, &self.bulk, &self.case);
        let context = Context { link, bulk, case, session, seed, call_limit };
        steps::run(step, &context).map(Reply::Observed)
    }
}

fn mark(marker: &str) -> Result<Reply, Fault> {
    let fault = |text: String| Fault { kind: FaultKind::Agent, text };
    let good = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if marker.is_empty() || marker.len() > 64 || !marker.bytes().all(good) {
        return Err(fault("not a marker".to_owned()));
    }
    let tainted = facts::tainted();
    kmsg::write(5, &format!("lab-mark: {marker}"))
        .map_err(|e| fault(format!("kernel log: {e}")))?;
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
