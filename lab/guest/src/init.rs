//! PID 1: pseudo file systems, sysctls, one child, reaping. Nothing that can fail for long or
//! grow lives here: when PID 1 ends, the kernel panics and every observation is lost.

use std::process::ExitCode;
use std::time::Duration;

use crate::sys::process::{self, End, Fork};
use crate::sys::{kmsg, mount, power};

/// Sysctls that make a guest tell more, path below /proc/sys and value. One that the kernel
/// lacks is passed over.
const SYSCTLS: [(&str, &str); 5] = [
    ("kernel/sysrq", "1"),
    // An NMI is the host's last question to a guest that is silent: all CPUs shall answer.
    ("kernel/unknown_nmi_panic", "1"),
    ("kernel/panic_sys_info", "all_bt"),
    ("kernel/printk", "7 4 1 7"),
    // The default drops all but ten lines in five seconds, markers included.
    ("kernel/printk_devkmsg", "on"),
];

/// File systems of a guest: type, mount point, needed. The mount points are made here.
const MOUNTS: [(&str, &str, bool); 9] = [
    ("devtmpfs", "/dev", true),
    ("proc", "/proc", true),
    ("sysfs", "/sys", true),
    ("tmpfs", "/tmp", true),
    ("tmpfs", "/run", true),
    ("tracefs", "/sys/kernel/tracing", false),
    ("debugfs", "/sys/kernel/debug", false),
    ("fusectl", "/sys/fs/fuse/connections", false),
    ("cgroup2", "/sys/fs/cgroup", false),
];

/// Runs init. Returns only when it is not PID 1.
pub(crate) fn main() -> ExitCode {
    prepare();
    match process::fork() {
        Ok(Fork::Child) => return crate::agent::main(),
        Ok(Fork::Parent(agent)) => reap_until(agent),
        Err(e) => kmsg::error(&format!("lab-init: no agent: fork: {e}")),
    }
    power::off();
    // Power-off can be refused; init must not end either way.
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// The agent of a guest that another init has started, on a root that cannot be written to.
pub(crate) fn on_host_root() -> ExitCode {
    const MORE: [(&str, &str); 4] = [
        ("tmpfs", "/mnt"),
        ("tracefs", "/sys/kernel/tracing"),
        ("debugfs", "/sys/kernel/debug"),
        ("fusectl", "/sys/fs/fuse/connections"),
    ];
    for (kind, target) in MORE {
        // What is mounted already is not what the kernel lacks; a step that needs it says so.
        let _ = mount::pseudo(kind, target);
    }
    sysctls();
    crate::agent::main()
}

fn sysctls() {
    for (name, value) in SYSCTLS {
        let _ = std::fs::write(format!("/proc/sys/{name}"), value);
    }
}

fn prepare() {
    for (kind, target, needed) in MOUNTS {
        if let Err(e) = mount::pseudo(kind, target)
            && needed
        {
            kmsg::error(&format!("lab-init: mount {kind} on {target}: {e}"));
        }
    }
    sysctls();
}

fn reap_until(agent: i32) {
    loop {
        match process::wait_any() {
            Ok((pid, end)) if pid == agent => {
                kmsg::error(&format!("lab-init: agent ended with {}", phrase(end)));
                return;
            }
            Ok(_) => {}
            Err(e) => {
                kmsg::error(&format!("lab-init: wait: {e}"));
                return;
            }
        }
    }
}

fn phrase(end: End) -> String {
    match end {
        End::Exit(code) => format!("exit code {code}"),
        End::Signal(signal) => format!("signal {signal}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_about_a_dead_agent_names_its_end() {
        assert_eq!(phrase(End::Signal(9)), "signal 9");
        assert_eq!(phrase(End::Exit(3)), "exit code 3");
    }
}
