//! Mounts the server on this machine's own kernel, over each transport it allows.
//!
//! Where it cannot run (no root, no /dev/fuse, ring switched off) it says why and passes; it
//! never changes a setting of the machine.

// A crate of tests only, though its helpers are not marked as tests.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use lab_fuse::server::Server;
use lab_proto::server::{FileSystem, Queues, ServerFault, ServerSpec, ServerStats, Transport};

/// A directory of its own per test, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let place = std::env::temp_dir().join(format!("lab-fuse-{}-{name}", std::process::id()));
        fs::create_dir_all(place.join("source")).unwrap();
        Place(place)
    }

    fn mount_point(&self) -> PathBuf {
        self.0.join("mnt")
    }

    fn spec(&self, transport: Transport) -> ServerSpec {
        ServerSpec {
            name: "native".into(),
            mount_point: self.mount_point().to_str().unwrap().into(),
            transport,
            fallback: false,
            file_system: FileSystem::Memory,
            depth: 4,
            max_write: 1 << 18,
            max_background: 32,
            cache_ms: 0,
            direct_io: false,
            writeback: false,
            queues: Queues::All,
            fault: None,
        }
    }

    fn passthrough(&self) -> FileSystem {
        FileSystem::Passthrough { source: self.0.join("source").to_str().unwrap().into() }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether a transport can be tried here; says why not.
fn possible(transport: Transport) -> bool {
    let why = if !rustix::process::geteuid().is_root() {
        "not root"
    } else if !Path::new("/dev/fuse").exists() {
        "no /dev/fuse"
    } else if transport == Transport::Ring && !ring_enabled() {
        "fuse.enable_uring is not Y"
    } else {
        return true;
    };
    println!("skipped over {}: {why}", transport.name());
    false
}

fn ring_enabled() -> bool {
    let value = fs::read_to_string("/sys/module/fuse/parameters/enable_uring");
    value.is_ok_and(|value| value.trim() == "Y")
}

/// Runs `body` over each transport and file system that can be had here.
fn everywhere(name: &str, body: impl Fn(&Server, &Path)) {
    for transport in [Transport::Classic, Transport::Ring] {
        if !possible(transport) {
            continue;
        }
        for passthrough in [false, true] {
            let place = Place::new(&format!("{name}-{}-{passthrough}", transport.name()));
            let mut spec = place.spec(transport);
            if passthrough {
                spec.file_system = place.passthrough();
            }
            let server = Server::start(&spec).unwrap();
            assert_eq!(server.report().transport, transport);
            body(&server, &place.mount_point());
            assert!(server.stop(), "the plain unmount was not enough");
            assert!(!is_mounted(&place.mount_point()));
        }
    }
}

fn is_mounted(point: &Path) -> bool {
    fs::read_to_string("/proc/self/mountinfo").unwrap().contains(point.to_str().unwrap())
}

fn arrived(stats: &ServerStats, opcode: &str) -> u64 {
    let all = stats.queues.iter().flat_map(|queue| &queue.arrived);
    all.filter(|(name, _)| name == opcode).map(|(_, count)| count).sum()
}

#[test]
fn a_tree_of_operations_works() {
    everywhere("tree", |_, mnt| {
        let dir = mnt.join("dir");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("a"), b"hello").unwrap();
        symlink("a", dir.join("link")).unwrap();
        assert_eq!(fs::read(dir.join("link")).unwrap(), b"hello");
        fs::hard_link(dir.join("a"), dir.join("b")).unwrap();
        assert_eq!(fs::metadata(dir.join("a")).unwrap().nlink(), 2);
        fs::rename(dir.join("b"), dir.join("c")).unwrap();
        fs::set_permissions(dir.join("c"), fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(fs::metadata(dir.join("a")).unwrap().mode(), 0o100640);
        let mut names: Vec<_> = fs::read_dir(&dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["a", "c", "link"]);
        assert_eq!(fs::remove_dir(&dir).unwrap_err().raw_os_error(), Some(libc::ENOTEMPTY));
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(fs::read_dir(mnt).unwrap().count(), 0);
    });
}

#[test]
fn large_and_sparse_files_keep_their_bytes() {
    everywhere("bytes", |_, mnt| {
        let data: Vec<u8> =
            (0..3_000_001u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let mut file = fs::File::create_new(mnt.join("f")).unwrap();
        file.write_all(&data).unwrap();
        file.sync_all().unwrap();
        drop(file);
        assert!(fs::read(mnt.join("f")).unwrap() == data);
        let mut file = fs::File::options().read(true).write(true).open(mnt.join("f")).unwrap();
        file.set_len(4097).unwrap();
        file.write_all_at(b"end", 1 << 20).unwrap();
        file.seek(SeekFrom::Start(4000)).unwrap();
        let mut tail = Vec::new();
        file.read_to_end(&mut tail).unwrap();
        assert_eq!(tail[..97], data[4000..4097]);
        assert!(tail[97..(1 << 20) - 4000].iter().all(|byte| *byte == 0));
        assert!(tail.ends_with(b"end"));
    });
}

#[test]
fn a_directory_longer_than_a_reply_is_listed_whole() {
    everywhere("long", |_, mnt| {
        let expected: Vec<String> = (0..700).map(|n| format!("{n:0>100}")).collect();
        expected.iter().for_each(|name| drop(fs::File::create(mnt.join(name)).unwrap()));
        let mut names: Vec<_> = fs::read_dir(mnt)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, expected);
    });
}

#[test]
fn telemetry_sees_what_was_asked_and_resets() {
    everywhere("telemetry", |server, mnt| {
        server.reset();
        let me = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        (0..50).for_each(|_| assert!(fs::metadata(mnt.join("none")).is_err()));
        let stats = server.stats();
        assert_eq!(arrived(&stats, "lookup"), 50);
        let mine = stats.arrivals.iter().filter(|a| a.opcode == "lookup" && a.pid == me);
        assert_eq!(mine.count(), 50);
        assert!(stats.queues.iter().all(|queue| queue.in_flight == 0));
        if server.report().transport == Transport::Ring {
            assert_eq!(stats.queues.len() as u32, server.report().queues);
            assert!(stats.dev_fuse.iter().all(|(name, _)| name.ends_with("forget")));
        }
        server.reset();
        assert_eq!(arrived(&server.stats(), "lookup"), 0);
    });
}

#[test]
fn a_dropped_reply_hangs_its_caller_until_the_stop_and_telemetry_stays_readable() {
    for transport in [Transport::Classic, Transport::Ring] {
        if !possible(transport) {
            continue;
        }
        let place = Place::new(&format!("drop-{}", transport.name()));
        let fault = Some(ServerFault::DropReply { opcode: "lookup".into(), nth: 2 });
        let server = Server::start(&ServerSpec { fault, ..place.spec(transport) }).unwrap();
        let (sender, receiver) = mpsc::channel();
        let mnt = place.mount_point();
        thread::spawn(move || {
            for name in ["one", "two"] {
                let error = fs::metadata(mnt.join(name)).unwrap_err();
                sender.send(error.raw_os_error()).unwrap();
            }
        });
        let soon = Duration::from_secs(10);
        assert_eq!(receiver.recv_timeout(soon).unwrap(), Some(libc::ENOENT));
        assert!(receiver.recv_timeout(Duration::from_millis(300)).is_err());
        let in_flight: u32 = server.stats().queues.iter().map(|queue| queue.in_flight).sum();
        assert_eq!(in_flight, 1);
        assert!(!server.stop(), "a busy mount cannot be unmounted the plain way");
        assert!(receiver.recv_timeout(soon).unwrap().is_some());
        assert!(!is_mounted(&place.mount_point()));
    }
}

/// A way to set up a server: its name, and what it changes in the spec.
type Mode = (&'static str, fn(&mut ServerSpec));

fn modes() -> [Mode; 4] {
    [
        ("cached", |spec| spec.cache_ms = 60_000),
        ("direct", |spec| spec.direct_io = true),
        ("writeback", |spec| (spec.writeback, spec.cache_ms) = (true, 1000)),
        ("smallest", |spec| (spec.max_write, spec.depth) = (4096, 1)),
    ]
}

#[test]
fn every_mode_keeps_appended_and_overwritten_bytes() {
    for transport in [Transport::Classic, Transport::Ring] {
        if !possible(transport) {
            continue;
        }
        for (name, set) in modes() {
            let place = Place::new(&format!("mode-{name}-{}", transport.name()));
            let mut spec = place.spec(transport);
            spec.file_system = place.passthrough();
            set(&mut spec);
            let server = Server::start(&spec).unwrap();
            let path = place.mount_point().join("f");
            fs::write(&path, vec![b'a'; 10_000]).unwrap();
            let mut log = fs::File::options().append(true).open(&path).unwrap();
            log.write_all(b"one").unwrap();
            log.write_all(b"two").unwrap();
            log.sync_all().unwrap();
            rustix::fs::fadvise(&log, 0, None, rustix::fs::Advice::DontNeed).unwrap();
            // A part of a page that is not cached, through a descriptor that cannot read it.
            let part = fs::File::options().write(true).open(&path).unwrap();
            part.write_all_at(b"b", 5000).unwrap();
            part.sync_all().unwrap();
            drop((log, part));
            let mut expected = vec![b'a'; 10_000];
            expected[5000] = b'b';
            expected.extend_from_slice(b"onetwo");
            assert!(fs::read(&path).unwrap() == expected, "{name}: through the mount");
            assert!(server.stop());
            let behind = fs::read(place.0.join("source/f")).unwrap();
            assert!(behind == expected, "{name}: behind the mount");
        }
    }
}

#[test]
fn a_mount_inside_its_own_source_does_not_wait_for_itself() {
    for transport in [Transport::Classic, Transport::Ring] {
        if !possible(transport) {
            continue;
        }
        let place = Place::new(&format!("self-{}", transport.name()));
        let source = place.0.to_str().unwrap().into();
        let file_system = FileSystem::Passthrough { source };
        let server = Server::start(&ServerSpec { file_system, ..place.spec(transport) }).unwrap();
        let error = fs::metadata(place.mount_point().join("mnt")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EXDEV));
        assert!(place.mount_point().join("source").is_dir());
        assert!(server.stop());
    }
}

#[test]
fn a_fault_does_not_hit_the_servers_own_start() {
    if !possible(Transport::Classic) {
        return;
    }
    let place = Place::new("own");
    let fault = Some(ServerFault::DropReply { opcode: "statfs".into(), nth: 1 });
    let server = Server::start(&ServerSpec { fault, ..place.spec(Transport::Classic) }).unwrap();
    assert!(server.stop());
}

#[test]
fn a_ring_that_is_not_offered_fails_or_falls_back_as_asked() {
    if !possible(Transport::Classic) {
        return;
    }
    if ring_enabled() {
        println!("skipped: the ring is offered here");
        return;
    }
    let place = Place::new("fallback");
    let spec = place.spec(Transport::Ring);
    let error = Server::start(&spec).err().unwrap();
    assert!(error.is_transport() && error.to_string().contains("enable_uring"), "{error}");
    assert!(!is_mounted(&place.mount_point()));
    let server = Server::start(&ServerSpec { fallback: true, ..spec }).unwrap();
    assert_eq!(server.report().transport, Transport::Classic);
    assert!(server.report().fallback_reason.is_some());
    assert!(server.stop());
}
