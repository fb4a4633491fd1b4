//! Queue policies: where a kernel says that it sends background requests. Pure.

use lab_proto::server::Queues;

use crate::config::topology::{Node, Topology};

/// The policies that kernels can declare and the lab knows the rule of.
pub const POLICIES: [&str; 5] =
    ["submitting-cpu", "next-cpu", "same-node", "other-core", "other-node"];

/// The queue that an idle kernel with one queue for each possible CPU sends a background request
/// of `cpu` to; nothing where the policy is unknown, or where the kernel's own choice is needed
/// to tell: nodes of CPUs that are possible and not present are dealt out by the kernel.
pub fn background_queue(policy: &str, topology: &Topology, cpu: u32) -> Option<u32> {
    let spare = topology.max_cpus > topology.cpus;
    let node = |cpu| topology.node_of(cpu);
    let next = |fits: &dyn Fn(u32) -> bool| {
        let others = (1..topology.max_cpus).map(|step| (cpu + step) % topology.max_cpus);
        // Where none fits the request stays.
        Some(others.into_iter().find(|other| fits(*other)).unwrap_or(cpu))
    };
    match policy {
        "submitting-cpu" => Some(cpu),
        "next-cpu" => next(&|_| true),
        "other-core" => next(&|other| topology.core_of(other) != topology.core_of(cpu)),
        "same-node" if !spare => next(&|other| node(other) == node(cpu)),
        "other-node" if !spare => next(&|other| node(other) != node(cpu)),
        _ => None,
    }
}

/// The queues that a server registers.
pub fn queues(wanted: &Queues, topology: &Topology) -> Vec<u32> {
    let possible = 0..topology.max_cpus;
    match wanted {
        Queues::All => possible.collect(),
        Queues::First { count } => possible.take(*count as usize).collect(),
        Queues::Of { cpus } => possible.filter(|cpu| cpus.contains(cpu)).collect(),
        Queues::PerNode => {
            let first = |node: &Node| node.cpus.iter().find(|c| **c < topology.cpus).copied();
            let mut queues: Vec<u32> = topology.nodes.iter().filter_map(first).collect();
            queues.sort_unstable();
            queues
        }
    }
}

/// Whether a queue is as near to a CPU as one of `all` can be.
pub fn is_near(queue: u32, cpu: u32, all: &[u32], topology: &Topology) -> bool {
    if all.contains(&cpu) {
        return queue == cpu;
    }
    let node = topology.node_of(cpu);
    let has_own = all.iter().any(|queue| topology.node_of(*queue) == node);
    all.contains(&queue) && (!has_own || topology.node_of(queue) == node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::load;
    use crate::config::shipped;

    fn queues(policy: &str, topology: &str) -> Vec<Option<u32>> {
        let project = load(&shipped::files()).unwrap();
        let topology = &project.topologies[topology];
        (0..topology.cpus).map(|cpu| background_queue(policy, topology, cpu)).collect()
    }

    #[test]
    fn each_policy_has_its_next_cpu() {
        let some = |queues: &[u32]| queues.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(queues("submitting-cpu", "2x2"), some(&[0, 1, 2, 3]));
        assert_eq!(queues("next-cpu", "2x2"), some(&[1, 2, 3, 0]));
        assert_eq!(queues("same-node", "2x2"), some(&[1, 0, 3, 2]));
        assert_eq!(queues("other-node", "2x2"), some(&[2, 2, 0, 0]));
        assert_eq!(queues("same-node", "2x4-interleaved"), some(&[2, 3, 4, 5, 6, 7, 0, 1]));
        // Two threads a core: the neighbour of an even CPU is the same core.
        assert_eq!(queues("other-core", "smt")[..4], some(&[2, 2, 4, 4])[..]);
        assert_eq!(queues("other-node", "1x2"), some(&[0, 1]));
        assert_eq!(queues("next-cpu", "spare"), some(&[1, 2, 3, 4]));
        assert_eq!(queues("same-node", "spare"), [None; 4]);
        assert_eq!(queues("of-my-own", "2x2"), [None; 4]);
    }

    #[test]
    fn a_queue_of_the_node_is_nearer_than_any_other() {
        let project = load(&shipped::files()).unwrap();
        let topology = &project.topologies["2x2"];
        let per_node = super::queues(&Queues::PerNode, topology);
        assert_eq!(per_node, [0, 2]);
        assert!(is_near(0, 1, &per_node, topology) && !is_near(2, 1, &per_node, topology));
        assert!(!is_near(2, 0, &per_node, topology) && !is_near(3, 3, &per_node, topology));
        // A node without a queue takes any that is there.
        assert!(is_near(1, 3, &[0, 1], topology) && !is_near(3, 3, &[0, 1], topology));
        assert_eq!(super::queues(&Queues::First { count: 99 }, topology).len(), 4);
    }

    /// Queues of CPU 0, 1, 2, ... in a snapshot of one step.
    fn placed(topology: &str, policy: &str) -> Vec<u32> {
        let path = format!("snapshots/placement/background/{topology}@{policy}.snap");
        let found = shipped::snapshots().iter().find(|(known, _)| *known == path);
        let text = found.unwrap_or_else(|| panic!("{path}")).1;
        let matrix = text.split_once("## place\n").unwrap().1;
        let columns = |line: &str| -> Vec<String> {
            line.split_whitespace().filter(|word| *word != "|").map(str::to_owned).collect()
        };
        let mut lines = matrix.lines();
        let queues: Vec<u32> =
            columns(lines.next().unwrap())[1..].iter().map(|q| q.parse().unwrap()).collect();
        let mut rows: Vec<(u32, u32)> = lines
            .filter(|line| line.starts_with("node "))
            .map(|line| {
                let words = columns(line);
                let at = words[4..].iter().position(|cell| cell == "*").unwrap();
                (words[3].parse().unwrap(), queues[at])
            })
            .collect();
        rows.sort_unstable();
        rows.into_iter().map(|(_, queue)| queue).collect()
    }

    #[test]
    fn snapshots_keep_to_the_rule_of_their_policy() {
        let project = load(&shipped::files()).unwrap();
        let mut held = 0;
        for (policy, topology) in
            POLICIES.iter().flat_map(|p| project.topologies.values().map(move |t| (p, t)))
        {
            for (cpu, queue) in placed(&topology.name, policy).into_iter().enumerate() {
                if let Some(wanted) = background_queue(policy, topology, cpu as u32) {
                    assert_eq!(queue, wanted, "{policy} {} cpu {cpu}", topology.name);
                    held += 1;
                }
            }
        }
        assert!(held > 200, "only {held} were held");
    }

    #[test]
    fn the_table_of_the_document_is_that_of_the_snapshots() {
        let text = include_str!("../../docs/placement.md");
        let mut rows = 0;
        for part in text.split("\n## ").skip(1) {
            let policy = part.lines().next().unwrap();
            for row in part.lines().filter_map(|line| line.strip_prefix("| `")) {
                let (topology, rest) = row.split_once("` | ").unwrap();
                let queues = placed(topology, policy);
                let wanted: Vec<String> = queues.iter().map(u32::to_string).collect();
                assert_eq!(rest.trim_end_matches(" |"), wanted.join(" "), "{policy} {topology}");
                rows += 1;
            }
        }
        assert_eq!(rows, POLICIES.len() * 9);
    }
}
