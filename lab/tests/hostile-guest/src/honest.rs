//! What a good guest of topology `1x2` with nothing to tell would answer.

use lab_proto::message::{Command, Reply};
use lab_proto::observe::{
    CpuReport, Diagnosis, Facts, FioObservation, NodeReport, Observation, ServeObservation,
    TopologyReport, TreeObservation,
};
use lab_proto::server::{ServerReport, ServerSpec, ServerStats};
use lab_proto::step::Step;

/// The good answer.
pub(crate) fn reply(command: &Command) -> Reply {
    match command {
        Command::Facts => Reply::Facts(facts()),
        Command::Topology => Reply::Topology(topology()),
        Command::Step { step, .. } => Reply::Observed(observation(step)),
        Command::Stats => Reply::Stats(vec![ServerStats::default()]),
        Command::Diagnose => Reply::Diagnosis(Diagnosis::default()),
        Command::Mark { marker } => {
            kmsg(&format!("<5>lab-mark: {marker}"));
            Reply::Marked { tainted: 0 }
        }
        Command::PowerOff => Reply::PoweringOff,
    }
}

/// Writes a line to the kernel log. Without its end the kernel would wait for more of it, and
/// print it only before the next one.
pub(crate) fn kmsg(text: &str) {
    let _ = std::fs::write("/dev/kmsg", format!("{text}\n"));
}

/// Facts about a kernel with the ring.
pub(crate) fn facts() -> Facts {
    Facts {
        release: "7.3.4".into(),
        version: "#1".into(),
        cmdline: String::new(),
        tainted: 0,
        enable_uring: Some(true),
        traces_fuse: true,
        fio: Some("fio-3.33".into()),
    }
}

/// The layout that was asked for, whatever this guest has.
pub(crate) fn topology() -> TopologyReport {
    let cpu = |cpu| CpuReport { cpu, package: 0, core: cpu as i32, siblings: vec![cpu] };
    let node = NodeReport { id: 0, cpus: vec![0, 1], mem_kib: 700 << 10, distances: vec![10] };
    let all = vec![0, 1];
    TopologyReport {
        possible: all.clone(),
        present: all.clone(),
        online: all,
        cpus: vec![cpu(0), cpu(1)],
        nodes: vec![node],
    }
}

/// What each step would see.
pub(crate) fn observation(step: &Step) -> Observation {
    match step {
        Step::Serve(spec) => Observation::Served(served(spec)),
        Step::Tree { .. } => {
            Observation::Tree(TreeObservation { lines: vec!["mkdir -> ok".into()] })
        }
        Step::Fio { .. } => Observation::Fio(fio("fio.json", 0)),
        _ => Observation::Mounted,
    }
}

/// A server that is all that was asked for.
pub(crate) fn served(spec: &ServerSpec) -> ServeObservation {
    let report = ServerReport {
        name: spec.name.clone(),
        mount_point: spec.mount_point.clone(),
        pid: 77,
        transport: spec.transport,
        fallback_reason: None,
        queues: 2,
        depth: spec.depth,
        kernel_minor: 45,
        minor: 45,
        offered_flags: 0,
        accepted_flags: 0,
        max_write: spec.max_write,
        connection: 40,
    };
    ServeObservation { report, uring_fds: 2, enable_uring: Some(true), possible_cpus: 2 }
}

/// An fio that ended well and left `artifact_bytes` of results.
pub(crate) fn fio(artifact: &str, artifact_bytes: u64) -> FioObservation {
    FioObservation {
        argv: vec!["fio".into()],
        exit: "exit 0".into(),
        artifact: artifact.into(),
        artifact_bytes,
        stderr: String::new(),
        stats: Vec::new(),
    }
}
