//! Observations as text that is the same whenever what it tells of is the same: no times, no
//! ids, no counts that depend on luck.

use std::collections::BTreeMap;
use std::fmt::Write;

use lab_proto::observe::{
    FioObservation, Observation, PlaceObservation, ServeObservation, TeardownObservation,
    UnmountObservation,
};
use lab_proto::server::Transport;

use super::evidence::Evidence;
use super::flags;
use crate::config::topology::Topology;
use crate::report::escape::clip;

/// Most lines of a tree that are taken.
const MAX_LINES: usize = 4096;

/// The observation of a step as text. `numbers` shows what depends on the topology.
pub(super) fn step(evidence: &Evidence<'_>, step: &str, numbers: bool) -> Option<String> {
    let mut out = String::new();
    match evidence.observation(step)? {
        Observation::Served(s) => served(&mut out, s, numbers),
        Observation::Mounted => out.push_str("mounted\n"),
        Observation::Unmounted(u) => unmounted(&mut out, u),
        Observation::Tree(t) => {
            for line in t.lines.iter().take(MAX_LINES) {
                line_of(&mut out, &clip(line, 200));
            }
        }
        Observation::Placed(p) => placed(&mut out, p, evidence.topology),
        Observation::TornDown(t) => torn_down(&mut out, t),
        Observation::Fio(f) => fio(&mut out, f),
        Observation::Sabotaged => out.push_str("sabotaged\n"),
    }
    Some(out)
}

fn line_of(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

fn pair(out: &mut String, name: &str, value: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "{name}: {}", clip(value, 200));
}

fn served(out: &mut String, seen: &ServeObservation, numbers: bool) {
    let report = &seen.report;
    pair(out, "transport", report.transport.name());
    if report.transport == Transport::Ring {
        let possible = seen.possible_cpus;
        let queues = match report.queues {
            n if n == possible && !numbers => "one for each possible CPU".into(),
            n => format!("{n} for {possible} possible CPUs"),
        };
        pair(out, "queues", &queues);
        pair(out, "depth", &report.depth.to_string());
    }
    pair(out, "max_write", &report.max_write.to_string());
    pair(out, "flags", &flags::names(report.accepted_flags).join(" "));
}

fn unmounted(out: &mut String, seen: &UnmountObservation) {
    pair(out, "server", seen.server_exit.as_deref().unwrap_or("none"));
    pair(out, "connection gone", yes(seen.connection_gone));
}

fn yes(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

/// Rows are CPUs that submitted, columns queues, nodes marked by `|`. `*` is every request of
/// the row, a number a part of them, `.` none.
fn placed(out: &mut String, seen: &PlaceObservation, topology: &Topology) {
    let mut rows: BTreeMap<u32, BTreeMap<u32, u64>> = BTreeMap::new();
    for cell in &seen.cells {
        *rows.entry(cell.cpu).or_default().entry(cell.queue).or_default() += u64::from(cell.count);
    }
    for cpu in &seen.client_cpus {
        rows.entry(*cpu).or_default();
    }
    let queues = columns(topology);
    line_of(out, &format!("        queue {}", join(&queues, |q| q.to_string())));
    for (cpu, row) in &rows {
        let node = topology.node_of(*cpu).map_or("-".into(), |n| n.to_string());
        let total: u64 = row.values().sum();
        let mark = |queue: u32| match row.get(&queue) {
            None => ".".to_string(),
            Some(n) if *n == total => "*".to_string(),
            Some(n) => n.to_string(),
        };
        let line = format!("node {node} cpu {cpu:<2} {}", join(&queues, mark));
        line_of(out, line.trim_end());
        let outside = row.keys().filter(|q| !queues.iter().flatten().any(|known| known == *q));
        for queue in outside.take(8) {
            line_of(out, &format!("node {node} cpu {cpu:<2} also queue {queue}"));
        }
    }
    pair(out, "failed calls", &seen.errors.len().to_string());
}

/// Queues by node of their CPU; those of CPUs without a node come last.
fn columns(topology: &Topology) -> Vec<Vec<u32>> {
    let of = |node: Option<usize>| -> Vec<u32> {
        (0..topology.max_cpus).filter(|cpu| topology.node_of(*cpu) == node).collect()
    };
    let nodes = (0..topology.nodes.len()).map(Some).chain(std::iter::once(None));
    nodes.map(of).filter(|queues| !queues.is_empty()).collect()
}

fn join(queues: &[Vec<u32>], cell: impl Fn(u32) -> String) -> String {
    let part = |q: &Vec<u32>| q.iter().map(|q| format!("{:>3}", cell(*q))).collect::<String>();
    queues.iter().map(part).collect::<Vec<_>>().join(" |")
}

/// Not the errno of each client: which one it is depends on where the ending met the call.
fn torn_down(out: &mut String, seen: &TeardownObservation) {
    let returned = seen.clients.iter().filter(|c| c.returned).count();
    let all = returned == seen.clients.len();
    let text = if all { "all".into() } else { format!("{returned} of {}", seen.clients.len()) };
    pair(out, "client calls returned", &text);
    let waiting = seen.waiting_after.unwrap_or(0);
    pair(out, "waiting", &waiting.to_string());
    pair(out, "connection gone", yes(seen.connection_gone));
    pair(out, "server", &seen.server_exit);
    pair(out, "tasks in D", &seen.d_tasks.len().to_string());
}

fn fio(out: &mut String, seen: &FioObservation) {
    pair(out, "fio", &seen.exit);
}
