//! Which queue the requests of each CPU arrive on.
//!
//! A request is matched between the kernel's trace and the server's record by its unique id.
//! Only requests whose submitter is a client of the step count: a late RELEASE of an earlier
//! step or the flusher would make the matrix differ from run to run. FORGET and INTERRUPT
//! never travel on the ring, and the clients cause none.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lab_proto::message::{Fault, FaultKind};
use lab_proto::observe::{CpuSource, Observation, PlaceCell, PlaceObservation};
use lab_proto::server::{Arrival, ServerAsk};

use super::child::{Client, Line};
use super::run::{ASK_LIMIT, Context, fault};
use super::trace::{Sent, Trace};
use crate::agent::Server;
use crate::report::{cpulist, facts};

/// Opcodes that do not travel on the ring.
const OFF_RING: [&str; 3] = ["forget", "batch_forget", "interrupt"];

/// Most requests per CPU: the server keeps the latest arrivals, and they must hold these.
const MAX_REQUESTS: u32 = 1024;

/// Most error lines in an observation.
const MAX_ERRORS: usize = 256;

/// What the clients did and the server saw.
#[derive(Default)]
struct Seen {
    /// CPU of each client by its thread id.
    clients: BTreeMap<u32, u32>,
    /// Arrivals of clients by unique id.
    arrived: BTreeMap<u64, Arrival>,
    errors: Vec<String>,
    /// Only reads count: opening the file is none of the requests that are asked about.
    only_reads: bool,
}

pub(super) fn run(
    path: &str,
    requests: u32,
    background: bool,
    context: &Context<'_>,
) -> Result<Observation, Fault> {
    let requests = requests.clamp(1, MAX_REQUESTS);
    let server = context.server(path)?;
    let trace = facts::traces_fuse().then(|| Trace::start(server.report.connection)).transpose();
    let trace = trace.map_err(|e| fault(FaultKind::Agent, format!("tracing: {e}")))?;
    server.ask(&ServerAsk::Reset, ASK_LIMIT)?;
    let client_cpus = cpulist::online();
    let mut seen = Seen { only_reads: background, ..Seen::default() };
    let file = format!("{path}/place");
    let (role, target) = if background { ("background", &*file) } else { ("stat", path) };
    if background {
        seen.calls(&["make-file", target], 1, "make-file", context)?;
    }
    for &cpu in &client_cpus {
        seen.client((role, target), cpu, requests, context)?;
        // After each client, since the server keeps only the latest arrivals.
        seen.arrivals(&server)?;
    }
    let sent = trace.as_ref().map(Trace::read).transpose();
    let sent = sent.map_err(|e| fault(FaultKind::Agent, format!("tracing: {e}")))?;
    let matched = seen.matched(sent.as_deref());
    Ok(Observation::Placed(PlaceObservation {
        cpu_source: if sent.is_some() { CpuSource::Tracepoint } else { CpuSource::Pinned },
        client_cpus,
        requests,
        cells: matched.cells,
        traced_not_arrived: matched.traced_not_arrived,
        arrived_not_traced: matched.arrived_not_traced,
        errors: seen.errors,
        stats: server.stats(ASK_LIMIT)?,
    }))
}

/// The matrix and what could not be matched.
#[derive(Debug, Default, PartialEq, Eq)]
struct Matched {
    cells: Vec<PlaceCell>,
    traced_not_arrived: u32,
    arrived_not_traced: u32,
}

impl Seen {
    /// One client, pinned to `cpu`.
    fn client(
        &mut self,
        (role, target): (&str, &str),
        cpu: u32,
        requests: u32,
        context: &Context<'_>,
    ) -> Result<(), Fault> {
        let args = [role, target, &cpu.to_string(), &requests.to_string()];
        let pid = self.calls(&args, requests, &format!("{role} on cpu {cpu}"), context)?;
        self.clients.insert(pid, cpu);
        Ok(())
    }

    /// Runs a client to its end; its process id. What it says but `ok` is kept as an error.
    fn calls(
        &mut self,
        args: &[&str],
        count: u32,
        name: &str,
        context: &Context<'_>,
    ) -> Result<u32, Fault> {
        let client = Client::start(args)?;
        let (pid, mut calls) = (client.pid(), 0);
        loop {
            match client.line(context.call_limit) {
                Line::Text(line) => {
                    calls += 1;
                    if line != "ok" && self.errors.len() < MAX_ERRORS {
                        self.errors.push(format!("{name}: {line}"));
                    }
                }
                Line::Silent => return Err(client.hang(name, context.call_limit)),
                Line::Ended => break,
            }
        }
        if calls != count && self.errors.len() < MAX_ERRORS {
            self.errors.push(format!("{name}: {calls} of {count} calls made"));
        }
        client.finish(Duration::from_secs(1));
        Ok(pid)
    }

    fn arrivals(&mut self, server: &Server) -> Result<(), Fault> {
        for arrival in server.stats(ASK_LIMIT)?.arrivals {
            let of_client = self.clients.contains_key(&arrival.pid);
            if of_client && !OFF_RING.contains(&arrival.opcode.as_str()) {
                self.arrived.insert(arrival.unique, arrival);
            }
        }
        Ok(())
    }

    /// Matches by the trace, or without one by the CPU that the client was pinned to.
    fn matched(&self, sent: Option<&[Sent]>) -> Matched {
        let cpu_of: BTreeMap<u64, u32> = match sent {
            Some(sent) => sent
                .iter()
                .filter(|sent| self.clients.contains_key(&sent.tid))
                .map(|sent| (sent.unique, sent.cpu))
                .collect(),
            None => self
                .arrived
                .values()
                .filter_map(|arrival| Some((arrival.unique, *self.clients.get(&arrival.pid)?)))
                .collect(),
        };
        let mut counts: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for (unique, cpu) in &cpu_of {
            if let Some(arrival) = self.arrived.get(unique)
                && (!self.only_reads || arrival.opcode == "read")
            {
                *counts.entry((*cpu, arrival.queue)).or_default() += 1;
            }
        }
        let traced: BTreeSet<&u64> = cpu_of.keys().collect();
        let arrived: BTreeSet<&u64> = self.arrived.keys().collect();
        let cell = |((cpu, queue), count)| PlaceCell { cpu, queue, count };
        Matched {
            cells: counts.into_iter().map(cell).collect(),
            traced_not_arrived: traced.difference(&arrived).count() as u32,
            arrived_not_traced: arrived.difference(&traced).count() as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> Seen {
        let mut seen = Seen { clients: [(100, 0), (101, 1)].into(), ..Seen::default() };
        for (unique, queue, pid) in [(2, 0, 100), (4, 1, 101), (6, 1, 101)] {
            let opcode = "lookup".to_owned();
            let arrival = Arrival { unique, opcode, queue, server_cpu: queue, pid };
            seen.arrived.insert(unique, arrival);
        }
        seen
    }

    fn sent(tid: u32, cpu: u32, unique: u64) -> Sent {
        Sent { tid, cpu, connection: 40, unique }
    }

    #[test]
    fn requests_match_by_unique() {
        // 8 never arrived, 6 was not traced, 10 is of no client.
        let sent = [sent(100, 0, 2), sent(101, 1, 4), sent(101, 1, 8), sent(9, 3, 10)];
        let matched = seen().matched(Some(&sent));
        let cell = |cpu, queue, count| PlaceCell { cpu, queue, count };
        assert_eq!(matched.cells, [cell(0, 0, 1), cell(1, 1, 1)]);
        assert_eq!((matched.traced_not_arrived, matched.arrived_not_traced), (1, 1));
    }

    #[test]
    fn without_a_trace_the_pinned_cpu_counts() {
        let matched = seen().matched(None);
        let cell = |cpu, queue, count| PlaceCell { cpu, queue, count };
        assert_eq!(matched.cells, [cell(0, 0, 1), cell(1, 1, 2)]);
        assert_eq!((matched.traced_not_arrived, matched.arrived_not_traced), (0, 0));
    }
}
