//! tmpfs, and the end of a mount.

use lab_proto::message::{Fault, FaultKind};
use lab_proto::observe::{Observation, UnmountObservation};
use lab_proto::server::ServerAsk;

use super::child::{self, wait_until};
use super::run::{ASK_LIMIT, Context, fault};
use crate::agent::Server;
use crate::report::connections;
use crate::sys::mount;
use crate::sys::process::End;

pub(super) fn tmpfs(mount_point: &str) -> Result<Observation, Fault> {
    mount::pseudo("tmpfs", mount_point)
        .map_err(|e| fault(FaultKind::Unsupported, format!("tmpfs on {mount_point}: {e}")))?;
    Ok(Observation::Mounted)
}

pub(super) fn unmount(mount_point: &str, context: &Context<'_>) -> Result<Observation, Fault> {
    let observation = match context.case.server(mount_point) {
        Some(server) => end_server(mount_point, &server, context)?,
        None => {
            checked(mount_point, child::unmount(mount_point, 0, context.call_limit)?)?;
            UnmountObservation { stats: None, server_exit: None, connection_gone: true }
        }
    };
    Ok(Observation::Unmounted(observation))
}

fn end_server(
    mount_point: &str,
    server: &Server,
    context: &Context<'_>,
) -> Result<UnmountObservation, Fault> {
    let limit = context.call_limit;
    let stats = server.stats(ASK_LIMIT).ok();
    // A server that does not stop shows in its exit.
    let _ = server.ask(&ServerAsk::Stop, limit);
    let end = server.end(limit);
    if end.is_none() {
        let _ = server.kill();
    }
    let gone = || connections::waiting(server.report.connection).is_none();
    let mut connection_gone = wait_until(limit, gone);
    if !connection_gone {
        // The server left its mount behind: take it away, so that the case can go on.
        let _ = child::unmount(mount_point, libc::MNT_DETACH, limit)?;
        connection_gone = gone();
    }
    context.case.remove(mount_point);
    let server_exit = Some(end.map_or_else(|| "running".to_owned(), exit_text));
    Ok(UnmountObservation { stats, server_exit, connection_gone })
}

fn exit_text(end: End) -> String {
    match end {
        End::Exit(code) => code.to_string(),
        End::Signal(signal) => format!("signal {signal}"),
    }
}

fn checked(mount_point: &str, result: String) -> Result<(), Fault> {
    match result.as_str() {
        "ok" => Ok(()),
        "no return" => Err(fault(FaultKind::Hang, format!("umount {mount_point}: no return"))),
        _ => Err(fault(FaultKind::Unsupported, format!("umount {mount_point}: {result}"))),
    }
}
