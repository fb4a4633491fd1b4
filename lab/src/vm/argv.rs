//! QEMU's arguments for a VM; pure.
//!
//! The VM always starts stopped: its sockets are connected before it runs, so that no byte of
//! its console is lost. It has no network, no disk and no devices but those named here.

use std::path::Path;

use super::spec::{Accel, Ram, VmSpec};

/// Sockets that QEMU makes in [`VmSpec::dir`].
pub const SOCKETS: [&str; 4] = [QMP_SOCKET, CONSOLE_SOCKET, CONTROL_SOCKET, BULK_SOCKET];

/// The machine protocol.
pub const QMP_SOCKET: &str = "qmp.sock";
/// The serial console of the guest's kernel.
pub const CONSOLE_SOCKET: &str = "console.sock";
/// The agent's control port.
pub const CONTROL_SOCKET: &str = "control.sock";
/// The agent's bulk port.
pub const BULK_SOCKET: &str = "bulk.sock";

/// QEMU's name of the console; vng has one that is called `console`.
pub const CONSOLE: &str = "lab-console";

/// Longest path of a unix socket, bytes.
pub const MAX_SOCKET_PATH: usize = 107;

/// Whether the sockets of a VM in `dir` would have too long a path, and then the longest one.
pub fn too_long(dir: &Path) -> Option<String> {
    let paths = SOCKETS.map(|name| dir.join(name));
    let longest = paths.iter().max_by_key(|path| path.as_os_str().len())?;
    let over = longest.as_os_str().len() > MAX_SOCKET_PATH;
    over.then(|| longest.to_string_lossy().into_owned())
}

/// The whole argument list, without the program.
pub fn argv(spec: &VmSpec) -> Vec<String> {
    let mut args = Args::default();
    args.pair("-name", format!("lab-{}", comma(&spec.name)));
    args.flags("-nodefaults -no-user-config -no-reboot -S");
    args.pair("-display", "none".into());
    args.0.extend(layout(spec));
    args.pair("-kernel", text(&spec.kernel));
    args.pair("-initrd", text(&spec.initrd));
    args.pair("-append", spec.cmdline.clone());
    args.0.extend(devices(&spec.dir, Console::Serial));
    if spec.incoming {
        args.pair("-incoming", "defer".into());
    }
    args.0
}

#[derive(Default)]
struct Args(Vec<String>);

impl Args {
    fn flags(&mut self, flags: &str) {
        self.0.extend(flags.split(' ').map(String::from));
    }

    fn pair(&mut self, flag: &str, value: String) {
        self.0.extend([flag.to_string(), value]);
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Doubles commas, which end a value in QEMU's option syntax.
fn comma(value: &str) -> String {
    value.replace(',', ",,")
}

fn cpus(args: &mut Args, spec: &VmSpec) {
    let topology = &spec.topology;
    let spare = topology.max_cpus > topology.cpus;
    let port = if spare && spec.accel == Accel::Tcg { "on" } else { "off" };
    args.pair("-machine", format!("q35,usb=off,vmport={port},dump-guest-core=off"));
    match spec.accel {
        Accel::Kvm => {
            args.pair("-accel", "kvm".into());
            args.pair("-cpu", "host".into());
        }
        Accel::Tcg => {
            args.pair("-accel", "tcg,thread=multi".into());
            // Linux takes CPUs that are described and not present for real only where it
            // believes in a hypervisor that can plug them; under TCG it must be one that it
            // knows by its DMI serial number and then asks at its I/O port.
            args.pair("-cpu", if spare { "max,-hypervisor" } else { "max" }.into());
            if spare {
                args.pair("-smbios", "type=1,serial=VMware-1".into());
            }
        }
    }
    let (sockets, cores, threads) = (topology.sockets, topology.cores, topology.threads);
    args.pair(
        "-smp",
        format!(
            "cpus={},maxcpus={},sockets={sockets},cores={cores},threads={threads}",
            topology.cpus, topology.max_cpus
        ),
    );
}

fn memory(args: &mut Args, spec: &VmSpec) {
    args.pair("-m", format!("{}B", spec.topology.memory_bytes()));
    let with_memory = spec.topology.nodes.iter().enumerate().filter(|(_, n)| n.memory_bytes > 0);
    for (nth, (id, node)) in with_memory.enumerate() {
        let size = node.memory_bytes;
        let backend = match &spec.ram {
            Ram::Anonymous => format!("memory-backend-ram,id=ram{id},size={size}B"),
            Ram::Files { paths, shared } => {
                let path = paths.get(nth).map(|p| comma(&text(p))).unwrap_or_default();
                let share = if *shared { "on" } else { "off" };
                format!("memory-backend-file,id=ram{id},size={size}B,mem-path={path},share={share}")
            }
        };
        args.pair("-object", backend);
    }
}

fn numa(args: &mut Args, spec: &VmSpec) {
    let topology = &spec.topology;
    for (id, node) in topology.nodes.iter().enumerate() {
        let memory = if node.memory_bytes > 0 { format!(",memdev=ram{id}") } else { String::new() };
        args.pair("-numa", format!("node,nodeid={id}{memory}"));
    }
    // No socket spans nodes, so the first CPU of a socket speaks for all of it.
    for socket in 0..topology.sockets {
        let first = socket * topology.cores * topology.threads;
        if let Some(node) = topology.node_of(first) {
            args.pair("-numa", format!("cpu,node-id={node},socket-id={socket}"));
        }
    }
    for (src, row) in topology.distances.iter().flatten().enumerate() {
        for (dst, val) in row.iter().enumerate().filter(|(dst, _)| *dst != src) {
            args.pair("-numa", format!("dist,src={src},dst={dst},val={val}"));
        }
    }
}

/// CPUs, memory and nodes: what a layout is made of.
pub fn layout(spec: &VmSpec) -> Vec<String> {
    let mut args = Args::default();
    cpus(&mut args, spec);
    memory(&mut args, spec);
    numa(&mut args, spec);
    args.0
}

fn socket(args: &mut Args, dir: &Path, id: &str, name: &str) {
    let path = comma(&text(&dir.join(name)));
    args.pair("-chardev", format!("socket,id={id},path={path},server=on,wait=off"));
}

/// The machine protocol on a socket in `dir`.
pub fn monitor(dir: &Path) -> Vec<String> {
    let mut args = Args::default();
    socket(&mut args, dir, "qmp", QMP_SOCKET);
    args.pair("-mon", "chardev=qmp,mode=control".into());
    args.0
}

/// What the kernel's console is for the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Console {
    /// The first serial port, which takes sysrq.
    Serial,
    /// A virtio console, `hvc0`, where the serial ports are somebody else's.
    Virtio,
}

/// Console, ports of the agent, and the machine protocol.
pub fn devices(dir: &Path, console: Console) -> Vec<String> {
    let mut args = Args(monitor(dir));
    socket(&mut args, dir, CONSOLE, CONSOLE_SOCKET);
    socket(&mut args, dir, "control", CONTROL_SOCKET);
    socket(&mut args, dir, "bulk", BULK_SOCKET);
    if console == Console::Serial {
        args.pair("-serial", format!("chardev:{CONSOLE}"));
    }
    // Where the kernel has a driver for it, a vmcore can be read by drgn and crash.
    args.pair("-device", "vmcoreinfo".into());
    args.pair("-device", "virtio-serial-pci,id=lab,max_ports=4".into());
    if console == Console::Virtio {
        args.pair("-device", format!("virtconsole,bus=lab.0,chardev={CONSOLE}"));
    }
    for (id, name) in [("control", lab_proto::CONTROL_PORT), ("bulk", lab_proto::BULK_PORT)] {
        args.pair("-device", format!("virtserialport,bus=lab.0,chardev={id},name={name}"));
    }
    args.0
}

#[cfg(test)]
mod tests {
    use super::super::layouts;
    use super::*;

    fn spec(topology: crate::config::topology::Topology) -> VmSpec {
        VmSpec {
            qemu: "qemu-system-x86_64".into(),
            name: topology.name.clone(),
            accel: Accel::Tcg,
            topology,
            kernel: "/k/vmlinuz".into(),
            initrd: "/k/initrd".into(),
            cmdline: "console=ttyS0 panic=-1".into(),
            ram: Ram::Anonymous,
            incoming: false,
            dir: "/d".into(),
            vng: None,
        }
    }

    /// Arguments one a line, values beside their flag.
    fn lines(spec: &VmSpec) -> String {
        let mut out = String::new();
        for arg in argv(spec) {
            out.push_str(if arg.starts_with('-') && !out.is_empty() { "\n" } else { " " });
            out.push_str(&arg);
        }
        out.trim_start().to_string() + "\n"
    }

    #[test]
    fn every_topology_has_its_arguments() {
        for topology in layouts::all() {
            insta::assert_snapshot!(format!("argv-{}", topology.name), lines(&spec(topology)));
        }
    }

    #[test]
    fn a_clone_maps_privately_and_waits_for_its_state() {
        let mut vm = spec(layouts::memless());
        vm.incoming = true;
        vm.name = "a,b".into();
        vm.ram = Ram::Files { paths: vec!["/proc/7/fd/3".into()], shared: false };
        insta::assert_snapshot!("argv-clone", lines(&vm));
        vm.ram = Ram::Files { paths: vec!["/proc/7/fd/3".into()], shared: true };
        assert!(lines(&vm).contains("mem-path=/proc/7/fd/3,share=on"));
    }

    #[test]
    fn kvm_takes_the_host_cpu_also_with_spare_ones() {
        let mut vm = spec(layouts::spare());
        vm.accel = Accel::Kvm;
        let text = lines(&vm);
        assert!(text.contains("-cpu host\n") && !text.contains("smbios"), "{text}");
    }

    #[test]
    fn long_socket_paths_are_found() {
        assert_eq!(too_long(Path::new("/short")), None);
        let room = MAX_SOCKET_PATH - "/control.sock".len();
        let path = |length: usize| format!("/{}", "d".repeat(length - 1));
        assert_eq!(too_long(Path::new(&path(room))), None);
        assert!(too_long(Path::new(&path(room + 1))).is_some());
    }
}
