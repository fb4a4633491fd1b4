//! What a kernel can be asked when its agent does not answer any more: by a break and a key on
//! its serial console, by an NMI, and by a dump of its memory. Each within a limit.

use std::path::Path;
use std::time::Duration;

use qapi::qmp;

use super::argv;
use super::error::VmError;
use super::machine::Machine;

/// Between the break and the key: they come on different ways.
const KEY_PAUSE: Duration = Duration::from_millis(30);

/// A kernel that prints nothing for this long has said what it was asked for.
const PAUSE: Duration = Duration::from_millis(700);

/// Bytes that must stay free on the disk beside a vmcore.
const DISK_RESERVE: u64 = 1 << 30;

/// A question to the kernel itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// Tasks in uninterruptible sleep.
    Blocked,
    /// All tasks.
    Tasks,
    /// What the CPUs do.
    Cpus,
}

impl Break {
    fn key(self) -> u8 {
        match self {
            Break::Blocked => b'w',
            Break::Tasks => b't',
            Break::Cpus => b'l',
        }
    }

    /// The line with which the kernel takes it.
    pub fn header(self) -> &'static str {
        match self {
            Break::Blocked => "sysrq: Show Blocked State",
            Break::Tasks => "sysrq: Show State",
            Break::Cpus => "sysrq: Show backtrace of all active CPUs",
        }
    }
}

impl Machine {
    /// Asks the kernel by its serial console and waits for the end of its answer; whether it
    /// answered. At most [`Limits::sysrq`](super::Limits::sysrq) and one command pass.
    ///
    /// Errors: QEMU does not carry the question.
    pub async fn sysrq(&self, question: Break) -> Result<bool, VmError> {
        let (limit, command) = (self.limits.sysrq, self.limits.command);
        let send_break = qmp::chardev_send_break { id: argv::CONSOLE.into() };
        self.qmp.execute(send_break, command).await?;
        tokio::time::sleep(KEY_PAUSE).await;
        let typed = self.console.type_in(&[question.key()], command).await;
        typed.map_err(VmError::io("console"))?;
        let begin = tokio::time::Instant::now();
        let heard = self.console.wait_for(question.header(), limit / 2).await.is_ok();
        if heard {
            self.console.quiet(PAUSE, limit.saturating_sub(begin.elapsed())).await;
        }
        Ok(heard)
    }

    /// Sends an NMI to every CPU and waits for what the kernel says; how many bytes that were.
    /// A guest that then panics is kept, stopped. At most
    /// [`Limits::sysrq`](super::Limits::sysrq) and two commands pass.
    ///
    /// Errors: QEMU does not do it.
    pub async fn nmi(&self) -> Result<u64, VmError> {
        let keep = qmp::set_action {
            panic: Some(qmp::PanicAction::pause),
            reboot: Some(qmp::RebootAction::shutdown),
            shutdown: Some(qmp::ShutdownAction::pause),
            watchdog: None,
        };
        self.qmp.execute(keep, self.limits.command).await?;
        let before = self.console.total();
        self.qmp.execute(qmp::inject_nmi {}, self.limits.command).await?;
        // The first word may take as long as all of the rest.
        let deadline = tokio::time::Instant::now() + self.limits.sysrq;
        while self.console.total() == before && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(KEY_PAUSE).await;
        }
        let left = deadline.saturating_duration_since(tokio::time::Instant::now());
        self.console.quiet(PAUSE, left).await;
        Ok(self.console.total() - before)
    }

    /// Writes the guest's memory to `file` as ELF core; its size in bytes. Needs room for
    /// `memory_bytes` and a reserve on that disk. At most
    /// [`Limits::vmcore`](super::Limits::vmcore) passes; a core that is not whole is removed.
    ///
    /// Errors: no room, or QEMU does not do it.
    pub async fn vmcore(&self, file: &Path, memory_bytes: u64) -> Result<u64, VmError> {
        let failed = || VmError::io(file.display().to_string());
        let dir = file.parent().unwrap_or(Path::new("."));
        let disk = rustix::fs::statvfs(dir).map_err(|e| failed()(e.into()))?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let wanted = memory_bytes.saturating_add(DISK_RESERVE);
        if free < wanted {
            let reason = format!("{free} bytes are free on the disk, {wanted} are wanted");
            return Err(VmError::State { what: "vmcore", reason });
        }
        let dump = qmp::dump_guest_memory {
            begin: None,
            detach: None,
            format: None,
            length: None,
            paging: false,
            protocol: format!("file:{}", file.display()),
        };
        let dumped = self.qmp.execute(dump, self.limits.vmcore).await;
        if let Err(e) = dumped {
            let _ = std::fs::remove_file(file);
            return Err(e.into());
        }
        Ok(std::fs::metadata(file).map_err(failed())?.len())
    }
}
