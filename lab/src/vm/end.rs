//! The end of a VM: from asking politely to SIGKILL, each step with a limit.

use std::process::ExitStatus;
use std::time::Duration;

use lab_proto::message::Command;

use super::machine::Machine;

/// How long QEMU may take to end after a request that nobody seems to have heard: the answer
/// may have been lost because the end came first.
const SETTLE: Duration = Duration::from_millis(200);

/// Where the end begins. Each step that does not help is followed by the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// Ask the agent to power off.
    PowerOff,
    /// Tell QEMU to quit.
    Quit,
    /// Kill QEMU's process group.
    Kill,
}

/// How a VM ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The step that ended it; absent when QEMU was gone already.
    pub by: Option<End>,
    /// QEMU's exit status; absent when even SIGKILL did not end it within the limit.
    pub status: Option<ExitStatus>,
    /// Whether the console was read to its end.
    pub drained: bool,
}

impl Machine {
    /// Ends the VM, beginning with `first`; at most five limits of
    /// [`Limits::end`](super::Limits::end) pass.
    pub async fn end(self, first: End) -> Ended {
        let limit = self.limits.end;
        let (mut by, mut status) = (None, self.process.exited());
        for step in [End::PowerOff, End::Quit, End::Kill] {
            if status.is_none() && step >= first {
                by = Some(step);
                let wait = if self.ask(step, limit).await { limit } else { limit.min(SETTLE) };
                status = tokio::time::timeout(wait, self.process.wait()).await.ok();
            }
        }
        let drained = self.console.drained(limit).await;
        Ended { by, status, drained }
    }

    /// Asks for the end; whether it was heard.
    async fn ask(&self, step: End, limit: Duration) -> bool {
        match (step, &self.agent) {
            (End::PowerOff, Some(agent)) => agent.request(Command::PowerOff, limit).await.is_ok(),
            (End::PowerOff, None) => false,
            (End::Quit, _) => self.qmp.execute(qapi::qmp::quit {}, limit).await.is_ok(),
            (End::Kill, _) => {
                self.process.kill_group();
                true
            }
        }
    }
}
