//! Files of `scenarios/topologies/`: read and checked.
//!
//! Keys: `summary`; `sockets`, `cores` (per socket, default 1), `threads` (per core, default 1);
//! `max-cpus` (their product, may be left out), `cpus` (present at boot, default all);
//! `distances` (a matrix, default 10 on the diagonal and 20 elsewhere); one `[[node]]` a NUMA
//! node with `cpus` (a list such as `"0-3,8"`, may be left out) and `memory` (a size, none when
//! left out).

use super::problem::{FileProblems, SourceFile};
use super::reader::{Table, read_file};
use super::topology::{Node, Topology};
use super::value::{At, CpuList, MAX_CPUS, Size};

/// Most NUMA nodes.
const MAX_NODES: usize = 64;

/// Least memory of a guest, bytes: a kernel and the agent's image do not run in less.
const MIN_MEMORY_BYTES: u64 = 256 << 20;

/// Memory of a node comes in units of this, bytes.
const MEMORY_UNIT_BYTES: u64 = 1 << 20;

/// Reads a topology called `name`.
pub fn read(name: &str, file: &SourceFile) -> Result<Topology, FileProblems> {
    read_file(file, |root| topology(name, root))
}

fn topology(name: &str, root: &Table<'_>) -> Option<Topology> {
    let summary = root.required("summary");
    let sockets = root.number("sockets", 1..=MAX_CPUS, 1);
    let cores = root.number("cores", 1..=MAX_CPUS, 1);
    let threads = root.number("threads", 1..=16, 1);
    let max_cpus = possible_cpus(root, sockets, cores, threads);
    let cpus = present_cpus(root, max_cpus);
    let tables = root.tables("node", MAX_NODES);
    let nodes: Vec<Node> = tables.iter().map(node).collect();
    let distances: Option<Vec<Vec<At<i64>>>> = root.optional("distances");
    let topology = Topology {
        name: name.into(),
        summary: summary?,
        cpus: cpus?,
        max_cpus: max_cpus?,
        sockets,
        cores,
        threads,
        nodes,
        distances: distances.map(|rows| matrix(root, &rows, tables.len())),
    };
    check_cpus(root, &tables, &topology);
    check_sockets(root, &topology);
    check_memory(root, &topology);
    Some(topology)
}

fn possible_cpus(root: &Table<'_>, sockets: u32, cores: u32, threads: u32) -> Option<u32> {
    let product = u64::from(sockets) * u64::from(cores) * u64::from(threads);
    let given = root.optional_number("max-cpus", 1..=MAX_CPUS);
    let text = format!("{sockets} sockets x {cores} cores x {threads} threads = {product} CPUs");
    if product > u64::from(MAX_CPUS) {
        root.sink().add(root.span_of("cores"), format!("{text}, the bound is {MAX_CPUS}"));
        return None;
    }
    if let Some(given) = given.filter(|given| u64::from(*given) != product) {
        root.sink().add(root.span_of("max-cpus"), format!("`max-cpus` is {given}, but {text}"));
    }
    u32::try_from(product).ok()
}

fn present_cpus(root: &Table<'_>, max_cpus: Option<u32>) -> Option<u32> {
    let cpus = root.optional_number("cpus", 1..=MAX_CPUS);
    let max_cpus = max_cpus?;
    match cpus {
        Some(cpus) if cpus > max_cpus => {
            root.sink().add(
                root.span_of("cpus"),
                format!("{cpus} CPUs, but only {max_cpus} are possible"),
            );
            None
        }
        _ => Some(cpus.unwrap_or(max_cpus)),
    }
}

fn node(table: &Table<'_>) -> Node {
    let cpus: Option<CpuList> = table.optional("cpus");
    let memory_bytes = table.optional("memory").map_or(0, |size: Size| size.0);
    if !memory_bytes.is_multiple_of(MEMORY_UNIT_BYTES) {
        table.sink().add(table.span_of("memory"), "`memory` must be whole MiB");
    }
    table.finish();
    Node { cpus: cpus.map_or_else(Default::default, |list| list.0), memory_bytes }
}

/// Each possible CPU is in exactly one node, and no other CPU is in any.
fn check_cpus(root: &Table<'_>, tables: &[Table<'_>], topology: &Topology) {
    if tables.is_empty() {
        root.sink().hint(root.span(), "missing [[node]]", "a topology has at least one node");
        return;
    }
    for (number, (table, node)) in tables.iter().zip(&topology.nodes).enumerate() {
        let at = table.span_of("cpus");
        for cpu in node.cpus.iter().filter(|cpu| **cpu >= topology.max_cpus) {
            let most = topology.max_cpus - 1;
            root.sink()
                .add(at.clone(), format!("CPU {cpu} in node {number}, but the last one is {most}"));
        }
        for (earlier, other) in topology.nodes[..number].iter().enumerate() {
            for cpu in node.cpus.intersection(&other.cpus) {
                root.sink()
                    .add(at.clone(), format!("CPU {cpu} is in node {earlier} and node {number}"));
            }
        }
    }
    let homeless: Vec<String> = (0..topology.max_cpus)
        .filter(|cpu| topology.node_of(*cpu).is_none())
        .map(|cpu| cpu.to_string())
        .collect();
    if !homeless.is_empty() {
        root.sink().add(tables[0].span(), format!("CPU {} in no node", homeless.join(", ")));
    }
}

/// A socket lies inside one node: kernels warn at boot about any other layout.
fn check_sockets(root: &Table<'_>, topology: &Topology) {
    for socket in 0..topology.sockets {
        let mut nodes: Vec<String> = (0..topology.max_cpus)
            .filter(|cpu| topology.socket_of(*cpu) == socket)
            .filter_map(|cpu| topology.node_of(cpu))
            .map(|node| node.to_string())
            .collect();
        nodes.sort();
        nodes.dedup();
        if nodes.len() > 1 {
            root.sink().hint(
                root.span_of("sockets"),
                format!("socket {socket} spans the nodes {}", nodes.join(" and ")),
                "use more sockets with fewer cores each, or move the CPUs",
            );
        }
    }
}

fn check_memory(root: &Table<'_>, topology: &Topology) {
    let total = topology.nodes.iter().try_fold(0u64, |sum, n| sum.checked_add(n.memory_bytes));
    if !topology.nodes.is_empty() && total.is_some_and(|total| total < MIN_MEMORY_BYTES) {
        root.sink().add(
            root.span_of("node"),
            format!("all nodes together need at least {} MiB of memory", MIN_MEMORY_BYTES >> 20),
        );
    }
}

/// A square matrix: 10 on the diagonal, 11 to 254 elsewhere.
fn matrix(root: &Table<'_>, rows: &[Vec<At<i64>>], nodes: usize) -> Vec<Vec<u8>> {
    let shape = rows.len() == nodes && rows.iter().all(|row| row.len() == nodes);
    if !shape {
        root.sink().add(
            root.span_of("distances"),
            format!("`distances` must be {nodes} rows of {nodes} numbers, one for each node"),
        );
        return Vec::new();
    }
    let mut matrix = vec![vec![10; nodes]; nodes];
    for (i, row) in rows.iter().enumerate() {
        for (j, cell) in row.iter().enumerate() {
            match (i == j, u8::try_from(cell.value)) {
                (true, Ok(10)) => {}
                (true, _) => root.sink().add(
                    cell.span.clone(),
                    format!("the distance of node {i} to itself must be 10"),
                ),
                (false, Ok(distance @ 11..=254)) => matrix[i][j] = distance,
                (false, _) => root.sink().add(
                    cell.span.clone(),
                    format!("the distance of node {i} to node {j} must be 11 to 254"),
                ),
            }
        }
    }
    matrix
}

#[cfg(test)]
#[path = "topology_tests.rs"]
mod tests;
