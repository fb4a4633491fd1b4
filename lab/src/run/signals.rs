//! Ctrl-C and its kin: the first ends the run cleanly, the second at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Exit code of an interrupted run.
pub(super) const INTERRUPTED: u8 = 130;

/// Cancels `cancel` at the first SIGINT, SIGTERM or SIGHUP; ends the process at the second,
/// which takes every QEMU with it.
///
/// # Errors
///
/// When the process cannot install handlers.
pub(super) fn watch(cancel: CancellationToken) -> std::io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        for _ in 0..2 {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            if cancel.is_cancelled() {
                std::process::exit(i32::from(INTERRUPTED));
            }
            cancel.cancel();
        }
    });
    Ok(())
}
