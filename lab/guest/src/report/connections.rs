//! FUSE connections as fusectl shows them.

use lab_proto::observe::ConnectionReport;

use super::read;

const ROOT: &str = "/sys/fs/fuse/connections";

/// Every connection with its `waiting`.
pub(crate) fn all() -> Vec<ConnectionReport> {
    read::numbered(ROOT, "")
        .into_iter()
        .map(|connection| ConnectionReport { connection, waiting: waiting(connection) })
        .collect()
}

/// `waiting` of a connection, none when its directory is gone.
pub(crate) fn waiting(connection: u32) -> Option<u64> {
    read::value(format!("{ROOT}/{connection}/waiting"))
}
