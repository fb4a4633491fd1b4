//! Who waits, and where.

use lab_proto::observe::{Diagnosis, RingReport, TaskReport};
use lab_proto::server::{QueueStats, ServerStats};

use super::finding::Finding;
use super::verdict::{Owner, Verdict};

/// Functions in which a client waits for an answer of a FUSE server.
const CLIENT_WAITS: [&str; 6] = [
    "request_wait_answer",
    "fuse_get_req",
    "fuse_wait_on_page_writeback",
    "fuse_wait_on_folio_writeback",
    "fuse_sync_writes",
    "fuse_set_nowrite",
];

/// Functions in which a server waits for work, which is no hang.
const SERVER_WAITS: [&str; 3] = ["fuse_dev_do_read", "fuse_dev_poll", "io_cqring_wait"];

/// Functions that say only that a task sleeps.
const PLUMBING: [&str; 16] = [
    "__schedule",
    "schedule",
    "schedule_timeout",
    "schedule_preempt_disabled",
    "schedule_hrtimeout_range",
    "io_schedule",
    "bit_wait",
    "bit_wait_io",
    "__wait_on_bit",
    "out_of_line_wait_on_bit",
    "wait_for_completion",
    "__wait_for_common",
    "folio_wait_bit_common",
    "rwsem_down_write_slowpath",
    "msleep",
    "do_nanosleep",
];

/// Name of the agent's process.
const AGENT: &str = "lab-agent";

/// What a diagnosis says of an agent that was asked and did not answer.
pub(crate) const NO_ANSWER: &str = "the agent did not answer";

/// The finding of a step that did not end.
///
/// `said` is the guest's own word on the call that did not return.
pub(super) fn timeout(step: &str, said: Option<&str>, diagnosis: Option<&Diagnosis>) -> Finding {
    let hang = |owner, cause: String| Finding::new(Verdict::Hang, owner, cause);
    // The guest's word ends with a stack, which the diagnosis has in full.
    let said = said.map(|said| match diagnosis {
        Some(_) => said.split(", task ").next().unwrap_or(said),
        None => said,
    });
    let step = match said {
        Some(said) => format!("step `{step}` did not end ({said})"),
        None => format!("step `{step}` did not end"),
    };
    let Some(diagnosis) = diagnosis else {
        let cause = format!("{step}, and the agent could not say who waits");
        return hang(Owner::Kernel, cause);
    };
    let Some(task) = culprit(&diagnosis.tasks) else {
        if let Some(agent) = silent_agent(&diagnosis.tasks) {
            let cause = format!("{step}, and the agent does not answer: {}", describe(agent));
            return hang(Owner::Lab, cause).because(stack_lines(agent)).because(context(diagnosis));
        }
        // The kernel answered for an agent that does not: it runs, or talks without end.
        if diagnosis.gaps.iter().any(|gap| gap.starts_with(NO_ANSWER)) {
            let cause =
                format!("{step}, the agent does not answer, and no task waits in the kernel");
            return hang(Owner::Lab, cause).because(context(diagnosis));
        }
        // Nothing of the subject waits: the step itself does not end.
        let cause = format!("{step}, no task waits in the kernel");
        return hang(Owner::Scenario, cause).because(context(diagnosis));
    };
    let (owner, servers) = holder(diagnosis);
    hang(owner, format!("{step}: {}{servers}", describe(task)))
        .because(stack_lines(task))
        .because(context(diagnosis))
}

/// `task cat (pid 7, tid 8) in D waits in request_wait_answer`.
pub(super) fn describe(task: &TaskReport) -> String {
    let place = telling(&task.stack).unwrap_or("an unknown place");
    format!(
        "task {} (pid {}, tid {}) in {} waits in {place}",
        task.name, task.pid, task.tid, task.state
    )
}

/// The task and its stack, for evidence.
pub(super) fn stack_lines(task: &TaskReport) -> impl Iterator<Item = String> + '_ {
    let head = format!("{} pid {} tid {} state {}", task.name, task.pid, task.tid, task.state);
    std::iter::once(head).chain(task.stack.iter().take(32).map(|l| format!("  {}", l.trim())))
}

/// The function of a stack that tells what is waited for: the innermost in FUSE, else the
/// innermost that is more than plumbing.
pub(super) fn telling(stack: &[String]) -> Option<&str> {
    let names = || stack.iter().filter_map(|l| function(l));
    let fuse =
        |n: &&str| CLIENT_WAITS.contains(n) || n.trim_start_matches('_').starts_with("fuse_");
    names().find(fuse).or_else(|| names().find(|n| !PLUMBING.contains(n))).or(names().next())
}

/// `request_wait_answer` of `[<0>] request_wait_answer+0x12/0x20`.
fn function(line: &str) -> Option<&str> {
    let line = line.trim();
    let line = line.strip_prefix('[').and_then(|l| l.split_once(']')).map_or(line, |(_, l)| l);
    let name = line.trim().trim_start_matches("? ");
    let name = name.split(['+', ' ', '/']).next()?;
    (!name.is_empty()).then_some(name)
}

/// The task to name: a client of FUSE first, then one in D, never a server that waits for work.
fn culprit(tasks: &[TaskReport]) -> Option<&TaskReport> {
    let has = |t: &TaskReport, set: &[&str]| {
        t.stack.iter().filter_map(|l| function(l)).any(|f| set.contains(&f))
    };
    let client = tasks.iter().find(|t| has(t, &CLIENT_WAITS));
    let in_d = || tasks.iter().find(|t| t.state == "D");
    let in_fuse = || {
        tasks.iter().find(|t| {
            !has(t, &SERVER_WAITS) && telling(&t.stack).is_some_and(|f| f.contains("fuse"))
        })
    };
    client.or_else(in_d).or_else(in_fuse)
}

/// The task that a boot waits for: one that would be named in a step, else the first process.
pub(super) fn in_boot(tasks: &[TaskReport]) -> Option<&TaskReport> {
    culprit(tasks).or_else(|| tasks.iter().find(|task| task.tid == 1))
}

/// The agent's own process, which is among the tasks only where the kernel listed them for it.
fn silent_agent(tasks: &[TaskReport]) -> Option<&TaskReport> {
    tasks.iter().find(|task| task.name == AGENT && task.tid == task.pid)
}

/// Who has the request: a server that is stopped, or that tells of requests in flight, owns the
/// hang.
fn holder(diagnosis: &Diagnosis) -> (Owner, String) {
    if let Some(server) = diagnosis.processes.iter().find(|server| stopped(diagnosis, server.pid)) {
        let text = format!("; server `{}` (pid {}) is stopped", server.name, server.pid);
        return (Owner::Server, text);
    }
    let held = |server: &&ServerStats| server.queues.iter().any(|queue| queue.in_flight > 0);
    match diagnosis.servers.iter().find(held) {
        Some(server) => {
            let queues = server.queues.iter().filter(|queue| queue.in_flight > 0);
            let queues = queues.map(|q| format!("{} on queue {}", q.in_flight, q.queue));
            let queues: Vec<String> = queues.take(4).collect();
            let text = format!("; server `{}` holds unanswered {}", server.name, queues.join(", "));
            (Owner::Server, text)
        }
        None => (Owner::Kernel, String::new()),
    }
}

/// Whether a signal stopped the process.
fn stopped(diagnosis: &Diagnosis, pid: u32) -> bool {
    let mut threads = diagnosis.tasks.iter().filter(|task| task.pid == pid).peekable();
    threads.peek().is_some() && threads.all(|task| task.state == "T")
}

fn context(diagnosis: &Diagnosis) -> Vec<String> {
    let number = |n: Option<u64>| n.map_or("unknown".into(), |n| n.to_string());
    let connections = diagnosis.connections.iter().take(8).map(|c| {
        let (waiting, most) = (number(c.waiting), number(c.max_background));
        let congested = number(c.congestion_threshold);
        format!(
            "connection {}: {waiting} waiting, max_background {most}, congestion at {congested}",
            c.connection
        )
    });
    let servers = diagnosis.processes.iter().take(8).map(|s| {
        let answer = diagnosis.servers.iter().find(|stats| stats.connection == s.connection);
        format!(
            "server {} (pid {}, connection {}, {} queues): {}",
            s.name,
            s.pid,
            s.connection,
            s.queues,
            answer.map_or("does not answer".into(), counts)
        )
    });
    let rings = diagnosis.rings.iter().take(8).map(|ring| {
        format!("io_uring of {} (pid {}) fd {}: {}", ring.name, ring.pid, ring.fd, heads(ring))
    });
    let gaps = diagnosis.gaps.iter().take(8).map(|g| format!("not read: {g}"));
    connections.chain(servers).chain(rings).chain(gaps).collect()
}

/// `12 arrived, 11 replied, 1 held`.
fn counts(stats: &ServerStats) -> String {
    // The numbers are a guest's word and may be any.
    fn add(numbers: impl Iterator<Item = u64>) -> u64 {
        numbers.fold(0, u64::saturating_add)
    }
    let sum = |count: fn(&QueueStats) -> u64| add(stats.queues.iter().map(count));
    let arrived = sum(|queue| add(queue.arrived.iter().map(|(_, n)| *n)));
    let (replied, held) = (sum(|queue| queue.replied), sum(|queue| queue.in_flight.into()));
    format!("{arrived} arrived, {replied} replied, {held} held")
}

/// The ends of both queues of an instance: what is not taken yet on either side.
fn heads(ring: &RingReport) -> String {
    let ends = ["SqHead", "SqTail", "CqHead", "CqTail"];
    let of = |line: &String| {
        let (key, value) = line.split_once(':')?;
        ends.contains(&key).then(|| format!("{key} {}", value.trim()))
    };
    let found: Vec<String> = ring.lines.iter().filter_map(of).collect();
    if found.is_empty() { "no queue heads in its fdinfo".into() } else { found.join(" ") }
}

#[cfg(test)]
mod tests {
    use lab_proto::observe::ServerSeen;

    use super::*;
    use crate::judge::samples::{stats, task};

    #[test]
    fn the_telling_function_is_the_one_in_fuse() {
        let stack = |lines: &[&str]| lines.iter().map(|l| l.to_string()).collect::<Vec<_>>();
        let s = stack(&["[<0>] __schedule+0x1/0x2", "[<0>] request_wait_answer+0x12/0x20"]);
        assert_eq!(telling(&s), Some("request_wait_answer"));
        let s = stack(&["[<0>] folio_wait_bit_common+0x1/0x2", "[<0>] __fuse_fsync+0x1/0x2"]);
        assert_eq!(telling(&s), Some("__fuse_fsync"));
        let s = stack(&["[<0>] schedule+0x1/0x2", "[<0>] pipe_read+0x1/0x2"]);
        assert_eq!(telling(&s), Some("pipe_read"));
        assert_eq!(telling(&[]), None);
    }

    #[test]
    fn a_server_that_waits_for_work_is_not_named() {
        let mut diagnosis = Diagnosis {
            tasks: vec![
                task(70, "lab-server", "S", &["fuse_dev_do_read+0x1/0x2"]),
                task(71, "lab-ring", "S", &["io_cqring_wait+0x1/0x2", "fuse_uring_cmd+0x1/0x2"]),
                task(77, "client", "D", &["request_wait_answer+0x1/0x2", "fuse_lookup+0x3/0x4"]),
            ],
            ..Diagnosis::default()
        };
        let finding = timeout("tree", None, Some(&diagnosis));
        assert_eq!(
            finding.cause,
            "step `tree` did not end: task client (pid 77, tid 77) in D waits in \
             request_wait_answer"
        );
        assert_eq!(finding.owner, Some(Owner::Kernel));
        assert_eq!(finding.evidence[0], "client pid 77 tid 77 state D");
        diagnosis.tasks.insert(0, task(60, "jbd2", "D", &["jbd2_log_wait_commit+0x1/0x2"]));
        diagnosis.tasks[3].state = "S".into();
        let finding = timeout("tree", None, Some(&diagnosis));
        assert!(finding.cause.contains("task client"), "{}", finding.cause);
        diagnosis.tasks.remove(0);
        let mut held = stats("ring", &[("lookup", 3)], &[]);
        held.queues[0].in_flight = 1;
        diagnosis.servers.push(held);
        let finding = timeout("tree", None, Some(&diagnosis));
        assert_eq!(finding.owner, Some(Owner::Server));
        assert!(finding.cause.ends_with("holds unanswered 1 on queue 0"), "{}", finding.cause);
        diagnosis.tasks.pop();
        diagnosis.servers.clear();
        assert_eq!(timeout("tree", None, Some(&diagnosis)).owner, Some(Owner::Scenario));
    }

    #[test]
    fn an_agent_that_talks_without_end_is_the_labs_where_the_kernel_answers() {
        let diagnosis = Diagnosis {
            tasks: vec![task(1, "init", "S", &["do_wait+0x1/0x2"])],
            gaps: vec![format!("{NO_ANSWER}: tasks are those of the kernel's own dump")],
            ..Diagnosis::default()
        };
        let finding = timeout("tree", None, Some(&diagnosis));
        assert_eq!(finding.owner, Some(Owner::Lab));
        assert!(finding.cause.contains("the agent does not answer"), "{}", finding.cause);
        // Where nobody can be asked it stays the kernel's.
        assert_eq!(timeout("tree", None, None).owner, Some(Owner::Kernel));
    }

    #[test]
    fn a_stopped_agent_is_the_labs_unless_a_client_waits() {
        let mut diagnosis = Diagnosis {
            tasks: vec![
                task(1, "init", "S", &["do_wait+0x1/0x2"]),
                task(70, "lab-agent", "T", &["schedule+0x1/0x2", "do_signal_stop+0x1/0x2"]),
            ],
            gaps: vec!["the agent did not answer".into()],
            ..Diagnosis::default()
        };
        let finding = timeout("stop", None, Some(&diagnosis));
        assert_eq!(finding.owner, Some(Owner::Lab));
        assert!(finding.cause.ends_with("in T waits in do_signal_stop"), "{}", finding.cause);
        diagnosis.tasks.push(task(77, "client", "S", &["request_wait_answer+0x1/0x2"]));
        let finding = timeout("stop", None, Some(&diagnosis));
        assert_eq!(finding.owner, Some(Owner::Kernel));
        assert!(finding.cause.contains("task client"), "{}", finding.cause);
    }

    #[test]
    fn a_stopped_server_owns_the_hang_and_its_rings_are_told() {
        let seen = ServerSeen { name: "ring".into(), pid: 70, connection: 40, queues: 2 };
        let lines = ["SqMask:\t0x7", "SqHead:\t8", "SqTail:\t8", "CqHead:\t3", "CqTail:\t4"];
        let ring = RingReport {
            pid: 70,
            name: "lab-ring".into(),
            fd: 9,
            lines: lines.iter().map(|line| line.to_string()).collect(),
        };
        let mut diagnosis = Diagnosis {
            tasks: vec![
                task(70, "lab-ring", "T", &["do_signal_stop+0x1/0x2"]),
                task(77, "client", "S", &["request_wait_answer+0x1/0x2"]),
            ],
            processes: vec![seen],
            rings: vec![ring],
            ..Diagnosis::default()
        };
        let finding = timeout("tree", None, Some(&diagnosis));
        assert_eq!(finding.owner, Some(Owner::Server));
        assert!(finding.cause.ends_with("server `ring` (pid 70) is stopped"), "{}", finding.cause);
        let told = finding.evidence.join("\n");
        assert!(told.contains("fd 9: SqHead 8 SqTail 8 CqHead 3 CqTail 4"), "{told}");
        assert!(told.contains("(pid 70, connection 40, 2 queues): does not answer"), "{told}");
        diagnosis.tasks[0].state = "S".into();
        assert_eq!(timeout("tree", None, Some(&diagnosis)).owner, Some(Owner::Kernel));
    }
}
