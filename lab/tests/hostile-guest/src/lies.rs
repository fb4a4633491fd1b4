//! Claims of a guest that all went well, against what can be known without its word.

use lab_proto::message::{Command, Fault, Reply};
use lab_proto::observe::Observation;
use lab_proto::server::{ServerStats, Transport};
use lab_proto::step::Step;

use crate::honest;

/// An oops as a kernel prints it; on the console it counts, whoever wrote it there.
const OOPS: [&str; 6] = [
    "BUG: kernel NULL pointer dereference, address: 0000000000000000",
    "Oops: Oops: 0000 [#1] SMP NOPTI",
    "RIP: 0010:fuse_forged_read+0x10/0x20",
    "Call Trace:",
    " fuse_forged_call+0x1/0x2",
    "---[ end trace 0000000000000000 ]---",
];

/// The answer of a mode that lies; none for every other mode.
pub(crate) fn result(mode: &str, command: &Command) -> Option<Result<Reply, Fault>> {
    let reply = match (mode, command) {
        ("lie-splat", Command::Step { .. }) => {
            OOPS.iter().for_each(|line| honest::kmsg(&format!("<1>{line}")));
            return None;
        }
        ("lie-mark", Command::Step { seed, .. }) => {
            // Every marker that could be foretold from what the guest was told.
            honest::kmsg(&format!("<5>lab-mark: lab-end-{seed:016x}"));
            honest::kmsg("<5>lab-mark: lab-end-0000000000000000");
            return None;
        }
        ("lie-mark", Command::Mark { .. }) => Reply::Marked { tainted: 0 },
        ("lie-taint", Command::Mark { .. }) => {
            honest::reply(command);
            Reply::Marked { tainted: u64::MAX }
        }
        ("lie-layout", Command::Topology) => {
            let mut report = honest::topology();
            report.online = vec![0, u32::MAX];
            Reply::Topology(report)
        }
        (_, Command::Step { step: Step::Serve(spec), .. }) => {
            let mut seen = honest::served(spec);
            match mode {
                "lie-ring-fds" => seen.uring_fds = 0,
                "lie-ring-classic" => seen.report.transport = Transport::Classic,
                "lie-ring-queues" => seen.report.queues = u32::MAX,
                _ => return None,
            }
            Reply::Observed(Observation::Served(seen))
        }
        ("lie-ring-bypass", Command::Stats) => {
            let dev_fuse = vec![("lookup".to_owned(), u64::MAX), ("read".to_owned(), u64::MAX)];
            Reply::Stats(vec![ServerStats { name: "ring".into(), dev_fuse, ..Default::default() }])
        }
        _ => return None,
    };
    Some(Ok(reply))
}
