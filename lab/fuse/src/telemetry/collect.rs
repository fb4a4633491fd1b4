//! Brings the queues' counts together, since the start or the last reset.

use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Instant;

use lab_proto::server::{Arrival, QueueStats, ServerStats};

use crate::abi::opcode::Opcode;

use super::queue::{Counts, Queue, named};
use super::trail::Seen;

/// All telemetry of one server.
#[derive(Debug)]
pub struct Telemetry {
    epoch: Instant,
    /// Ids, ascending, beside their counters.
    ids: Vec<u32>,
    queues: Vec<Queue>,
    /// /dev/fuse has several readers in classic mode, each with counts of its own.
    dev_fuse: Vec<Counts>,
    base: Mutex<Base>,
}

/// What was counted before the last reset. Writers are never touched by a reset.
#[derive(Debug, Clone)]
struct Base {
    queues: Vec<QueueBase>,
    dev_fuse: Vec<[u64; 64]>,
}

#[derive(Debug, Clone)]
struct QueueBase {
    arrived: [u64; 64],
    replied: u64,
    arrivals: u64,
}

impl Telemetry {
    /// For queues with these ids, ascending, and that many readers of /dev/fuse.
    pub fn new(ids: &[u32], readers: u32) -> Telemetry {
        let queues: Vec<Queue> = ids.iter().map(|_| Queue::default()).collect();
        let dev_fuse: Vec<Counts> = (0..readers).map(|_| Counts::new()).collect();
        let base = Mutex::new(Base::of(&queues, &dev_fuse));
        Telemetry { epoch: Instant::now(), ids: ids.to_vec(), queues, dev_fuse, base }
    }

    /// Nanoseconds since the telemetry was made.
    pub fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// The counters of a queue.
    ///
    /// # Panics
    /// When there is no such queue.
    pub fn queue(&self, queue: u32) -> &Queue {
        // With a queue for each CPU the id is the place.
        let at = match self.ids.get(queue as usize) {
            Some(id) if *id == queue => Ok(queue as usize),
            _ => self.ids.binary_search(&queue),
        };
        &self.queues[at.unwrap_or_else(|_| panic!("no queue {queue}"))]
    }

    /// What a reader of /dev/fuse read.
    ///
    /// # Panics
    /// When there is no such reader.
    pub fn dev_fuse(&self, reader: u32) -> &Counts {
        &self.dev_fuse[reader as usize]
    }

    /// Starts all counts and arrivals anew; what is in flight stays.
    pub fn reset(&self) {
        let base = Base::of(&self.queues, &self.dev_fuse);
        *self.base.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = base;
    }

    /// Fills the counts of `stats`; name and connection are the caller's.
    pub fn fill(&self, stats: &mut ServerStats) {
        let base = self.base.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        let mut seen: Vec<(u32, Seen)> = Vec::new();
        let mut total = 0;
        for (id, (queue, base)) in self.ids.iter().zip(self.queues.iter().zip(&base.queues)) {
            stats.queues.push(QueueStats {
                queue: *id,
                arrived: named(&queue.arrived.snapshot(), &base.arrived),
                replied: queue.replied.load(Ordering::Relaxed) - base.replied,
                in_flight: queue.in_flight.load(Ordering::Relaxed),
            });
            total += queue.trail.total() - base.arrivals;
            seen.extend(queue.trail.since(base.arrivals).into_iter().map(|s| (*id, s)));
        }
        seen.sort_by_key(|(_, seen)| seen.at_ns);
        let surplus = seen.len().saturating_sub(ServerStats::MAX_ARRIVALS);
        stats.arrivals = seen.drain(surplus..).map(arrival).collect();
        stats.arrivals_lost = total.saturating_sub(stats.arrivals.len() as u64);
        stats.dev_fuse = self.dev_fuse_since(&base);
    }

    fn dev_fuse_since(&self, base: &Base) -> Vec<(String, u64)> {
        let mut now = [0; 64];
        let mut then = [0; 64];
        for (counts, base) in self.dev_fuse.iter().zip(&base.dev_fuse) {
            let counts = counts.snapshot();
            for kind in 0..64 {
                now[kind] += counts[kind];
                then[kind] += base[kind];
            }
        }
        named(&now, &then)
    }
}

impl Base {
    fn of(queues: &[Queue], dev_fuse: &[Counts]) -> Base {
        let queues = queues.iter().map(|queue| QueueBase {
            arrived: queue.arrived.snapshot(),
            replied: queue.replied.load(Ordering::Relaxed),
            arrivals: queue.trail.total(),
        });
        Base { queues: queues.collect(), dev_fuse: dev_fuse.iter().map(Counts::snapshot).collect() }
    }
}

fn arrival((queue, seen): (u32, Seen)) -> Arrival {
    let opcode = Opcode::from_number(u32::from(seen.opcode)).map_or("unknown", Opcode::name);
    Arrival {
        unique: seen.unique,
        opcode: opcode.to_owned(),
        queue,
        server_cpu: u32::from(seen.cpu),
        pid: seen.pid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(at_ns: u64, opcode: u16) -> Seen {
        Seen { at_ns, unique: at_ns * 2, opcode, cpu: 1, pid: 7 }
    }

    fn stats(telemetry: &Telemetry) -> ServerStats {
        let mut stats = ServerStats::default();
        telemetry.fill(&mut stats);
        stats
    }

    #[test]
    fn queues_are_counted_apart_and_arrivals_merged_by_time() {
        let telemetry = Telemetry::new(&[0, 1], 1);
        telemetry.queue(1).arrived(seen(5, 15));
        telemetry.queue(0).arrived(seen(9, 1));
        telemetry.queue(0).arrived(seen(3, 1));
        telemetry.queue(0).finished(true);
        telemetry.dev_fuse(0).count(2);
        let stats = stats(&telemetry);
        assert_eq!(stats.queues[0].arrived, [("lookup".to_owned(), 2)]);
        assert_eq!((stats.queues[0].replied, stats.queues[0].in_flight), (1, 1));
        assert_eq!(stats.queues[1].arrived, [("read".to_owned(), 1)]);
        assert_eq!(stats.dev_fuse, [("forget".to_owned(), 1)]);
        let order: Vec<u64> = stats.arrivals.iter().map(|a| a.unique).collect();
        assert_eq!(order, [6, 10, 18]);
    }

    #[test]
    fn a_reset_leaves_only_what_is_in_flight() {
        let telemetry = Telemetry::new(&[0], 1);
        telemetry.queue(0).arrived(seen(1, 15));
        telemetry.reset();
        let stats = stats(&telemetry);
        assert!(stats.arrivals.is_empty() && stats.queues[0].arrived.is_empty());
        assert_eq!(stats.queues[0].in_flight, 1);
        assert_eq!(stats.arrivals_lost, 0);
    }

    #[test]
    fn arrivals_are_bounded_and_the_rest_is_counted() {
        let telemetry = Telemetry::new(&[0, 1], 1);
        for n in 0..5000 {
            telemetry.queue(n as u32 % 2).arrived(seen(n, 15));
        }
        let stats = stats(&telemetry);
        assert_eq!(stats.arrivals.len(), ServerStats::MAX_ARRIVALS);
        assert_eq!(stats.arrivals_lost, 5000 - ServerStats::MAX_ARRIVALS as u64);
    }

    #[test]
    fn an_opcode_out_of_range_is_counted_as_unknown() {
        let telemetry = Telemetry::new(&[0], 1);
        telemetry.queue(0).arrived(seen(1, 4096));
        assert_eq!(stats(&telemetry).queues[0].arrived, [("unknown".to_owned(), 1)]);
    }
}
