//! Planted misbehaviour: which request it hits.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lab_proto::server::ServerFault;

use crate::abi::opcode::{Opcode, by_name};

/// A fault of the spec, with what it has seen so far. It does nothing until it is armed, so
/// that the server's own start neither counts nor is hit.
#[derive(Debug)]
pub struct FaultPlan {
    armed: AtomicBool,
    opcode: Opcode,
    nth: u64,
    seen: AtomicU64,
}

impl FaultPlan {
    /// From the spec. None when it names an opcode that does not exist, or the 0th.
    pub fn new(fault: &ServerFault) -> Option<FaultPlan> {
        let ServerFault::DropReply { opcode, nth } = fault;
        let opcode = by_name(opcode)?;
        let (armed, seen) = (AtomicBool::new(false), AtomicU64::new(0));
        (*nth > 0).then_some(FaultPlan { armed, opcode, nth: *nth, seen })
    }

    /// Counts a request; true when its reply is to be dropped.
    pub fn hits(&self, opcode: Opcode) -> bool {
        let watched = opcode == self.opcode && self.armed.load(Ordering::Relaxed);
        watched && self.seen.fetch_add(1, Ordering::Relaxed) + 1 == self.nth
    }

    /// From now on requests count.
    pub fn arm(&self) {
        self.armed.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_nth_of_the_opcode_is_hit() {
        let fault = ServerFault::DropReply { opcode: "read".into(), nth: 2 };
        let plan = FaultPlan::new(&fault).unwrap();
        assert!(!plan.hits(Opcode::Read) && !plan.hits(Opcode::Read));
        plan.arm();
        let hits = [Opcode::Read, Opcode::Lookup, Opcode::Read, Opcode::Read].map(|o| plan.hits(o));
        assert_eq!(hits, [false, false, true, false]);
    }

    #[test]
    fn nonsense_is_refused() {
        for (opcode, nth) in [("reed", 1), ("read", 0)] {
            let fault = ServerFault::DropReply { opcode: opcode.into(), nth };
            assert!(FaultPlan::new(&fault).is_none());
        }
    }
}
