//! Whether a guest got the CPU and NUMA layout that was asked for; pure.

use lab_proto::observe::{CpuReport, TopologyReport};

use crate::config::topology::Topology;

/// Part of a node's memory that the kernel may keep for itself, percent. The image and page
/// tables of a small guest come from its first node, and KASAN with kmemleak and lockdep keeps
/// nearly half of one. What a node lacked by mistake another one would have too much of, and the
/// upper bound is exact.
const RESERVED_PERCENT: u64 = 65;

/// The first difference between what was asked for and what the guest sees, in one line.
pub fn mismatch(want: &Topology, got: &TopologyReport) -> Option<String> {
    let all = (0..want.max_cpus).collect::<Vec<_>>();
    let present = (0..want.cpus).collect::<Vec<_>>();
    differ("possible CPUs", &all, &got.possible)
        .or_else(|| differ("present CPUs", &present, &got.present))
        .or_else(|| differ("online CPUs", &present, &got.online))
        .or_else(|| nodes(want, got))
        .or_else(|| cpus(want, got))
}

fn differ<T: PartialEq + std::fmt::Debug>(what: &str, want: &T, got: &T) -> Option<String> {
    (want != got).then(|| format!("{what}: asked for {want:?}, the guest has {got:?}"))
}

fn nodes(want: &Topology, got: &TopologyReport) -> Option<String> {
    if got.nodes.is_empty() && want.nodes.len() == 1 {
        return None; // a kernel without NUMA is right on one node
    }
    let ids = got.nodes.iter().map(|n| n.id).collect::<Vec<_>>();
    let wanted = (0..want.nodes.len() as u32).collect::<Vec<_>>();
    differ("nodes", &wanted, &ids).or_else(|| {
        want.nodes.iter().zip(&got.nodes).enumerate().find_map(|(id, (node, seen))| {
            let cpus = node.cpus.iter().copied().filter(|c| *c < want.cpus).collect::<Vec<_>>();
            differ(&format!("CPUs of node {id}"), &cpus, &seen.cpus)
                .or_else(|| memory(id, node.memory_bytes, seen.mem_kib))
                .or_else(|| distances(want, id, &seen.distances))
        })
    })
}

fn memory(id: usize, want_bytes: u64, got_kib: u64) -> Option<String> {
    let want_kib = want_bytes >> 10;
    let least = want_kib * (100 - RESERVED_PERCENT) / 100;
    let fits = got_kib <= want_kib && got_kib >= least && (want_kib == 0) == (got_kib == 0);
    (!fits).then(|| {
        format!("memory of node {id}: asked for {want_kib} KiB, the guest has {got_kib} KiB")
    })
}

fn distances(want: &Topology, id: usize, got: &[u32]) -> Option<String> {
    let row = (0..want.nodes.len()).map(|to| match &want.distances {
        Some(matrix) => u32::from(matrix[id][to]),
        None if to == id => 10,
        None => 20,
    });
    differ(&format!("distances of node {id}"), &row.collect::<Vec<_>>(), &got.to_vec())
}

fn cpus(want: &Topology, got: &TopologyReport) -> Option<String> {
    got.cpus.iter().find_map(|cpu| {
        let core = want.core_of(cpu.cpu);
        let siblings = (0..want.cpus).filter(|c| want.core_of(*c) == core).collect::<Vec<_>>();
        differ(&format!("siblings of CPU {}", cpu.cpu), &siblings, &cpu.siblings)
            .or_else(|| packages(want, cpu, &got.cpus))
    })
}

/// Package numbers are the firmware's choice; which CPUs share one is not.
fn packages(want: &Topology, cpu: &CpuReport, all: &[CpuReport]) -> Option<String> {
    all.iter().find_map(|other| {
        let together = want.socket_of(cpu.cpu) == want.socket_of(other.cpu);
        let seen = cpu.package == other.package;
        (together != seen).then(|| {
            let word = |b| if b { "one socket" } else { "two sockets" };
            format!(
                "CPUs {} and {}: asked for {}, the guest has {}",
                cpu.cpu,
                other.cpu,
                word(together),
                word(seen)
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use lab_proto::observe::NodeReport;

    use super::*;
    use crate::judge::samples::topology;

    fn report() -> TopologyReport {
        let cpu = |cpu: u32| CpuReport {
            cpu,
            package: (cpu / 2) as i32,
            core: (cpu % 2) as i32,
            siblings: vec![cpu],
        };
        let node = |id, cpus: [u32; 2], distances: [u32; 2]| NodeReport {
            id,
            cpus: cpus.into(),
            mem_kib: 220 << 10,
            distances: distances.into(),
        };
        TopologyReport {
            possible: vec![0, 1, 2, 3],
            present: vec![0, 1, 2, 3],
            online: vec![0, 1, 2, 3],
            cpus: (0..4).map(cpu).collect(),
            nodes: vec![node(0, [0, 1], [10, 20]), node(1, [2, 3], [20, 10])],
        }
    }

    #[test]
    fn what_was_asked_for_is_no_mismatch() {
        assert_eq!(mismatch(&topology(), &report()), None);
    }

    #[test]
    fn every_difference_is_named() {
        type Break = fn(&mut TopologyReport);
        let breaks: [(&str, Break); 9] = [
            ("possible", |r| r.possible.push(4)),
            ("present", |r| r.present.truncate(3)),
            ("online", |r| r.online.truncate(3)),
            ("nodes:", |r| r.nodes.truncate(1)),
            ("CPUs of node 1", |r| r.nodes[1].cpus = vec![3]),
            ("memory of node 0", |r| r.nodes[0].mem_kib = 1),
            ("distances of node 1", |r| r.nodes[1].distances = vec![21, 10]),
            ("siblings of CPU 2", |r| r.cpus[2].siblings = vec![2, 3]),
            ("CPUs 0 and 3", |r| r.cpus[3].package = 0),
        ];
        for (name, change) in breaks {
            let mut report = report();
            change(&mut report);
            let text = mismatch(&topology(), &report).unwrap_or_default();
            assert!(text.contains(name), "{name}: {text}");
        }
    }
}
