//! FUSE connections as fusectl shows them.

use std::io;
use std::sync::mpsc;
use std::time::Duration;

use lab_proto::observe::ConnectionReport;

use super::read;

const ROOT: &str = "/sys/fs/fuse/connections";

/// Every connection with its counts.
pub(crate) fn all() -> Vec<ConnectionReport> {
    read::numbered(ROOT, "")
        .into_iter()
        .map(|connection| ConnectionReport {
            connection,
            waiting: waiting(connection),
            max_background: value(connection, "max_background"),
            congestion_threshold: value(connection, "congestion_threshold"),
        })
        .collect()
}

/// `waiting` of a connection, none when its directory is gone.
pub(crate) fn waiting(connection: u32) -> Option<u64> {
    value(connection, "waiting")
}

fn value(connection: u32, file: &str) -> Option<u64> {
    read::value(format!("{ROOT}/{connection}/{file}"))
}

/// Aborts a connection: writes to its `abort`, at most `limit`.
///
/// # Errors
/// What the write says, `TimedOut` when it does not return.
pub(crate) fn abort(connection: u32, limit: Duration) -> io::Result<()> {
    let (send, receive) = mpsc::channel();
    let path = format!("{ROOT}/{connection}/abort");
    std::thread::spawn(move || send.send(std::fs::write(path, "1")));
    receive.recv_timeout(limit).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
