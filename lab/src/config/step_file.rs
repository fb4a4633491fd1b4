//! One `[[step]]` of a scenario.
//!
//! Keys of all steps: `do`, `name` (default: what it does), `limit`. Then, by `do`:
//!
//! - `serve`: `mount-point`, `transport` (`ring` or `classic`), `fallback`, `file-system`
//!   (`memory` or `passthrough`), `source` (of passthrough), `depth`, `max-write`,
//!   `max-background`, `cache`, `direct-io`, `writeback`,
//!   `fault` (`{ kind = "drop-reply", opcode = "read", nth = 1 }`)
//! - `tmpfs`, `unmount`: `mount-point`
//! - `tree`: `path`
//! - `place`: `path`, `requests`, `background`
//! - `teardown`: `path`, `ending` (`kill-server`, `abort` or `forced-umount`), `clients`, `load`
//! - `fio`: `path`, `rw`, `block-size`, `size`, `iodepth`, `jobs`, `engine`, `direct`, `runtime`,
//!   `ramp`
//! - `sabotage`: `what` (`panic`, `kill-agent`, `power-off`, `garbage-frames`, `sleep`,
//!   `stop-agent` or `stop-servers`)

use std::time::Duration;

use lab_proto::server::{FileSystem, Queues, ServerFault, ServerSpec, Transport};
use lab_proto::step::{Ending, Sabotage, Step};

use super::reader::Table;
use super::scenario::NamedStep;
use super::value::{CpuList, GuestPath, MAX_CPUS, Name, Size};

/// Reads the keys of one kind of step. A wrong value is reported and replaced by any right one,
/// so that the order of the steps can still be checked; the scenario is refused anyhow. Only
/// without a path there is no step.
type ReadStep = fn(&Table<'_>, &str) -> Option<Step>;

/// Every step by its name in files.
const STEPS: [(&str, ReadStep); 8] = [
    ("serve", serve),
    ("tmpfs", tmpfs),
    ("unmount", unmount),
    ("tree", tree),
    ("place", place),
    ("teardown", teardown),
    ("fio", fio),
    ("sabotage", sabotage),
];

/// Reads one step.
pub(super) fn read(table: &Table<'_>) -> Option<NamedStep> {
    let does = table.required_choice("do", &STEPS.map(|(name, read)| (name, (name, read))));
    let name = table.optional("name").map(|name: Name| name.0);
    let limit: Option<Duration> = table.optional("limit");
    if limit.is_some_and(|limit| limit.is_zero()) {
        table.sink().add(table.span_of("limit"), "`limit` must be above zero");
    }
    // Without its kind, a step's other keys cannot be told right from wrong.
    let (kind, read) = does?;
    let name = name.unwrap_or_else(|| kind.into());
    let step = read(table, &name);
    table.finish();
    Some(NamedStep { name, step: step?, limit })
}

fn path(table: &Table<'_>, key: &'static str) -> Option<String> {
    table.required(key).map(|path: GuestPath| path.0)
}

fn millis(table: &Table<'_>, key: &'static str, default: u64) -> u64 {
    let given: Option<Duration> = table.optional(key);
    // Durations are at most a day.
    given.map_or(default, |d| d.as_millis() as u64)
}

fn serve(table: &Table<'_>, name: &str) -> Option<Step> {
    let mount_point = path(table, "mount-point");
    let transports = [("ring", Transport::Ring), ("classic", Transport::Classic)];
    let transport = table.required_choice("transport", &transports);
    let file_system = file_system(table);
    let spec = ServerSpec {
        name: name.into(),
        mount_point: mount_point.clone().unwrap_or_default(),
        transport: transport.unwrap_or(Transport::Ring),
        fallback: table.optional("fallback").unwrap_or(false),
        file_system: file_system.unwrap_or(FileSystem::Memory),
        queues: queues(table),
        depth: table.number("depth", 1..=4096, ServerSpec::DEPTH),
        max_write: size_u32(table, "max-write", 4 << 10, 4 << 20, ServerSpec::MAX_WRITE),
        max_background: table.number("max-background", 1..=u16::MAX, 256),
        cache_ms: millis(table, "cache", 1000),
        direct_io: table.optional("direct-io").unwrap_or(false),
        writeback: table.optional("writeback").unwrap_or(false),
        fault: table.table("fault").and_then(|fault| server_fault(&fault)),
    };
    mount_point.map(|_| Step::Serve(spec))
}

/// `"all"`, `"per-node"`, a number of queues, or a list of CPUs such as `"0,2-3"`.
fn queues(table: &Table<'_>) -> Queues {
    if !table.is_text("queues") {
        let count: Option<u32> = table.optional_number("queues", 1..=MAX_CPUS);
        return count.map_or(Queues::All, |count| Queues::First { count });
    }
    match table.optional::<String>("queues").as_deref() {
        Some("per-node") => Queues::PerNode,
        Some("all") | None => Queues::All,
        Some(_) => {
            let cpus: Option<CpuList> = table.optional("queues");
            cpus.map_or(Queues::All, |list| Queues::Of { cpus: list.0.into_iter().collect() })
        }
    }
}

fn file_system(table: &Table<'_>) -> Option<FileSystem> {
    let kinds = [("memory", false), ("passthrough", true)];
    let passthrough = match table.has("file-system") {
        true => table.choice("file-system", &kinds)?,
        false => false,
    };
    if passthrough {
        return path(table, "source").map(|source| FileSystem::Passthrough { source });
    }
    if table.has("source") {
        table
            .sink()
            .add(table.span_of("source"), "`source` belongs to file-system \"passthrough\"");
    }
    Some(FileSystem::Memory)
}

/// Opcodes that a fault can hit: those that are answered, but for INIT.
const OPCODES: [&str; 38] = [
    "lookup",
    "getattr",
    "setattr",
    "readlink",
    "symlink",
    "mknod",
    "mkdir",
    "unlink",
    "rmdir",
    "rename",
    "link",
    "open",
    "read",
    "write",
    "statfs",
    "release",
    "fsync",
    "setxattr",
    "getxattr",
    "listxattr",
    "removexattr",
    "flush",
    "opendir",
    "readdir",
    "releasedir",
    "fsyncdir",
    "access",
    "create",
    "ioctl",
    "poll",
    "fallocate",
    "readdirplus",
    "rename2",
    "lseek",
    "copy_file_range",
    "syncfs",
    "tmpfile",
    "statx",
];

fn server_fault(table: &Table<'_>) -> Option<ServerFault> {
    let kind = table.required_choice("kind", &[("drop-reply", ())]);
    let opcode = table.required_choice("opcode", &OPCODES.map(|name| (name, name)));
    let nth = table.number("nth", 1..=1_000_000_000, 1);
    table.finish();
    kind.and(opcode).map(|opcode| ServerFault::DropReply { opcode: opcode.into(), nth })
}

fn tmpfs(table: &Table<'_>, _: &str) -> Option<Step> {
    path(table, "mount-point").map(|mount_point| Step::Tmpfs { mount_point })
}

fn unmount(table: &Table<'_>, _: &str) -> Option<Step> {
    path(table, "mount-point").map(|mount_point| Step::Unmount { mount_point })
}

fn tree(table: &Table<'_>, _: &str) -> Option<Step> {
    path(table, "path").map(|path| Step::Tree { path })
}

fn place(table: &Table<'_>, _: &str) -> Option<Step> {
    let requests = table.number("requests", 1..=1024, 16);
    let background = table.optional("background").unwrap_or(false);
    path(table, "path").map(|path| Step::Place { path, requests, background })
}

fn teardown(table: &Table<'_>, _: &str) -> Option<Step> {
    let endings = [
        ("kill-server", Ending::KillServer),
        ("abort", Ending::Abort),
        ("forced-umount", Ending::ForcedUmount),
    ];
    let path = path(table, "path");
    let ending = table.required_choice("ending", &endings);
    let clients = table.number("clients", 1..=256, 8);
    let load_ms = millis(table, "load", 300);
    Some(Step::Teardown { path: path?, ending: ending.unwrap_or(Ending::Abort), clients, load_ms })
}

fn fio(table: &Table<'_>, _: &str) -> Option<Step> {
    let modes = ["read", "write", "randread", "randwrite", "rw", "randrw"].map(|m| (m, m));
    let engines = ["io_uring", "libaio", "psync", "sync", "mmap"].map(|e| (e, e));
    let path = path(table, "path");
    let rw = table.required_choice("rw", &modes);
    let engine = table.choice("engine", &engines).unwrap_or("io_uring");
    let block_size = size_u32(table, "block-size", 512, 16 << 20, 4 << 10);
    let size = table.optional("size").map_or(64 << 20, |size: Size| size.0);
    if size < u64::from(block_size) {
        table.sink().add(table.span_of("size"), "`size` is less than one block");
    }
    let runtime_ms = millis(table, "runtime", 2000);
    if runtime_ms == 0 {
        table.sink().add(table.span_of("runtime"), "`runtime` must be above zero");
    }
    Some(Step::Fio {
        iodepth: table.number("iodepth", 1..=4096, 1),
        jobs: table.number("jobs", 1..=256, 1),
        direct: table.optional("direct").unwrap_or(true),
        ramp_ms: millis(table, "ramp", 0),
        path: path?,
        rw: rw.unwrap_or("read").into(),
        block_size: block_size.into(),
        size,
        engine: engine.into(),
        runtime_ms,
    })
}

fn sabotage(table: &Table<'_>, _: &str) -> Option<Step> {
    let kinds = [
        ("panic", Sabotage::Panic),
        ("kill-agent", Sabotage::KillAgent),
        ("power-off", Sabotage::PowerOff),
        ("garbage-frames", Sabotage::GarbageFrames),
        ("sleep", Sabotage::Sleep),
        ("stop-agent", Sabotage::StopAgent),
        ("stop-servers", Sabotage::StopServers),
    ];
    table.required_choice("what", &kinds).map(|what| Step::Sabotage { what })
}

/// A size that fits 32 bits, a multiple of 512 bytes.
fn size_u32(table: &Table<'_>, key: &'static str, least: u32, most: u32, default: u32) -> u32 {
    let Some(Size(bytes)) = table.optional(key) else { return default };
    match u32::try_from(bytes) {
        Ok(bytes) if (least..=most).contains(&bytes) && bytes.is_multiple_of(512) => bytes,
        _ => {
            let show = |bytes: u32| bytesize::ByteSize(bytes.into()).display().iec().to_string();
            let (least, most) = (show(least), show(most));
            table.sink().add(
                table.span_of(key),
                format!("`{key}` must be {least} to {most}, in units of 512 bytes"),
            );
            default
        }
    }
}
