//! Start a server and see what the kernel says of it.

use lab_proto::message::Fault;
use lab_proto::observe::{Observation, ServeObservation};
use lab_proto::server::ServerSpec;

use super::run::Context;
use crate::agent::Server;
use crate::report::{cpulist, facts};

pub(super) fn run(spec: &ServerSpec, context: &Context<'_>) -> Result<Observation, Fault> {
    let server = Server::start(spec)?;
    let observation = ServeObservation {
        uring_fds: uring_fds(server.report.pid),
        report: server.report.clone(),
        enable_uring: facts::enable_uring(),
        possible_cpus: cpulist::possible().len() as u32,
    };
    context.case.add(server)?;
    Ok(Observation::Served(observation))
}

/// io_uring instances among the open files of a process.
fn uring_fds(pid: u32) -> u32 {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return 0 };
    entries
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .filter(|target| target.to_string_lossy() == "anon_inode:[io_uring]")
        .count() as u32
}
