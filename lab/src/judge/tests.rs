//! Whole judgements, one kind of end after the other, and the transport.

use lab_proto::message::{Fault, FaultKind};
use lab_proto::observe::{Diagnosis, Facts, Observation, UnmountObservation};
use lab_proto::server::Transport;
use lab_proto::step::Step;

use super::bent::{Case, is, pass, ring};
use super::evidence::CaseEnd;
use super::samples::*;
use super::verdict::{Owner, Verdict};

#[test]
fn a_splat_wins_over_every_other_end() {
    let ends = [
        CaseEnd::Completed,
        CaseEnd::AgentLost { step: "serve".into(), how: "end of stream".into() },
        CaseEnd::StepTimeout { step: "serve".into(), said: None, diagnosis: None },
        CaseEnd::VmFailed { text: "QEMU died".into() },
        CaseEnd::BootTimeout { limit_ms: 9, last: vec![], diagnosis: None },
        CaseEnd::BootEnded { last: vec![] },
        CaseEnd::GuestPoweredOff,
        CaseEnd::Cancelled,
    ];
    for end in ends {
        let mut case = ring();
        case.end = end;
        case.mismatch = Some("3 CPUs");
        case.console = b"[    1.000000] Kernel panic - not syncing: sysrq\n".to_vec();
        is(&case, Verdict::Kernel, Owner::Kernel, "kernel panic: sysrq");
        assert!(case.judge().evidence[0].contains("Kernel panic"));
    }
}

#[test]
fn ends_without_a_splat_have_their_owners() {
    let mut case = ring();
    case.observations.clear();
    case.taint.1 = None;
    case.end = CaseEnd::AgentLost { step: "serve".into(), how: "end of stream".into() };
    is(&case, Verdict::Infra, Owner::Lab, "agent lost in step `serve`: end of stream");
    case.end = CaseEnd::VmFailed { text: "QEMU died".into() };
    is(&case, Verdict::Infra, Owner::Host, "QEMU died");
    case.end = CaseEnd::GuestPoweredOff;
    is(&case, Verdict::Infra, Owner::Lab, "in step `serve`");
    case.end = CaseEnd::StepTimeout { step: "serve".into(), said: None, diagnosis: None };
    is(&case, Verdict::Hang, Owner::Kernel, "step `serve` did not end");
    let tasks = vec![task(1, "swapper/0", "D", &["schedule+0x1/0x2", "prepare_namespace+0x3/0x4"])];
    let diagnosis = Some(Diagnosis { tasks, ..Diagnosis::default() });
    let last = vec!["smpboot: CPU1".into()];
    case.end = CaseEnd::BootTimeout { limit_ms: 60_000, last, diagnosis };
    is(&case, Verdict::Hang, Owner::Kernel, "in 60000 ms; its last line: smpboot: CPU1");
    case.end = CaseEnd::BootEnded { last: vec![] };
    is(&case, Verdict::Fail, Owner::Kernel, "did not boot");
    case.end = CaseEnd::Cancelled;
    assert_eq!(case.short().0, Verdict::Skip { reason: "interrupted".into() });
    case.mismatch = Some("3 CPUs");
    is(&case, Verdict::Infra, Owner::Lab, "topology `2x2` says: 3 CPUs");
}

#[test]
fn faults_of_a_step_have_their_owners() {
    let mut case = ring();
    let mut with = |kind, enable_uring: Option<Option<bool>>| {
        let fault = Fault { kind, text: "not offered".into() };
        case.end = CaseEnd::StepFault { step: "serve".into(), fault };
        case.facts = enable_uring.map(|enable_uring| Facts {
            release: String::new(),
            version: String::new(),
            cmdline: String::new(),
            tainted: 0,
            enable_uring,
            traces_fuse: true,
            fio: None,
        });
        let (verdict, owner, cause) = case.short();
        assert!(cause.contains("`serve`") && cause.contains("not offered"), "{cause}");
        (verdict, owner.unwrap())
    };
    assert_eq!(with(FaultKind::Transport, Some(Some(false))), (Verdict::Fail, Owner::Kernel));
    assert_eq!(with(FaultKind::Transport, Some(None)), (Verdict::Fail, Owner::Kernel));
    assert_eq!(with(FaultKind::Transport, Some(Some(true))), (Verdict::Fail, Owner::Server));
    assert_eq!(with(FaultKind::Transport, None), (Verdict::Fail, Owner::Server));
    assert_eq!(with(FaultKind::Server, None), (Verdict::Fail, Owner::Server));
    assert_eq!(with(FaultKind::Unsupported, None), (Verdict::Infra, Owner::Scenario));
    assert_eq!(with(FaultKind::Agent, None), (Verdict::Infra, Owner::Lab));
}

#[test]
fn a_hang_names_task_and_function() {
    let mut case = ring();
    let diagnosis = Diagnosis {
        tasks: vec![task(9, "cat", "D", &["schedule+0x1/0x2", "fuse_get_req+0x3/0x4"])],
        ..Diagnosis::default()
    };
    case.end =
        CaseEnd::StepTimeout { step: "serve".into(), said: None, diagnosis: Some(diagnosis) };
    is(&case, Verdict::Hang, Owner::Kernel, "task cat (pid 9, tid 9) in D waits in fuse_get_req");
    assert!(case.judge().evidence.iter().any(|l| l.contains("fuse_get_req+0x3/0x4")));
}

#[test]
fn a_new_taint_is_the_kernel_s() {
    let mut case = ring();
    case.taint = (Some(4096), Some(4096));
    assert_eq!(case.short(), pass());
    case.taint = (Some(4096), Some(4096 | 512));
    is(&case, Verdict::Kernel, Owner::Kernel, "kernel got tainted: W");
    case.taint = (Some(0), None);
    is(&case, Verdict::Infra, Owner::Lab, "taint");
}

#[test]
fn the_ring_is_asserted_not_assumed() {
    assert_eq!(ring().short(), pass());
    let mut case = ring();
    case.served().report.transport = Transport::Classic;
    is(&case, Verdict::Fail, Owner::Server, "asked for ring and got classic");
    case.served().enable_uring = Some(false);
    is(&case, Verdict::Fail, Owner::Kernel, "fuse.enable_uring is off");
    let mut case = ring();
    case.served().report.queues = 3;
    is(&case, Verdict::Fail, Owner::Server, "3 queues registered, 4 CPUs are possible");
    let mut case = ring();
    case.served().uring_fds = 1;
    is(&case, Verdict::Fail, Owner::Server, "1 io_uring instances open");
    let mut case = ring();
    case.served().enable_uring = None;
    is(&case, Verdict::Fail, Owner::Server, "fuse.enable_uring is not on");
    let mut case = ring();
    case.served().possible_cpus = 8;
    is(&case, Verdict::Infra, Owner::Lab, "8 possible CPUs");
}

#[test]
fn a_fallback_is_right_only_where_it_was_asked_for() {
    let mut case = ring();
    case.served().report.transport = Transport::Classic;
    case.served().report.fallback_reason = Some("not offered".into());
    assert_eq!(case.short().0, Verdict::Fail);
    let Step::Serve(spec) = &mut case.scenario.steps[0].step else { panic!() };
    spec.fallback = true;
    assert_eq!(case.short(), pass());
}

#[test]
fn requests_beside_a_ready_ring_fail() {
    let allowed = [("forget", 5), ("batch_forget", 1), ("interrupt", 2), ("read", 0)];
    let mut case = ring();
    case.stats = vec![stats("ring", &[("read", 3)], &allowed)];
    assert_eq!(case.short(), pass());
    case.stats = vec![stats("other", &[], &[("read", 1)])];
    assert_eq!(case.short(), pass());
    case.stats = vec![stats("ring", &[], &[("forget", 1), ("read", 1)])];
    is(
        &case,
        Verdict::Fail,
        Owner::Kernel,
        "came over /dev/fuse though its ring was ready: read 1",
    );
    let seen = UnmountObservation {
        stats: case.stats.pop(),
        server_exit: Some("0".into()),
        connection_gone: true,
    };
    let step = Step::Unmount { mount_point: "/mnt/ring".into() };
    let mut case = Case::new(
        vec![
            ("serve", case.scenario.steps[0].step.clone(), case.observations[0].1.clone()),
            ("end", step, Observation::Unmounted(seen)),
        ],
        vec![],
    );
    is(&case, Verdict::Fail, Owner::Kernel, "read 1");
    case.observations.pop();
    is(&case, Verdict::Infra, Owner::Lab, "step `end` has no observation");
}
