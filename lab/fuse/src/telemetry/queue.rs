//! Counters of one queue. One thread writes; any thread reads.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::abi::opcode::Opcode;

use super::trail::{Seen, Trail};

/// Slots of a count by opcode: the numbers below, and one for all that is unknown.
const KINDS: usize = 64;
const UNKNOWN: usize = 0;

/// Counts by opcode.
#[derive(Debug)]
pub struct Counts([AtomicU64; KINDS]);

impl Counts {
    /// All zero.
    pub fn new() -> Counts {
        Counts([const { AtomicU64::new(0) }; KINDS])
    }

    /// Counts one more of an opcode number.
    pub fn count(&self, opcode: u32) {
        bump(&self.0[if (opcode as usize) < KINDS { opcode as usize } else { UNKNOWN }]);
    }

    /// A copy.
    pub fn snapshot(&self) -> [u64; KINDS] {
        std::array::from_fn(|kind| self.0[kind].load(Ordering::Relaxed))
    }
}

impl Default for Counts {
    fn default() -> Counts {
        Counts::new()
    }
}

/// Names and numbers of what was counted since `base`, sorted by name.
pub(super) fn named(now: &[u64; KINDS], base: &[u64; KINDS]) -> Vec<(String, u64)> {
    let mut named: Vec<(String, u64)> = (0..KINDS)
        .filter(|&kind| now[kind] > base[kind])
        .map(|kind| {
            let name = Opcode::from_number(kind as u32).map_or("unknown", Opcode::name);
            (name.to_owned(), now[kind] - base[kind])
        })
        .collect();
    named.sort();
    named
}

/// Adds one. Each counter has one writing thread, so no locked instruction is needed.
fn bump(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// Telemetry of one queue, or of one reader thread in classic mode.
#[derive(Debug, Default)]
#[repr(align(128))] // queues must not share cache lines
pub struct Queue {
    pub(super) arrived: Counts,
    pub(super) replied: AtomicU64,
    pub(super) in_flight: AtomicU32,
    pub(super) trail: Trail,
}

impl Queue {
    /// A request arrived. Only the queue's thread may say so.
    pub fn arrived(&self, seen: Seen) {
        self.arrived.count(u32::from(seen.opcode));
        self.in_flight.store(self.in_flight.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.trail.push(seen);
    }

    /// A request is done with; `replied` unless it is of a kind without a reply.
    pub fn finished(&self, replied: bool) {
        let in_flight = self.in_flight.load(Ordering::Relaxed).saturating_sub(1);
        self.in_flight.store(in_flight, Ordering::Relaxed);
        if replied {
            bump(&self.replied);
        }
    }
}
