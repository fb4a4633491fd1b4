//! Judgements of cases whose steps all ran: rules, equality, snapshots.

use lab_proto::observe::Observation;
use lab_proto::server::Transport;
use lab_proto::step::Step;

use super::bent::{Case, is, pass, ring, rule};
use super::samples::*;
use super::snapshot::wanted;
use super::verdict::{Owner, Verdict};
use crate::config::scenario::{Expectation, Rule};

fn place(cells: &[(u32, u32, u32)]) -> Case {
    let step = Step::Place { path: "/mnt/ring".into(), requests: 16, background: false };
    let rules = [Rule::QueueIsSubmittingCpu, Rule::NothingLost].map(|r| rule("place", r));
    Case::new(vec![("place", step, Observation::Placed(placed(cells)))], rules.into())
}

const DIAGONAL: [(u32, u32, u32); 4] = [(0, 0, 16), (1, 1, 16), (2, 2, 16), (3, 3, 16)];

#[test]
fn placement_names_cpu_and_queue() {
    assert_eq!(place(&DIAGONAL).short(), pass());
    let mut case = place(&[(0, 0, 16), (1, 1, 15), (1, 2, 1), (2, 2, 16), (3, 3, 16)]);
    is(
        &case,
        Verdict::Fail,
        Owner::Kernel,
        "step `place`: 1 requests of CPU 1 (node 0) arrived on queue 2 (node 1)",
    );
    // A policy is about background requests: these stay, whatever it is.
    case.policy = Some("next-cpu");
    assert_eq!(case.short().0, Verdict::Fail);
}

#[test]
fn background_requests_are_held_to_the_declared_policy() {
    let case = |cells: &[(u32, u32, u32)], policy| {
        let step = Step::Place { path: "/mnt/ring".into(), requests: 16, background: true };
        let rules = [Rule::BackgroundFollowsPolicy, Rule::NothingLost].map(|r| rule("place", r));
        let steps = vec![("place", step, Observation::Placed(placed(cells)))];
        Case { policy, ..Case::new(steps, rules.into()) }
    };
    let next = [(0, 1, 16), (1, 2, 16), (2, 3, 16), (3, 0, 16)];
    assert_eq!(case(&next, Some("next-cpu")).short(), pass());
    assert_eq!(case(&next, None).short(), pass());
    is(
        &case(&next, Some("same-node")),
        Verdict::Fail,
        Owner::Kernel,
        "step `place`: 16 requests of CPU 1 (node 0) arrived on queue 2 (node 1), not on the queue \
         that the policy same-node names, 32 in all",
    );
    assert_eq!(case(&DIAGONAL, Some("next-cpu")).short().0, Verdict::Fail);
}

#[test]
fn a_lost_request_names_its_cpu() {
    let bend = |change: &dyn Fn(&mut lab_proto::observe::PlaceObservation)| {
        let mut seen = placed(&DIAGONAL);
        change(&mut seen);
        let mut case = place(&DIAGONAL);
        case.observations[0].1 = Observation::Placed(seen);
        case
    };
    let case = bend(&|p| p.cells[2].count = 15);
    is(&case, Verdict::Fail, Owner::Kernel, "15 of 16 requests of CPU 2 (node 1) arrived");
    let case = bend(&|p| p.errors.push("cpu 3: EIO".into()));
    is(&case, Verdict::Fail, Owner::Kernel, "1 client calls failed, first cpu 3: EIO");
    let case = bend(&|p| p.traced_not_arrived = 2);
    is(&case, Verdict::Fail, Owner::Kernel, "2 requests were sent and never arrived");
    let case = bend(&|p| p.client_cpus.truncate(3));
    is(&case, Verdict::Infra, Owner::Lab, "not every CPU had a client");
    let case = bend(&|p| p.stats.arrivals_lost = 1);
    is(&case, Verdict::Infra, Owner::Lab, "not kept");
}

fn teardown(change: impl FnOnce(&mut lab_proto::observe::TeardownObservation)) -> Case {
    let mut seen = torn_down();
    change(&mut seen);
    let rules = [
        Rule::EveryCallReturned,
        Rule::LoadWasReal,
        Rule::NoTaskInD,
        Rule::WaitingZero,
        Rule::ConnectionGone,
    ];
    let rules = rules.map(|r| rule("kill", r)).into();
    Case::new(vec![("kill", teardown_step(), Observation::TornDown(seen))], rules)
}

#[test]
fn a_clean_teardown_passes() {
    assert_eq!(teardown(|_| ()).short(), pass());
    assert_eq!(teardown(|t| t.waiting_after = None).short(), pass());
}

#[test]
fn each_teardown_rule_can_fail() {
    let stuck = |t: &mut lab_proto::observe::TeardownObservation| {
        t.clients[2].returned = false;
        t.clients[2].wait_ms = 5000;
        t.clients[2].stack = vec!["[<0>] request_wait_answer+0x1/0x2".into()];
    };
    is(
        &teardown(stuck),
        Verdict::Hang,
        Owner::Kernel,
        "step `kill`: 1 of 4 client calls did not return: client tid 102 on CPU 2 waits in \
         request_wait_answer for 5000 ms",
    );
    let case = teardown(|t| t.clients[1].calls = 0);
    is(&case, Verdict::Fail, Owner::Kernel, "client tid 101 on CPU 1 made no call");
    let case = teardown(|t| t.clients.clear());
    is(&case, Verdict::Infra, Owner::Lab, "no clients");
    let case = teardown(|t| t.d_tasks.push(task(7, "fsync", "D", &["fuse_sync_writes+0x1/0x2"])));
    is(
        &case,
        Verdict::Hang,
        Owner::Kernel,
        "task fsync (pid 7, tid 7) in D waits in fuse_sync_writes",
    );
    let case = teardown(|t| t.waiting_after = Some(3));
    is(&case, Verdict::Fail, Owner::Kernel, "still has 3 waiting");
    let case = teardown(|t| t.connection_gone = false);
    is(&case, Verdict::Fail, Owner::Kernel, "connection is still there after the umounts (ok)");
}

#[test]
fn the_worst_finding_decides_and_the_others_are_named() {
    let case = teardown(|t| {
        t.connection_gone = false;
        t.clients[0].returned = false;
    });
    let judgement = case.judge();
    assert_eq!(judgement.verdict, Verdict::Hang);
    assert!(judgement.evidence.iter().any(|l| l.starts_with("also FAIL: ")));
}

const FIO: &str = include_str!("../perf/samples/fio-3.33.json");

fn fio_case(output: &str) -> Case {
    let seen = Observation::Fio(fio(output));
    let mut case = Case::new(vec![("rr", fio_step(), seen)], vec![rule("rr", Rule::FioSane)]);
    case.artifacts = vec![("fio.json".into(), output.into())];
    case
}

#[test]
fn fio_is_sane_or_not() {
    assert_eq!(fio_case(FIO).short(), pass());
    let bent = |from: &str, to: &str| fio_case(&FIO.replacen(from, to, 1));
    let case = bent("\"error\": 0", "\"error\": 5");
    is(&case, Verdict::Fail, Owner::Kernel, "step `rr`: fio job `j` failed with errno 5");
    let case = bent("\"total_ios\": 1024", "\"total_ios\": 0");
    is(&case, Verdict::Fail, Owner::Kernel, "fio made no reads");
    let case = bent("\"short_ios\": 0", "\"short_ios\": 1");
    is(&case, Verdict::Fail, Owner::Kernel, "1 short and 0 dropped");
    let case = bent("\"drop_ios\": 0", "\"drop_ios\": 2");
    is(&case, Verdict::Fail, Owner::Kernel, "0 short and 2 dropped");
    let mut case = fio_case("fio: job failed");
    is(&case, Verdict::Infra, Owner::Lab, "text instead of JSON: fio: job failed");
    case.artifacts.clear();
    is(&case, Verdict::Infra, Owner::Lab, "`fio.json` did not arrive");
    let mut case = fio_case(FIO);
    case.artifacts[0].1.pop();
    is(&case, Verdict::Infra, Owner::Lab, "bytes");
    let Observation::Fio(seen) = &mut case.observations[0].1 else { panic!() };
    seen.exit = "signal 9".into();
    is(&case, Verdict::Fail, Owner::Kernel, "fio ended with signal 9");
    assert!(case.judge().evidence.contains(&"fio: last".to_string()));
}

#[test]
fn equal_trees_pass_and_unequal_ones_show_where() {
    let steps = |b: &[&str]| {
        let step = |p: &str| Step::Tree { path: p.into() };
        let steps =
            vec![("a", step("/a"), tree(&["mkdir ok", "stat ok"])), ("b", step("/b"), tree(b))];
        Case::new(steps, vec![Expectation::Equal { steps: vec!["a".into(), "b".into()] }])
    };
    assert_eq!(steps(&["mkdir ok", "stat ok"]).short(), pass());
    let case = steps(&["mkdir ok", "stat EIO\x1b[2J"]);
    is(&case, Verdict::Fail, Owner::Kernel, "step `b` differs from step `a` in 2 lines");
    let evidence = case.judge().evidence;
    assert!(evidence.contains(&"-stat ok".to_string()), "{evidence:?}");
    assert!(evidence.contains(&r"+stat EIO\x1b[2J".to_string()), "{evidence:?}");
}

fn snapshots(per_topology: bool, per_policy: bool) -> Case {
    let mut case = place(&DIAGONAL);
    case.scenario.expect =
        vec![Expectation::Snapshot { steps: vec!["place".into()], per_topology, per_policy }];
    case
}

#[test]
fn a_snapshot_is_new_then_equal_then_changed() {
    let mut case = snapshots(true, false);
    is(&case, Verdict::New, Owner::Scenario, "no snapshot snapshots/correctness/tree/2x2.snap yet");
    let pending = case.judge().snapshot_new.pop().unwrap();
    assert_eq!(pending.path, "correctness/tree/2x2.snap");
    insta::assert_snapshot!(pending.text);
    case.snapshots.texts.insert(pending.path.clone(), Ok(pending.text.trim_end().into()));
    assert_eq!(case.short(), pass());
    assert_eq!(case.judge().snapshot_new, []);
    let changed = pending.text.replacen('*', ".", 1);
    case.snapshots.texts.insert(pending.path.clone(), Ok(changed));
    is(
        &case,
        Verdict::Fail,
        Owner::Kernel,
        "snapshots/correctness/tree/2x2.snap differs in 2 lines",
    );
    assert!(case.judge().evidence.iter().any(|l| l.starts_with("+node 0 cpu 0")));
    assert_eq!(case.judge().snapshot_new.len(), 1);
    case.snapshots.texts.insert(pending.path, Err("torn".into()));
    is(&case, Verdict::Infra, Owner::Scenario, "torn");
}

#[test]
fn nothing_is_written_when_strict() {
    let mut case = snapshots(false, false);
    case.strict = true;
    assert_eq!(case.short().0, Verdict::New);
    assert_eq!(case.judge().snapshot_new, []);
    let changed = ("correctness/tree/any.snap".to_string(), Ok("other".to_string()));
    case.snapshots.texts.extend([changed]);
    assert_eq!(case.short().0, Verdict::Fail);
    assert_eq!(case.judge().snapshot_new, []);
}

#[test]
fn a_policy_names_the_snapshot_and_without_one_there_is_none() {
    let case = snapshots(true, true);
    assert_eq!(case.short(), pass());
    let path = |policy| {
        let wanted = wanted(&case.scenario, &case.topology, policy);
        wanted.first().map(|w| w.path.clone())
    };
    assert_eq!(path(None), None);
    assert_eq!(path(Some("next-cpu")).as_deref(), Some("correctness/tree/2x2@next-cpu.snap"));
}

#[test]
fn a_run_over_the_wrong_transport_leaves_no_snapshot() {
    let mut case = ring();
    case.scenario.expect = snapshots(false, false).scenario.expect;
    case.scenario.expect.push(Expectation::Snapshot {
        steps: vec!["serve".into()],
        per_topology: false,
        per_policy: false,
    });
    case.served().report.transport = Transport::Classic;
    assert_eq!(case.short().0, Verdict::Fail);
    assert_eq!(case.judge().snapshot_new, []);
}

#[test]
fn a_rule_that_does_not_fit_its_step_is_the_scenario_s_mistake() {
    let mut case = ring();
    case.scenario.expect = vec![rule("serve", Rule::FioSane)];
    is(&case, Verdict::Infra, Owner::Scenario, "rule fio-sane does not fit a serve step");
}
