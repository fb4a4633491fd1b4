//! A mount that ends under load: what each client's last call gave, and what is left behind.

use std::time::{Duration, Instant};

use lab_proto::message::{Fault, FaultKind};
use lab_proto::observe::{ClientEnd, Observation, TeardownObservation};
use lab_proto::step::Ending;

use super::child::{self, Client, Line, wait_until};
use super::run::{ASK_LIMIT, Context, fault};
use crate::agent::{Server, diagnose};
use crate::client::load::LoadEnd;
use crate::random::Random;
use crate::report::{connections, cpulist, tasks};
use crate::sys::clock;

/// How long a mount may stay busy after the last client returned: the kernel releases files
/// a moment later.
const BUSY_LIMIT: Duration = Duration::from_secs(2);

/// How long a client may take to stop when it is told to.
const STOP_LIMIT: Duration = Duration::from_millis(500);

/// What is to be done.
pub(super) struct Plan {
    /// Mount point.
    pub(super) path: String,
    /// How it ends.
    pub(super) ending: Ending,
    /// Clients.
    pub(super) clients: u32,
    /// Load before the ending, milliseconds.
    pub(super) load_ms: u64,
}

struct Running {
    client: Client,
    tid: u32,
    cpu: u32,
}

pub(super) fn run(plan: &Plan, context: &Context<'_>) -> Result<Observation, Fault> {
    let server = context.server(&plan.path)?;
    let mut running = start(plan, context)?;
    let load_us = plan.load_ms.saturating_mul(1000);
    let delay_us = Random::new(context.seed).below(load_us + 1);
    running.iter_mut().for_each(|running| running.client.go());
    std::thread::sleep(Duration::from_micros(load_us.saturating_add(delay_us)));

    let connection = server.report.connection;
    let stats = server.stats(ASK_LIMIT).ok();
    let waiting_before = connections::waiting(connection);
    let mut umounts = Vec::new();
    let start_ns = clock::boottime_ns();
    let deadline = Instant::now() + context.call_limit;
    end(plan, &server, context, &mut umounts)?;
    let clients = running.into_iter().map(|running| collect(running, start_ns, deadline)).collect();
    wait_until(BUSY_LIMIT, || connections::waiting(connection).is_none_or(|n| n == 0));
    let waiting_after = connections::waiting(connection);
    unmount(plan, context, &mut umounts)?;
    let connection_gone =
        wait_until(context.call_limit, || connections::waiting(connection).is_none());
    let server_exit = last_of(&server, context);
    context.case.remove(&plan.path);
    Ok(Observation::TornDown(TeardownObservation {
        clients,
        stats,
        waiting_before,
        waiting_after,
        umounts,
        connection_gone,
        server_exit,
        d_tasks: diagnose::d_tasks(),
        delay_us,
    }))
}

/// Starts every client, round robin over the CPUs, and waits until all are ready.
fn start(plan: &Plan, context: &Context<'_>) -> Result<Vec<Running>, Fault> {
    let (cpus, seed) = (cpulist::online(), context.seed.to_string());
    let mut started = Vec::new();
    for (index, &cpu) in (0..plan.clients.clamp(1, 256)).zip(cpus.iter().cycle()) {
        let (cpu_text, index) = (cpu.to_string(), index.to_string());
        started.push((cpu, Client::start(&["load", &plan.path, &cpu_text, &seed, &index])?));
    }
    started.into_iter().map(|(cpu, client)| ready(client, cpu, context.call_limit)).collect()
}

fn ready(client: Client, cpu: u32, call_limit: Duration) -> Result<Running, Fault> {
    let failed = |text: &str| {
        fault(FaultKind::Server, format!("client on cpu {cpu} could not prepare: {text}"))
    };
    // Preparing takes a handful of calls.
    match client.line(call_limit) {
        Line::Text(line) => match line.strip_prefix("ready ").map(str::parse) {
            Some(Ok(tid)) => Ok(Running { client, tid, cpu }),
            _ => Err(failed(&line)),
        },
        Line::Silent => Err(client.hang("preparing a client", call_limit)),
        Line::Ended => Err(failed("it ended")),
    }
}

fn end(
    plan: &Plan,
    server: &Server,
    context: &Context<'_>,
    umounts: &mut Vec<String>,
) -> Result<(), Fault> {
    match plan.ending {
        Ending::KillServer => {
            server.kill().map_err(|e| fault(FaultKind::Server, format!("server: kill: {e}")))
        }
        Ending::Abort => connections::abort(server.report.connection, context.call_limit)
            .map_err(|e| fault(FaultKind::Hang, format!("abort: {e}"))),
        Ending::ForcedUmount => {
            umounts.push(child::unmount(&plan.path, libc::MNT_FORCE, context.call_limit)?);
            Ok(())
        }
    }
}

fn collect(mut running: Running, start_ns: u64, deadline: Instant) -> ClientEnd {
    let mut line = running.client.line(deadline.saturating_duration_since(Instant::now()));
    if line == Line::Silent {
        // It may go on without a failure; then it stops when told to.
        running.client.stop();
        line = running.client.line(STOP_LIMIT);
    }
    let (tid, cpu) = (running.tid, running.cpu);
    let since_ms = |at_ns: u64| at_ns.saturating_sub(start_ns) / 1_000_000;
    if line == Line::Silent {
        let stack = tasks::stack(tid);
        running.client.leave();
        let (wait_ms, last) = (since_ms(clock::boottime_ns()), String::new());
        return ClientEnd { tid, cpu, calls: 0, returned: false, last, wait_ms, stack };
    }
    running.client.finish(STOP_LIMIT);
    let end = match line {
        Line::Text(text) => serde_json::from_str(&text).ok(),
        _ => None,
    };
    let end = end.unwrap_or_else(|| LoadEnd {
        calls: 0,
        last: "client ended".to_owned(),
        at_ns: clock::boottime_ns(),
    });
    let wait_ms = since_ms(end.at_ns);
    ClientEnd { tid, cpu, calls: end.calls, returned: true, last: end.last, wait_ms, stack: vec![] }
}

/// Takes the mount away and records what each call gave; a result that repeats is recorded
/// once. A mount that stays busy is detached.
fn unmount(plan: &Plan, context: &Context<'_>, umounts: &mut Vec<String>) -> Result<(), Fault> {
    let gone = |result: &str| matches!(result, "ok" | "EINVAL");
    if umounts.last().is_some_and(|result| gone(result)) {
        return Ok(());
    }
    let end = Instant::now() + BUSY_LIMIT;
    loop {
        let result = child::unmount(&plan.path, 0, context.call_limit)?;
        let (is_gone, is_busy) = (gone(&result), result == "EBUSY");
        if umounts.last() != Some(&result) {
            umounts.push(result);
        }
        if is_gone {
            return Ok(());
        }
        if !is_busy || Instant::now() >= end {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    umounts.push(child::unmount(&plan.path, libc::MNT_DETACH, context.call_limit)?);
    Ok(())
}

/// How the server ended. One that still runs is killed, so that it does not outlive its mount.
fn last_of(server: &Server, context: &Context<'_>) -> String {
    match server.end(context.call_limit) {
        Some(end) => end.to_string(),
        None => {
            let _ = server.kill();
            "running".to_owned()
        }
    }
}
