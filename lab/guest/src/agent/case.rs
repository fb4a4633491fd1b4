//! What a case has built up in this guest: servers and the seat of its artifacts.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lab_proto::message::{Fault, FaultKind};
use lab_proto::server::ServerStats;

use super::server::Server;
use crate::sys::mount;

/// Most servers of a case.
const MAX_SERVERS: usize = 16;

/// The servers that are up, and counters.
#[derive(Default)]
pub(crate) struct Case {
    servers: Mutex<Vec<Arc<Server>>>,
    next: AtomicU32,
}

impl Case {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Server>>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every server.
    pub(crate) fn servers(&self) -> Vec<Arc<Server>> {
        self.lock().clone()
    }

    /// Keeps a server that is ready.
    ///
    /// # Errors
    /// Agent when there are too many.
    pub(crate) fn add(&self, server: Server) -> Result<(), Fault> {
        let mut servers = self.lock();
        if servers.len() >= MAX_SERVERS {
            let _ = server.kill();
            return Err(Fault { kind: FaultKind::Agent, text: "too many servers".to_owned() });
        }
        servers.push(Arc::new(server));
        Ok(())
    }

    /// The server mounted at `mount_point`.
    pub(crate) fn server(&self, mount_point: &str) -> Option<Arc<Server>> {
        self.lock().iter().find(|server| server.report.mount_point == mount_point).cloned()
    }

    /// Forgets the server mounted at `mount_point`.
    pub(crate) fn remove(&self, mount_point: &str) {
        self.lock().retain(|server| server.report.mount_point != mount_point);
    }

    /// Telemetry of every server that answers within `limit` for all of them, and what the
    /// others lack. Together they keep as many arrivals as one may: a frame holds that.
    pub(crate) fn stats(&self, limit: Duration) -> (Vec<ServerStats>, Vec<String>) {
        let (mut stats, mut gaps) = (Vec::new(), Vec::new());
        let end = Instant::now() + limit;
        let servers = self.servers();
        let share = ServerStats::MAX_ARRIVALS / servers.len().max(1);
        for server in servers {
            match server.stats(end.saturating_duration_since(Instant::now())) {
                Ok(mut found) => {
                    let spare = found.arrivals.len().saturating_sub(share);
                    found.arrivals.drain(..spare);
                    found.arrivals_lost += spare as u64;
                    stats.push(found);
                }
                Err(fault) => gaps.push(format!("{}: {}", server.report.name, fault.text)),
            }
        }
        (stats, gaps)
    }

    /// A number that no other artifact of this guest has.
    pub(crate) fn number(&self) -> u32 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Ends every server. The mounts are detached beside, since that can block.
    pub(crate) fn clear(&self) {
        let servers = std::mem::take(&mut *self.lock());
        if servers.is_empty() {
            return;
        }
        std::thread::spawn(move || {
            for server in servers {
                server.put_down();
                let _ = mount::unmount(server.report.mount_point.as_ref(), libc::MNT_DETACH);
            }
        });
    }
}
