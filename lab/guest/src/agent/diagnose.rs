//! Where every task waits. Bounded: a read of /proc can hang as well as anything else.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use lab_proto::observe::{Diagnosis, RingReport, ServerSeen, TaskReport};

use super::Case;
use crate::report::{connections, rings, tasks};

/// Most tasks in a diagnosis.
const MAX_TASKS: usize = 256;

/// Most io_uring instances in a diagnosis.
const MAX_RINGS: usize = 64;

/// Limit of each of the walks over /proc and fusectl, guest time. Together with the servers'
/// that stays below what the host waits for a diagnosis.
const WALK_LIMIT: Duration = Duration::from_secs(2);

/// Time between the two looks for tasks in uninterruptible sleep.
const D_PAUSE: Duration = Duration::from_millis(300);

/// Limit of all servers' answers, guest time.
const STATS_LIMIT: Duration = Duration::from_secs(1);

/// Tasks, connections and telemetry; what could not be had in time is a gap.
pub(crate) fn report(case: &Case) -> Diagnosis {
    let mut gaps = Vec::new();
    let tasks = walk(&mut gaps);
    let connections = bounded(connections::all, "fusectl", &mut gaps).unwrap_or_default();
    let (servers, silent) = case.stats(STATS_LIMIT);
    gaps.extend(silent);
    let rings = bounded(all_rings, "io_uring", &mut gaps).unwrap_or_default();
    Diagnosis { tasks, connections, servers, processes: processes(case), rings, gaps }
}

/// What is known of the servers without asking them.
fn processes(case: &Case) -> Vec<ServerSeen> {
    let seen = |server: std::sync::Arc<super::server::Server>| ServerSeen {
        name: server.report.name.clone(),
        pid: server.report.pid,
        connection: server.report.connection,
        queues: server.report.queues,
    };
    case.servers().into_iter().map(seen).collect()
}

fn all_rings() -> Vec<RingReport> {
    tasks::pids().into_iter().flat_map(rings::of).take(MAX_RINGS).collect()
}

enum Seen {
    Reading(u32),
    Task(TaskReport),
}

/// Every task that stays in uninterruptible sleep: in two looks, since one on its way through
/// a short sleep is none of them.
pub(crate) fn d_tasks() -> Vec<TaskReport> {
    let look = || {
        let mut found = walk(&mut Vec::new());
        found.retain(|task| task.state == "D");
        found
    };
    let first = look();
    if first.is_empty() {
        return first;
    }
    std::thread::sleep(D_PAUSE);
    let mut second = look();
    second.retain(|task| first.iter().any(|earlier| earlier.tid == task.tid));
    second
}

fn walk(gaps: &mut Vec<String>) -> Vec<TaskReport> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || read_tasks(&send));
    let end = Instant::now() + WALK_LIMIT;
    let (mut found, mut at) = (Vec::new(), 0);
    loop {
        match receive.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(Seen::Reading(pid)) => at = pid,
            Ok(Seen::Task(task)) => found.push(task),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                gaps.push(format!("/proc: reading process {at} took too long"));
                break;
            }
        }
    }
    sort(&mut found);
    if found.len() > MAX_TASKS {
        gaps.push(format!("{} more tasks", found.len() - MAX_TASKS));
        found.truncate(MAX_TASKS);
    }
    found
}

/// Sends every user task but init, and those tasks of the kernel and of the agent that wait in
/// FUSE; ends early when nobody listens any more.
fn read_tasks(send: &mpsc::Sender<Seen>) {
    let own = std::process::id();
    for pid in tasks::pids().into_iter().filter(|&pid| pid != 1) {
        if send.send(Seen::Reading(pid)).is_err() {
            return;
        }
        for tid in tasks::threads(pid) {
            let Some(task) = tasks::report(pid, tid) else { continue };
            // An abort is written by a thread of the agent and can hang like any other call.
            if pid == own && !tasks::waits_in_fuse(&task) {
                continue;
            }
            if send.send(Seen::Task(task)).is_err() {
                return;
            }
        }
    }
}

/// FUSE waiters first, then tasks in uninterruptible sleep, then the rest, each by id.
fn sort(found: &mut [TaskReport]) {
    found.sort_by_key(|task| (!tasks::waits_in_fuse(task), task.state != "D", task.pid, task.tid));
}

fn bounded<T: Send + 'static>(read: fn() -> T, what: &str, gaps: &mut Vec<String>) -> Option<T> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || send.send(read()));
    let value = receive.recv_timeout(WALK_LIMIT).ok();
    if value.is_none() {
        gaps.push(format!("{what}: took too long"));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(tid: u32, state: &str, stack: &[&str]) -> TaskReport {
        let stack = stack.iter().map(|s| (*s).to_owned()).collect();
        TaskReport {
            tid,
            pid: tid,
            name: "t".into(),
            state: state.into(),
            stack,
            syscall: String::new(),
        }
    }

    #[test]
    fn fuse_waiters_come_first() {
        let mut found = vec![
            task(3, "S", &["do_nanosleep"]),
            task(5, "D", &["io_schedule"]),
            task(9, "S", &["request_wait_answer+0x1/0x2", "__fuse_simple_request+0x3/0x4"]),
        ];
        sort(&mut found);
        assert_eq!(found.iter().map(|t| t.tid).collect::<Vec<_>>(), [9, 5, 3]);
    }

    #[test]
    fn the_own_machine_can_be_walked() {
        let mut gaps = Vec::new();
        let found = walk(&mut gaps);
        assert!(found.len() <= MAX_TASKS);
        assert!(found.iter().all(|t| t.pid != std::process::id() || tasks::waits_in_fuse(t)));
    }
}
