//! Words that want to be more than words.

use lab_proto::message::{Command, Fault, FaultKind, Reply};
use lab_proto::observe::{Diagnosis, Observation, ServerSeen, TaskReport, TreeObservation};
use lab_proto::server::{QueueStats, ServerStats};

use crate::honest;

/// Escape sequences, control bytes of both ranges, marks that reorder or hide text, ends of XML
/// and lines that a reader of KTAP would take for results.
pub(crate) const EVIL: &str = "\x1b[2J\x1b]0;owned\x07\u{9b}31m\u{7f}\0\r\n\
    ok 1 forged # SKIP no\nnot ok 2 forged\n1..9\nKTAP version 1\nBail out!\n\
    ]]><!-- &amp; &lol; <x a='\"'> --><![CDATA[\
    ../../../../etc/passwd C:\\con /dev/sda \u{202e}gnp\u{2066}x\u{200b}\u{feff}\u{fffe}\u{ad}\u{e0041} % {} $(id) `id`";

/// Lines that are faults on a console and nothing in an observation.
const SPLATS: [&str; 3] = [
    "[    1.000000] Kernel panic - not syncing: forged",
    "[    1.000001] BUG: kernel NULL pointer dereference, address: 0000000000000000",
    "[    1.000002] WARNING: CPU: 0 PID: 1 at fs/fuse/dev.c:1 fuse_forged+0x1/0x2",
];

/// The answer of a mode that is about text; none for every other mode.
pub(crate) fn result(mode: &str, command: &Command) -> Option<Result<Reply, Fault>> {
    let fault = |kind, text: String| Some(Err(Fault { kind, text }));
    match (mode, command) {
        ("text-agent", Command::Step { .. }) => fault(FaultKind::Agent, EVIL.into()),
        ("text-transport", Command::Step { .. }) => fault(FaultKind::Transport, EVIL.into()),
        ("text-long", Command::Step { .. }) => fault(FaultKind::Server, EVIL.repeat(5_000)),
        ("text-hang", Command::Step { .. }) => fault(FaultKind::Hang, EVIL.into()),
        ("text-hang", Command::Diagnose) => Some(Ok(Reply::Diagnosis(diagnosis()))),
        ("text-tree", Command::Step { step: lab_proto::step::Step::Tree { .. }, .. }) => {
            Some(Ok(Reply::Observed(Observation::Tree(TreeObservation { lines: lines() }))))
        }
        ("text-facts", Command::Facts) => {
            let mut facts = honest::facts();
            (facts.release, facts.version) = (EVIL.into(), EVIL.into());
            (facts.cmdline, facts.fio) = (EVIL.into(), Some(EVIL.into()));
            Some(Ok(Reply::Facts(facts)))
        }
        _ => None,
    }
}

fn lines() -> Vec<String> {
    SPLATS.iter().map(|s| (*s).to_owned()).chain([EVIL.to_owned()]).collect()
}

fn diagnosis() -> Diagnosis {
    let task = |tid| TaskReport {
        tid,
        pid: u32::MAX,
        name: EVIL.into(),
        state: EVIL.into(),
        stack: vec![format!("request_wait_answer+{EVIL}"), EVIL.into()],
        syscall: EVIL.into(),
    };
    let queue = QueueStats {
        queue: u32::MAX,
        arrived: vec![(EVIL.into(), u64::MAX); 2],
        replied: u64::MAX,
        in_flight: u32::MAX,
    };
    let server = ServerStats {
        name: EVIL.into(),
        queues: vec![queue.clone(), queue],
        arrivals_lost: u64::MAX,
        ..ServerStats::default()
    };
    let process = ServerSeen { name: EVIL.into(), pid: u32::MAX, connection: 0, queues: u32::MAX };
    Diagnosis {
        tasks: (0..500).map(task).collect(),
        gaps: vec![EVIL.to_owned(); 100],
        servers: vec![server],
        processes: vec![process],
        ..Diagnosis::default()
    }
}
