//! Deliberate damage, so that the lab's detection can be tested.

use std::time::Duration;

use lab_proto::message::{Fault, FaultKind};
use lab_proto::observe::Observation;
use lab_proto::step::Sabotage;

use super::run::{Context, fault};
use crate::sys::{power, process};

/// Bytes of garbage.
const GARBAGE: [u8; 4096] = [0xa5; 4096];

pub(super) fn run(what: Sabotage, context: &Context<'_>) -> Result<Observation, Fault> {
    match what {
        Sabotage::Panic => std::fs::write("/proc/sysrq-trigger", "c").map_err(agent)?,
        Sabotage::KillAgent => process::signal_self(libc::SIGKILL).map_err(agent)?,
        Sabotage::StopAgent => {
            process::signal_self(libc::SIGSTOP).map_err(agent)?;
            // The stop may come later than this returns, and must come before an answer does.
            forever();
        }
        Sabotage::StopServers => {
            for server in context.case.servers() {
                process::signal(server.report.pid, libc::SIGSTOP).map_err(agent)?;
            }
        }
        Sabotage::PowerOff => power::off(),
        Sabotage::GarbageFrames => context.link.garbage(&GARBAGE).map_err(agent)?,
        Sabotage::Sleep => forever(),
    }
    Ok(Observation::Sabotaged)
}

fn forever() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

fn agent(error: std::io::Error) -> Fault {
    fault(FaultKind::Agent, format!("sabotage: {error}"))
}
