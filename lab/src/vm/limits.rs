//! How long each part of a VM's life may take.

use std::time::Duration;

use super::spec::Accel;

/// Limits of one VM, each for one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From the start of QEMU to each of its sockets.
    pub connect: Duration,
    /// Greeting and negotiation of the machine protocol.
    pub greeting: Duration,
    /// One command of the machine protocol.
    pub command: Duration,
    /// From the hello to its answer in a cold boot.
    pub boot: Duration,
    /// From the hello to its answer in a clone.
    pub wake: Duration,
    /// A short request to the agent.
    pub request: Duration,
    /// Saving or loading a template's state.
    pub state: Duration,
    /// Each step of the end of a VM.
    pub end: Duration,
}

impl Limits {
    /// The limits under an accelerator; `factor` stretches them further, e.g. for KASAN.
    pub fn new(accel: Accel, factor: u32) -> Limits {
        let seconds = |base: u64| Duration::from_secs(base) * accel.slowdown() * factor;
        Limits {
            connect: Duration::from_secs(10),
            greeting: Duration::from_secs(10),
            command: Duration::from_secs(10),
            boot: seconds(15),
            wake: seconds(5),
            request: seconds(5),
            state: seconds(5),
            end: Duration::from_secs(3),
        }
    }
}
