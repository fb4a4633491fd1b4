//! The latest arrivals of one queue: a ring of slots with one writer.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use lab_proto::server::ServerStats;

/// Slots per queue: any of the latest arrivals may all be of one queue.
const SLOTS: usize = ServerStats::MAX_ARRIVALS;

/// One request as it arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Time of arrival, nanoseconds since the telemetry was made; orders queues.
    pub at_ns: u64,
    /// Request id.
    pub unique: u64,
    /// Opcode number.
    pub opcode: u16,
    /// CPU of the server thread, up to 65535.
    pub cpu: u16,
    /// Caller's thread id.
    pub pid: u32,
}

#[derive(Debug, Default)]
struct Slot {
    at_ns: AtomicU64,
    unique: AtomicU64,
    rest: AtomicU64,
}

/// A bounded trail of arrivals.
#[derive(Debug)]
pub struct Trail {
    /// Arrivals ever written; the slot of number n is n modulo [`SLOTS`].
    head: AtomicU64,
    slots: Box<[Slot]>,
}

impl Trail {
    /// An empty trail.
    pub fn new() -> Trail {
        Trail { head: AtomicU64::new(0), slots: (0..SLOTS).map(|_| Slot::default()).collect() }
    }

    /// Adds an arrival. Only one thread may do this.
    pub fn push(&self, seen: Seen) {
        let head = self.head.load(Ordering::Relaxed);
        let slot = &self.slots[head as usize % SLOTS];
        // Readers drop the slot that `head` says is being overwritten: this store must be
        // seen before the slot's new content.
        fence(Ordering::Release);
        slot.at_ns.store(seen.at_ns, Ordering::Relaxed);
        slot.unique.store(seen.unique, Ordering::Relaxed);
        let rest = u64::from(seen.pid) << 32 | u64::from(seen.cpu) << 16 | u64::from(seen.opcode);
        slot.rest.store(rest, Ordering::Relaxed);
        self.head.store(head + 1, Ordering::Release);
    }

    /// Arrivals ever.
    pub fn total(&self) -> u64 {
        self.head.load(Ordering::Acquire)
    }

    /// The arrivals from number `from` on that are still kept, oldest first.
    pub fn since(&self, from: u64) -> Vec<Seen> {
        let end = self.head.load(Ordering::Acquire);
        let start = from.max(end.saturating_sub(SLOTS as u64));
        let copies: Vec<Seen> = (start..end).map(|number| self.copy(number)).collect();
        fence(Ordering::Acquire);
        // What the writer may have overwritten meanwhile, the slot in progress included.
        let now = self.head.load(Ordering::Relaxed);
        let valid = (now + 1).saturating_sub(SLOTS as u64);
        let torn = valid.saturating_sub(start).min(end.saturating_sub(start));
        copies[torn as usize..].to_vec()
    }

    fn copy(&self, number: u64) -> Seen {
        let slot = &self.slots[number as usize % SLOTS];
        let rest = slot.rest.load(Ordering::Relaxed);
        Seen {
            at_ns: slot.at_ns.load(Ordering::Relaxed),
            unique: slot.unique.load(Ordering::Relaxed),
            opcode: rest as u16,
            cpu: (rest >> 16) as u16,
            pid: (rest >> 32) as u32,
        }
    }
}

impl Default for Trail {
    fn default() -> Trail {
        Trail::new()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn seen(number: u64) -> Seen {
        Seen { at_ns: number, unique: number, opcode: 15, cpu: 3, pid: number as u32 }
    }

    #[test]
    fn the_latest_are_kept_in_order() {
        let trail = Trail::new();
        (0..SLOTS as u64 + 10).for_each(|n| trail.push(seen(n)));
        let kept = trail.since(0);
        // One slot is given up because its writer might be in it.
        assert_eq!(kept.len(), SLOTS - 1);
        assert_eq!(kept[0], seen(11));
        assert_eq!(trail.since(SLOTS as u64 + 9), vec![seen(SLOTS as u64 + 9)]);
        assert!(trail.since(SLOTS as u64 + 10).is_empty());
    }

    #[test]
    fn a_reader_never_sees_a_torn_arrival() {
        let trail = Arc::new(Trail::new());
        let stop = Arc::new(AtomicBool::new(false));
        let writer = std::thread::spawn({
            let (trail, stop) = (trail.clone(), stop.clone());
            move || {
                let mut number = 0;
                while !stop.load(Ordering::Relaxed) {
                    trail.push(seen(number));
                    number += 1;
                }
            }
        });
        for _ in 0..200 {
            for arrival in trail.since(0) {
                assert_eq!(arrival, seen(arrival.unique));
            }
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    }
}
