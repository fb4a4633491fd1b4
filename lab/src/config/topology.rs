//! The CPU and NUMA layout of a guest, checked.

use std::collections::BTreeSet;

/// A guest's layout. CPU numbers run over sockets, then cores, then threads: with `threads` 2
/// the CPUs 0 and 1 are siblings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// File stem, e.g. `2x4`.
    pub name: String,
    /// One line for people.
    pub summary: String,
    /// CPUs present at boot.
    pub cpus: u32,
    /// Possible CPUs, at least `cpus`, equal to sockets x cores x threads.
    pub max_cpus: u32,
    /// Sockets.
    pub sockets: u32,
    /// Cores per socket.
    pub cores: u32,
    /// Threads per core.
    pub threads: u32,
    /// NUMA nodes; together their CPUs are 0 to `max_cpus` - 1, each once.
    pub nodes: Vec<Node>,
    /// Distance matrix; absent means 10 on the diagonal and 20 elsewhere.
    pub distances: Option<Vec<Vec<u8>>>,
}

/// One NUMA node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// CPUs, possibly none.
    pub cpus: BTreeSet<u32>,
    /// Memory, bytes; 0 for a node without memory.
    pub memory_bytes: u64,
}

impl Topology {
    /// Memory of all nodes, bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.nodes.iter().map(|n| n.memory_bytes).sum()
    }

    /// Node of a CPU.
    pub fn node_of(&self, cpu: u32) -> Option<usize> {
        self.nodes.iter().position(|n| n.cpus.contains(&cpu))
    }

    /// Socket of a CPU.
    pub fn socket_of(&self, cpu: u32) -> u32 {
        cpu / (self.cores * self.threads)
    }

    /// Core of a CPU, counted over all sockets.
    pub fn core_of(&self, cpu: u32) -> u32 {
        cpu / self.threads
    }
}
