//! Layouts for tests of this module, built in code so that they depend on no file.

use crate::config::topology::{Node, Topology};

const MIB: u64 = 1 << 20;

/// All of them.
pub(crate) fn all() -> Vec<Topology> {
    vec![
        even("1x2", 1, 2),
        even("1x4", 1, 4),
        even("2x2", 2, 2),
        even("2x4", 2, 4),
        interleaved(),
        even("4x2", 4, 2),
        smt(),
        spare(),
        memless(),
    ]
}

/// `nodes` nodes of one socket with `cores` cores.
pub(crate) fn even(name: &str, nodes: u32, cores: u32) -> Topology {
    let node = |id| Node {
        cpus: (id * cores..(id + 1) * cores).collect(),
        memory_bytes: 512 * MIB / u64::from(nodes),
    };
    Topology {
        name: name.into(),
        summary: String::new(),
        cpus: nodes * cores,
        max_cpus: nodes * cores,
        sockets: nodes,
        cores,
        threads: 1,
        nodes: (0..nodes).map(node).collect(),
        distances: None,
    }
}

/// Two nodes whose CPU numbers alternate.
pub(crate) fn interleaved() -> Topology {
    let node = |id| Node { cpus: (id..8).step_by(2).collect(), memory_bytes: 256 * MIB };
    let nodes = vec![node(0), node(1)];
    Topology { sockets: 8, cores: 1, nodes, ..even("2x4-interleaved", 2, 4) }
}

/// Two nodes of two cores of two threads.
pub(crate) fn smt() -> Topology {
    Topology { cores: 2, threads: 2, ..even("smt", 2, 4) }
}

/// Four CPUs present, eight possible, in two sockets of one node.
pub(crate) fn spare() -> Topology {
    let nodes = vec![Node { cpus: (0..8).collect(), memory_bytes: 512 * MIB }];
    Topology { cpus: 4, max_cpus: 8, sockets: 2, cores: 4, nodes, ..even("spare", 1, 8) }
}

/// The second node has no memory; distances differ.
pub(crate) fn memless() -> Topology {
    let mut topology = even("memless", 2, 2);
    topology.nodes[0].memory_bytes = 512 * MIB;
    topology.nodes[1].memory_bytes = 0;
    topology.distances = Some(vec![vec![10, 21], vec![21, 10]]);
    topology
}
