//! virtme-ng's command line: a guest on the host's root, read-only, with the lab's layout and
//! sockets; pure.
//!
//! vng runs in a PID namespace of its own, so that QEMU and whatever else it starts die with it.

use std::ffi::OsString;
use std::path::Path;

use super::argv;
use super::spec::VmSpec;
use crate::host::process::Program;

/// Options that a kernel needs for the host's root by 9p, without `CONFIG_`.
pub const REQUIRED: [&str; 5] =
    ["NET_9P_VIRTIO", "9P_FS", "VIRTIO_PCI", "OVERLAY_FS", "BINFMT_SCRIPT"];

/// The lab's console: vng has the first serial port for itself, and the kernel's serial console
/// is one port only. A virtio console takes no sysrq; the agent and an NMI are what is left.
const CONSOLE: &str = "hvc0";

/// How vng is told to go on in the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guest<'a> {
    /// The lab's agent, from [`VmSpec::initrd`].
    Agent,
    /// A shell command, with a directory that it may write to.
    Command(&'a str, &'a Path),
    /// A shell on the terminal.
    Shell,
}

/// The program that starts the guest of `spec` by `vng`.
pub fn program(vng: &Path, spec: &VmSpec, guest: &Guest<'_>, is_root: bool) -> Program {
    let mut args: Vec<OsString> = Vec::new();
    if !is_root {
        args.extend(["--user".into(), "--map-current-user".into()]);
    }
    args.extend(["--pid", "--fork", "--kill-child", "--mount-proc"].map(OsString::from));
    args.push(vng.into());
    args.extend(["--run".into(), spec.kernel.clone().into()]);
    // The machine is the lab's; accelerators are given below, vng's would exclude them.
    args.extend(
        ["--force-9p", "--disable-kvm", "--disable-microvm", "--disable-monitor"].map(Into::into),
    );
    // It takes a path only, and looks for the usual name by itself.
    if spec.qemu.components().count() > 1 {
        args.extend(["--qemu".into(), spec.qemu.clone().into()]);
    }
    args.extend(["--memory".into(), format!("{}M", spec.topology.memory_bytes() >> 20).into()]);
    let mut more = argv::layout(spec);
    match guest {
        Guest::Agent => {
            more.push("-S".into());
            more.extend(argv::devices(&spec.dir, argv::Console::Virtio));
            let agent = shell_words::quote(&spec.initrd.to_string_lossy()).into_owned();
            args.extend(["--exec".into(), format!("{agent} agent-on-host-root").into()]);
        }
        Guest::Command(command, dir) => {
            more.extend(argv::monitor(&spec.dir));
            args.push("--rwdir".into());
            args.push((*dir).into());
            args.extend(["--exec".into(), (*command).into()]);
        }
        Guest::Shell => more.extend(argv::monitor(&spec.dir)),
    }
    for word in spec.cmdline.split_whitespace() {
        let word = match (guest, word) {
            (Guest::Agent, "console=ttyS0") => format!("console={CONSOLE}"),
            (_, "console=ttyS0") => continue,
            (_, word) => word.to_owned(),
        };
        args.extend(["--append".into(), word.into()]);
    }
    args.push(format!("--qemu-opts={}", shell_words::join(&more)).into());
    let mut program = Program::new("unshare", args);
    // vng looks for its own parts in PATH.
    let mut dirs: Vec<_> = vng.parent().map(Path::to_path_buf).into_iter().collect();
    dirs.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    if let Ok(path) = std::env::join_paths(dirs) {
        program.env.push(("PATH".into(), path));
    }
    program
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::layouts;
    use crate::vm::spec::{Accel, Ram};

    fn words(guest: &Guest<'_>, is_root: bool) -> String {
        let spec = VmSpec {
            qemu: "/usr/bin/qemu-system-x86_64".into(),
            name: "case".into(),
            accel: Accel::Tcg,
            topology: layouts::even("2x2", 2, 2),
            kernel: "/k/bzImage".into(),
            initrd: "/cache/lab guest".into(),
            cmdline: "console=ttyS0 panic=-1 fuse.enable_uring=1".into(),
            ram: Ram::Anonymous,
            incoming: false,
            dir: "/d".into(),
            vng: None,
        };
        let program = program(Path::new("/v/bin/vng"), &spec, guest, is_root);
        let words = program.args.iter().map(|arg| arg.to_string_lossy().into_owned());
        words.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_agent_gets_the_lab_s_console_ports_and_layout() {
        insta::assert_snapshot!(words(&Guest::Agent, true));
    }

    #[test]
    fn a_command_gets_a_directory_and_a_user_a_namespace() {
        let text = words(&Guest::Command("sh /t/run.sh", Path::new("/t")), false);
        assert!(text.starts_with("--user\n--map-current-user\n--pid\n"), "{text}");
        assert!(text.contains("--rwdir\n/t\n--exec\nsh /t/run.sh\n"), "{text}");
        assert!(text.contains("path=/d/qmp.sock") && !text.contains("control.sock"), "{text}");
        assert!(!text.contains("ttyS") && !text.contains(" -S"), "{text}");
    }
}
