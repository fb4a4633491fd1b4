//! The rules that a scenario can name, each over the observation of one step.

use lab_proto::observe::{
    ClientEnd, Observation, PlaceCell, PlaceObservation, TeardownObservation,
};

use lab_proto::step::Step;

use super::evidence::Evidence;
use super::finding::Finding;
use super::verdict::{Owner, Verdict};
use super::{completed, fio, hang, policy};
use crate::config::scenario::Rule;
use crate::config::topology::Topology;

/// What is wrong with the step under the rule.
pub(super) fn check(evidence: &Evidence<'_>, step: &str, rule: Rule) -> Option<Finding> {
    let found = match (rule, evidence.observation(step)?) {
        (Rule::QueueIsSubmittingCpu, Observation::Placed(p)) => queue_is_cpu(evidence, p),
        (Rule::BackgroundFollowsPolicy, Observation::Placed(p)) => follows_policy(evidence, p),
        (Rule::QueueIsNear, Observation::Placed(p)) => queue_is_near(evidence, p),
        (Rule::NothingLost, Observation::Placed(p)) => nothing_lost(evidence.topology, p),
        (Rule::EveryCallReturned, Observation::TornDown(t)) => every_call_returned(t),
        (Rule::LoadWasReal, Observation::TornDown(t)) => load_was_real(t),
        (Rule::NoTaskInD, Observation::TornDown(t)) => no_task_in_d(t),
        (Rule::WaitingZero, Observation::TornDown(t)) => waiting_zero(t),
        (Rule::ConnectionGone, Observation::TornDown(t)) => connection_gone(t),
        (Rule::FioSane, Observation::Fio(f)) => fio::sane(evidence, step, f),
        (_, other) => Some(Finding::new(
            Verdict::Infra,
            Owner::Scenario,
            format!("rule {} does not fit a {} step", name(rule), completed::kind(other)),
        )),
    };
    found.map(|mut finding| {
        finding.cause = format!("step `{step}`: {}", finding.cause);
        finding
    })
}

fn name(rule: Rule) -> &'static str {
    Rule::ALL.iter().find(|(_, r)| *r == rule).map_or("this rule", |(name, _)| *name)
}

/// `queue 2 (node 1)`, or without the node where there is none.
fn with_node(topology: &Topology, what: &str, cpu: u32) -> String {
    match topology.node_of(cpu) {
        Some(node) => format!("{what} {cpu} (node {node})"),
        None => format!("{what} {cpu}"),
    }
}

fn queue_is_cpu(evidence: &Evidence<'_>, place: &PlaceObservation) -> Option<Finding> {
    strays(evidence.topology, place, Some, "the queue of that CPU")
}

fn follows_policy(evidence: &Evidence<'_>, place: &PlaceObservation) -> Option<Finding> {
    let policy = evidence.queue_policy?;
    let topology = evidence.topology;
    let wanted = |cpu| policy::background_queue(policy, topology, cpu);
    strays(topology, place, wanted, &format!("the queue that the policy {policy} names"))
}

/// Held against the queues that the servers of the case were asked for.
fn queue_is_near(evidence: &Evidence<'_>, place: &PlaceObservation) -> Option<Finding> {
    let topology = evidence.topology;
    let specs = evidence.scenario.steps.iter().filter_map(|named| match &named.step {
        Step::Serve(spec) => Some(spec),
        _ => None,
    });
    let spec = specs.into_iter().find(|spec| spec.name == place.stats.name)?;
    let all = policy::queues(&spec.queues, topology);
    let is_far = |c: &&PlaceCell| c.count > 0 && !policy::is_near(c.queue, c.cpu, &all, topology);
    let far = place.cells.iter().find(is_far)?;
    let cpu = with_node(topology, "CPU", far.cpu);
    let queue = with_node(topology, "queue", far.queue);
    Some(Finding::fail(format!(
        "{} requests of {cpu} arrived on {queue}, and {all:?} has a nearer one",
        far.count
    )))
}

/// Requests that arrived on another queue than the wanted one, where one is known.
fn strays(
    topology: &Topology,
    place: &PlaceObservation,
    wanted: impl Fn(u32) -> Option<u32>,
    what: &str,
) -> Option<Finding> {
    let is_stray =
        |c: &&PlaceCell| c.count > 0 && wanted(c.cpu).is_some_and(|queue| queue != c.queue);
    let strays: Vec<_> = place.cells.iter().filter(is_stray).collect();
    let first = strays.first()?;
    let show = |c: &PlaceCell| {
        let cpu = with_node(topology, "CPU", c.cpu);
        let queue = with_node(topology, "queue", c.queue);
        format!("{} requests of {cpu} arrived on {queue}", c.count)
    };
    let total: u64 = strays.iter().map(|c| u64::from(c.count)).sum();
    let more = if strays.len() > 1 { format!(", {total} in all") } else { String::new() };
    Some(
        Finding::fail(format!("{}, not on {what}{more}", show(first)))
            .because(strays.iter().map(|c| show(c))),
    )
}

fn nothing_lost(topology: &Topology, place: &PlaceObservation) -> Option<Finding> {
    if let Some(error) = place.errors.first() {
        let n = place.errors.len();
        return Some(
            Finding::fail(format!("{n} client calls failed, first {error}"))
                .because(place.errors.iter().take(40).cloned()),
        );
    }
    if place.traced_not_arrived > 0 {
        let n = place.traced_not_arrived;
        return Some(Finding::fail(format!("{n} requests were sent and never arrived")));
    }
    if place.stats.arrivals_lost > 0 {
        let n = place.stats.arrivals_lost;
        return Some(Finding::infra(format!("{n} arrivals were not kept, the matrix has gaps")));
    }
    let present: Vec<u32> = (0..topology.cpus).collect();
    if place.client_cpus != present {
        let seen = format!("{:?} of CPUs 0 to {}", place.client_cpus, topology.cpus - 1);
        return Some(Finding::infra(format!("not every CPU had a client: {seen}")));
    }
    let served = |cpu: u32| -> u64 {
        place.cells.iter().filter(|c| c.cpu == cpu).map(|c| u64::from(c.count)).sum()
    };
    let short = present.into_iter().find(|cpu| served(*cpu) < u64::from(place.requests))?;
    let cpu = with_node(topology, "CPU", short);
    let (n, of) = (served(short), place.requests);
    Some(Finding::fail(format!("{n} of {of} requests of {cpu} arrived")))
}

fn client(end: &ClientEnd) -> String {
    format!("client tid {} on CPU {}", end.tid, end.cpu)
}

fn every_call_returned(teardown: &TeardownObservation) -> Option<Finding> {
    let stuck: Vec<_> = teardown.clients.iter().filter(|c| !c.returned).collect();
    let first = stuck.first()?;
    let place = hang::telling(&first.stack).unwrap_or("an unknown place");
    let (n, of) = (stuck.len(), teardown.clients.len());
    let cause = format!(
        "{n} of {of} client calls did not return: {} waits in {place} for {} ms",
        client(first),
        first.wait_ms
    );
    let lines = stuck.iter().take(8).flat_map(|c| {
        let stack = c.stack.iter().take(32).map(|l| format!("  {}", l.trim()));
        std::iter::once(client(c)).chain(stack)
    });
    Some(Finding::new(Verdict::Hang, Owner::Kernel, cause).because(lines))
}

fn load_was_real(teardown: &TeardownObservation) -> Option<Finding> {
    if teardown.clients.is_empty() {
        return Some(Finding::infra("the teardown had no clients"));
    }
    let idle = teardown.clients.iter().find(|c| c.calls == 0)?;
    Some(Finding::fail(format!("{} made no call before the ending", client(idle))))
}

fn no_task_in_d(teardown: &TeardownObservation) -> Option<Finding> {
    let task = teardown.d_tasks.first()?;
    let n = teardown.d_tasks.len();
    Some(
        Finding::new(
            Verdict::Hang,
            Owner::Kernel,
            format!("{n} tasks left in uninterruptible sleep: {}", hang::describe(task)),
        )
        .because(teardown.d_tasks.iter().take(4).flat_map(hang::stack_lines)),
    )
}

fn waiting_zero(teardown: &TeardownObservation) -> Option<Finding> {
    let waiting = teardown.waiting_after.filter(|n| *n > 0)?;
    Some(Finding::fail(format!("connection still has {waiting} waiting after all clients ended")))
}

fn connection_gone(teardown: &TeardownObservation) -> Option<Finding> {
    if teardown.connection_gone {
        return None;
    }
    let umounts = teardown.umounts.join(" ");
    Some(Finding::fail(format!("connection is still there after the umounts ({umounts})")))
}
