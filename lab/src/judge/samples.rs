//! Observations for the tests of the judge.

use std::collections::BTreeSet;
use std::time::Duration;

use lab_proto::observe::{
    ClientEnd, CpuSource, FioObservation, Observation, PlaceCell, PlaceObservation,
    ServeObservation, TaskReport, TeardownObservation, TreeObservation,
};
use lab_proto::server::{
    FileSystem, QueueStats, Queues, ServerReport, ServerSpec, ServerStats, Transport,
};
use lab_proto::step::{Ending, Step};

use crate::config::scenario::{
    Expectation, ImageKind, Kind, NamedStep, Profile, Requires, Scenario,
};
use crate::config::topology::{Node, Topology};

pub(super) fn topology() -> Topology {
    let node = |cpus: [u32; 2]| Node { cpus: BTreeSet::from(cpus), memory_bytes: 1 << 28 };
    Topology {
        name: "2x2".into(),
        summary: String::new(),
        cpus: 4,
        max_cpus: 4,
        sockets: 2,
        cores: 2,
        threads: 1,
        nodes: vec![node([0, 1]), node([2, 3])],
        distances: None,
    }
}

pub(crate) fn scenario(steps: Vec<(&str, Step)>, expect: Vec<Expectation>) -> Scenario {
    let named = |(name, step): (&str, Step)| NamedStep { name: name.into(), step, limit: None };
    Scenario {
        name: "correctness/tree".into(),
        summary: String::new(),
        kind: Kind::Correctness,
        profile: Profile::Quick,
        image: ImageKind::Agent,
        requires: Requires::default(),
        kernel_args: vec![],
        step_limit: Duration::from_secs(10),
        case_limit: Duration::from_secs(60),
        call_limit: Duration::from_secs(5),
        silence_limit: Duration::from_secs(10),
        steps: steps.into_iter().map(named).collect(),
        expect,
        allow: vec![],
    }
}

pub(super) fn spec(name: &str, transport: Transport) -> ServerSpec {
    ServerSpec {
        name: name.into(),
        mount_point: format!("/mnt/{name}"),
        transport,
        fallback: false,
        file_system: FileSystem::Memory,
        depth: 8,
        max_write: 1 << 20,
        max_background: 64,
        cache_ms: 0,
        direct_io: true,
        writeback: false,
        queues: Queues::All,
        fault: None,
    }
}

pub(super) fn served(name: &str, transport: Transport, queues: u32) -> ServeObservation {
    ServeObservation {
        report: ServerReport {
            name: name.into(),
            mount_point: format!("/mnt/{name}"),
            pid: 70,
            transport,
            fallback_reason: None,
            queues,
            depth: 8,
            kernel_minor: 46,
            minor: 42,
            offered_flags: u64::MAX,
            accepted_flags: 1 | 1 << 41,
            max_write: 1 << 20,
            connection: 40,
        },
        uring_fds: queues,
        enable_uring: Some(true),
        possible_cpus: 4,
    }
}

pub(super) fn stats(name: &str, arrived: &[(&str, u64)], dev_fuse: &[(&str, u64)]) -> ServerStats {
    let own = |counts: &[(&str, u64)]| counts.iter().map(|(o, n)| (o.to_string(), *n)).collect();
    ServerStats {
        name: name.into(),
        connection: 40,
        queues: vec![QueueStats { arrived: own(arrived), ..QueueStats::default() }],
        dev_fuse: own(dev_fuse),
        arrivals: vec![],
        arrivals_lost: 0,
    }
}

pub(super) fn task(pid: u32, name: &str, state: &str, stack: &[&str]) -> TaskReport {
    TaskReport {
        tid: pid,
        pid,
        name: name.into(),
        state: state.into(),
        stack: stack.iter().map(|f| format!("[<0>] {f}")).collect(),
        syscall: String::new(),
    }
}

pub(super) fn tree(lines: &[&str]) -> Observation {
    Observation::Tree(TreeObservation { lines: lines.iter().map(|l| l.to_string()).collect() })
}

pub(super) fn placed(cells: &[(u32, u32, u32)]) -> PlaceObservation {
    let cell = |(cpu, queue, count): &(u32, u32, u32)| PlaceCell {
        cpu: *cpu,
        queue: *queue,
        count: *count,
    };
    PlaceObservation {
        cpu_source: CpuSource::Tracepoint,
        client_cpus: vec![0, 1, 2, 3],
        requests: 16,
        cells: cells.iter().map(cell).collect(),
        traced_not_arrived: 0,
        arrived_not_traced: 0,
        errors: vec![],
        stats: stats("ring", &[], &[]),
    }
}

pub(super) fn client(cpu: u32) -> ClientEnd {
    ClientEnd {
        tid: 100 + cpu,
        cpu,
        calls: 50,
        returned: true,
        last: "ENOTCONN".into(),
        wait_ms: 3,
        stack: vec![],
    }
}

pub(super) fn torn_down() -> TeardownObservation {
    TeardownObservation {
        clients: (0..4).map(client).collect(),
        stats: Some(stats("ring", &[("read", 9)], &[("forget", 2)])),
        waiting_before: Some(4),
        waiting_after: Some(0),
        umounts: vec!["ok".into()],
        connection_gone: true,
        server_exit: "signal 9".into(),
        d_tasks: vec![],
        delay_us: 17,
    }
}

pub(crate) fn teardown_step() -> Step {
    Step::Teardown {
        path: "/mnt/ring".into(),
        ending: Ending::KillServer,
        clients: 4,
        load_ms: 100,
    }
}

pub(super) fn fio_step() -> Step {
    Step::Fio {
        path: "/mnt/ring".into(),
        rw: "randread".into(),
        block_size: 4096,
        size: 1 << 20,
        iodepth: 4,
        jobs: 1,
        engine: "io_uring".into(),
        direct: true,
        runtime_ms: 1000,
        ramp_ms: 0,
    }
}

pub(super) fn fio(output: &str) -> FioObservation {
    FioObservation {
        argv: vec!["fio".into()],
        exit: "exit 0".into(),
        artifact: "fio.json".into(),
        artifact_bytes: output.len() as u64,
        stderr: "first\nlast".into(),
        stats: vec![],
    }
}
