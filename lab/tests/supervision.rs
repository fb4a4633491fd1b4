//! Supervision of QEMU and of the agent, against a QEMU that plays scripts: whatever it does,
//! the lab is done within its limits, names the cause, and leaves no process.

#![allow(clippy::unwrap_used)] // a helper of a test that fails is a test that fails

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lab::agent::AgentError;
use lab::config::topology::{Node, Topology};
use lab::host::process::{self, Program};
use lab::vm::accel::{self, AccelError, AccelRequest};
use lab::vm::machine::Machine;
use lab::vm::qemu::Qemu;
use lab::vm::qmp::{QmpError, QmpEvent};
use lab::vm::spec::{Accel, Ram, VmSpec};
use lab::vm::template::Template;
use lab::vm::{Break, End, Ended, Limits, Slowdown, VmError};
use lab_proto::message::{Command, Reply};
use tokio_util::sync::CancellationToken;

/// The bound on everything below, beyond which a test is red.
const PATIENCE: Duration = Duration::from_secs(30);

/// Limits that a good VM keeps even on a busy machine; each test shortens the one it runs into.
const LIMITS: Limits = Limits {
    slowdown: Slowdown::NONE,
    connect: LONG,
    greeting: LONG,
    command: LONG,
    boot: LONG,
    silence: LONG,
    wake: LONG,
    request: LONG,
    state: LONG,
    sysrq: LONG,
    vmcore: LONG,
    end: LONG,
};

const LONG: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(400);

/// The fake is an example of this package: `cargo test` builds it beside the tests, `cargo test
/// --test supervision` does not.
fn fake_qemu() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().unwrap().parent().unwrap().join("examples/fake-qemu");
    assert!(path.exists(), "{} is missing: cargo build --example fake-qemu", path.display());
    path
}

/// A script, its VM and its directories.
struct Stage {
    dir: tempfile::TempDir,
    cancel: CancellationToken,
    spec: VmSpec,
    limits: Limits,
}

impl Stage {
    fn new(script: &str) -> Stage {
        let dir = tempfile::tempdir().unwrap();
        let nodes = vec![Node { cpus: [0].into(), memory_bytes: 1 << 20 }];
        let topology = Topology {
            name: "1x1".into(),
            summary: String::new(),
            cpus: 1,
            max_cpus: 1,
            sockets: 1,
            cores: 1,
            threads: 1,
            nodes,
            distances: None,
        };
        let spec = VmSpec {
            qemu: fake_qemu(),
            name: script.into(),
            accel: Accel::Tcg,
            topology,
            kernel: "kernel".into(),
            initrd: "initrd".into(),
            cmdline: String::new(),
            ram: Ram::Anonymous,
            incoming: false,
            dir: dir.path().join("vm"),
            vng: None,
        };
        Stage { dir, cancel: CancellationToken::new(), spec, limits: LIMITS }
    }

    fn record(&self) -> PathBuf {
        self.dir.path().join("record")
    }

    async fn start(&self) -> Result<Machine, VmError> {
        let record = self.record();
        let start = Machine::start(&self.spec, &record, &self.limits, &self.cancel);
        tokio::time::timeout(PATIENCE, start).await.expect("start within its limits")
    }

    async fn hello(&self) -> Result<Machine, VmError> {
        let mut machine = self.start().await?;
        machine.agent_hello(self.limits.boot, &self.cancel).await?;
        Ok(machine)
    }

    async fn template(&self) -> Result<Template, VmError> {
        let record = self.record();
        let make = Template::make(&self.spec, &record, &self.limits, &self.cancel);
        tokio::time::timeout(PATIENCE, make).await.expect("template within its limits")
    }

    /// Fails when a process of this stage is left after a moment.
    async fn nothing_left(&self) {
        let begin = Instant::now();
        while let Some(command) = process_with(self.dir.path()) {
            assert!(begin.elapsed() < Duration::from_secs(5), "left: {command}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Command line of a process that names `dir`.
fn process_with(dir: &Path) -> Option<String> {
    let dir = dir.to_str().unwrap();
    std::fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        (line.contains(dir) && line.contains("-chardev")).then_some(line)
    })
}

#[tokio::test]
async fn a_good_vm_lives_and_powers_off() {
    let stage = Stage::new("good");
    let machine = stage.hello().await.unwrap();
    assert!(process_with(stage.dir.path()).is_some());
    let facts = machine.request(Command::Facts, LONG, &stage.cancel).await.unwrap();
    assert!(matches!(facts, Reply::Facts(facts) if facts.release == "0.0.0-fake"));
    let line = machine.console().wait_for("Linux version", PATIENCE).await.unwrap();
    assert!(line.contains("0.0.0-fake"));
    let Ended { by, status, drained } = machine.end(End::PowerOff).await;
    assert_eq!((by, drained), (Some(End::PowerOff), true));
    assert!(status.unwrap().success());
    stage.nothing_left().await;
}

#[tokio::test]
async fn no_such_program() {
    let mut stage = Stage::new("good");
    stage.spec.qemu = "/nonexistent/qemu".into();
    assert!(matches!(stage.start().await, Err(VmError::QemuMissing(_))));
}

#[tokio::test]
async fn a_directory_too_deep_for_sockets() {
    let mut stage = Stage::new("good");
    stage.spec.dir = stage.dir.path().join("d".repeat(100));
    assert!(matches!(stage.start().await, Err(VmError::PathTooLong { .. })));
}

#[tokio::test]
async fn death_before_the_sockets_is_told_at_once_with_its_words() {
    let stage = Stage::new("dies-at-once");
    let begin = Instant::now();
    let error = stage.start().await.unwrap_err();
    assert!(matches!(error, VmError::QemuExited { .. }), "{error:?}");
    assert!(error.to_string().contains("cannot set up guest memory"), "{error}");
    assert!(begin.elapsed() < LONG, "waited for sockets of a dead QEMU");
}

#[tokio::test]
async fn no_sockets() {
    let mut stage = Stage::new("no-sockets");
    stage.limits.connect = SHORT;
    assert!(matches!(stage.start().await, Err(VmError::NoSocket { .. })));
    stage.nothing_left().await;
}

#[tokio::test]
async fn no_greeting() {
    let mut stage = Stage::new("no-greeting");
    stage.limits.greeting = SHORT;
    let error = stage.start().await.unwrap_err();
    assert!(matches!(error, VmError::Qmp(QmpError::NoGreeting(_))), "{error:?}");
    stage.nothing_left().await;
}

#[tokio::test]
async fn greeting_then_death() {
    let stage = Stage::new("greeting-then-death");
    let error = stage.start().await.unwrap_err();
    assert!(error.to_string().contains("died after the greeting"), "{error:?}");
    stage.nothing_left().await;
}

#[tokio::test]
async fn unknown_events_disturb_nothing() {
    let stage = Stage::new("unknown-event");
    let machine = stage.hello().await.unwrap();
    let mut events = machine.qmp().events();
    machine.command(qapi::qmp::query_status {}, &stage.cancel).await.unwrap();
    let event = tokio::time::timeout(PATIENCE, events.recv()).await.unwrap().unwrap();
    assert!(matches!(event, QmpEvent::Other { name, .. } if name == "FROM_THE_FUTURE"));
    assert_eq!(machine.end(End::Quit).await.by, Some(End::Quit));
    stage.nothing_left().await;
}

#[tokio::test]
async fn a_late_reply_is_not_taken_for_the_next() {
    let mut stage = Stage::new("late-reply");
    stage.limits.command = SHORT;
    let machine = stage.hello().await.unwrap();
    let late = machine.command(qapi::qmp::query_status {}, &stage.cancel).await.unwrap_err();
    assert!(matches!(late, VmError::Qmp(QmpError::Timeout { .. })), "{late:?}");
    tokio::time::sleep(Duration::from_millis(300)).await;
    machine.command(qapi::qmp::query_migrate {}, &stage.cancel).await.unwrap();
    machine.end(End::Kill).await;
}

#[tokio::test]
async fn garbage_and_endless_lines_end_the_machine_protocol() {
    for script in ["garbage-qmp", "endless-qmp-line"] {
        let stage = Stage::new(script);
        let machine = stage.start().await.unwrap();
        tokio::time::timeout(PATIENCE, machine.qmp().closed()).await.expect(script);
        let error = machine.command(qapi::qmp::stop {}, &stage.cancel).await.unwrap_err();
        assert!(matches!(error, VmError::Qmp(QmpError::Closed(_))), "{script}: {error:?}");
        assert!(machine.end(End::Kill).await.status.is_some(), "{script}");
        stage.nothing_left().await;
    }
}

#[tokio::test]
async fn hang_on_quit_ends_by_kill() {
    let mut stage = Stage::new("hang-on-quit");
    stage.limits.end = SHORT;
    let machine = stage.hello().await.unwrap();
    let begin = Instant::now();
    let ended = machine.end(End::PowerOff).await;
    assert_eq!((ended.by, ended.drained), (Some(End::Kill), true));
    assert!(ended.status.is_some_and(|status| !status.success()));
    assert!(begin.elapsed() < 6 * SHORT, "{:?}", begin.elapsed());
    stage.nothing_left().await;
}

#[tokio::test]
async fn a_guest_that_does_not_power_off_is_told_to_quit() {
    let mut stage = Stage::new("ignores-power-off");
    stage.limits.end = SHORT;
    let machine = stage.hello().await.unwrap();
    assert_eq!(machine.end(End::PowerOff).await.by, Some(End::Quit));
}

#[tokio::test]
async fn a_silent_agent() {
    let mut stage = Stage::new("silent-agent");
    stage.limits.boot = SHORT;
    let error = stage.hello().await.unwrap_err();
    assert!(matches!(error, VmError::NoAgent { .. }), "{error:?}");
    stage.nothing_left().await;
}

#[tokio::test]
async fn garbage_in_place_of_the_hello() {
    let stage = Stage::new("garbage-hello");
    let mut machine = stage.start().await.unwrap();
    let error = machine.agent_hello(PATIENCE, &stage.cancel).await.unwrap_err();
    assert!(matches!(error, VmError::Agent(AgentError::Protocol(_))), "{error:?}");
}

#[tokio::test]
async fn garbage_from_the_agent() {
    let stage = Stage::new("garbage-agent");
    let machine = stage.hello().await.unwrap();
    let facts = machine.request(Command::Facts, PATIENCE, &stage.cancel).await;
    assert!(matches!(facts, Err(VmError::Agent(AgentError::Protocol(_)))), "{facts:?}");
    assert_eq!(machine.end(End::PowerOff).await.by, Some(End::Quit));
    stage.nothing_left().await;
}

#[tokio::test]
async fn an_agent_that_hangs_up() {
    let stage = Stage::new("agent-hangs-up");
    let machine = stage.hello().await.unwrap();
    let facts = machine.request(Command::Facts, PATIENCE, &stage.cancel).await;
    assert!(matches!(facts, Err(VmError::Agent(AgentError::Lost(_)))), "{facts:?}");
}

#[tokio::test]
async fn an_endless_console_does_not_keep_the_agent_from_answering() {
    let stage = Stage::new("endless-console");
    let machine = stage.hello().await.unwrap();
    let begin = Instant::now();
    while machine.console().total() < lab::vm::console::FILE_MAX + (1 << 20) {
        // Every byte is scanned, which takes its time without optimisation.
        assert!(begin.elapsed() < 6 * PATIENCE, "console is not read");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    machine.request(Command::Facts, PATIENCE, &stage.cancel).await.unwrap();
    let console = machine.console().clone();
    assert!(machine.end(End::Quit).await.drained);
    let log = stage.record().join("console.log").metadata().unwrap().len();
    assert!(log < lab::vm::console::FILE_MAX, "{log}");
    assert!(console.text().len() < 3 * lab::vm::console::TEXT_MAX);
    stage.nothing_left().await;
}

#[tokio::test]
async fn an_internal_error_ends_the_wait_for_the_agent() {
    let stage = Stage::new("internal-error");
    let mut machine = stage.start().await.unwrap();
    // Long before the hello's own limit, and whoever is first: the agent of this script
    // answers, so the wait is for a line that never comes.
    let line = machine.console().clone();
    let never = line.wait_for("never", PATIENCE);
    let begin = Instant::now();
    let error = machine.guard(&stage.cancel, never).await.unwrap_err();
    assert!(matches!(error, VmError::InternalError { .. }), "{error:?}");
    assert!(begin.elapsed() < PATIENCE / 2);
    let _ = machine.agent_hello(SHORT, &stage.cancel).await;
}

#[tokio::test]
async fn cancelling_ends_any_wait() {
    let stage = Stage::new("silent-agent");
    let mut machine = stage.start().await.unwrap();
    let cancel = stage.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.cancel();
    });
    let begin = Instant::now();
    let error = machine.agent_hello(PATIENCE, &stage.cancel).await.unwrap_err();
    assert!(matches!(error, VmError::Cancelled), "{error:?}");
    assert!(begin.elapsed() < Duration::from_secs(5));
    drop(machine);
    stage.nothing_left().await;
}

#[tokio::test]
async fn a_killed_qemu_is_told_at_once() {
    let stage = Stage::new("silent-agent");
    let mut machine = stage.start().await.unwrap();
    let pid = rustix::process::Pid::from_raw(machine.pid().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let begin = Instant::now();
    let error = machine.agent_hello(PATIENCE, &stage.cancel).await.unwrap_err();
    assert!(matches!(error, VmError::QemuExited { .. }), "{error:?}");
    assert!(begin.elapsed() < Duration::from_secs(5));
    assert_eq!(machine.end(End::PowerOff).await.by, None);
}

#[tokio::test]
async fn a_template_and_its_clone() {
    let stage = Stage::new("good");
    let template = stage.template().await.unwrap();
    assert_eq!(template.facts().release, "0.0.0-fake");
    stage.nothing_left().await;
    let (dir, record) = (stage.dir.path().join("clone"), stage.dir.path().join("clone-record"));
    let clone = template.clone_into("c", &dir, &record, &LIMITS, &stage.cancel).await.unwrap();
    assert!(clone.ready_after().is_some() && clone.agent().is_ok());
    drop(clone);
    stage.nothing_left().await;
}

#[tokio::test]
async fn a_template_that_cannot_be_saved_says_why() {
    for (script, words) in [
        ("refuses-to-save", "fake refusal"),
        ("save-fails", "disk on fire"),
        ("save-never-ends", "not done after"),
    ] {
        let mut stage = Stage::new(script);
        stage.limits.state = SHORT;
        let error = stage.template().await.unwrap_err();
        assert!(error.to_string().contains(words), "{script}: {error:?}");
        stage.nothing_left().await;
    }
}

#[tokio::test]
async fn kvm_that_cannot_run_a_guest_is_refused_with_the_reason() {
    let mut stage = Stage::new("good");
    stage.spec.qemu = "/nonexistent/qemu".into();
    let qemu = Qemu::find(Some(&fake_qemu()), &stage.cancel).await.unwrap();
    assert_eq!(qemu.version, "10.0.2 (fake)");
    let cache = stage.dir.path().join("kvm.json");
    let ask = |request| accel::choose(request, &stage.spec, &qemu, &cache, &stage.cancel);
    let auto = ask(AccelRequest::Auto).await.unwrap();
    assert_eq!(auto.accel, Accel::Tcg);
    assert!(auto.reason.is_some());
    assert!(matches!(ask(AccelRequest::Kvm).await, Err(AccelError::NoKvm(_))));
    let tcg = ask(AccelRequest::Tcg).await.unwrap();
    assert_eq!((tcg.accel, tcg.reason), (Accel::Tcg, None));
}

/// What keeps KVM from running a guest when QEMU plays `script`.
async fn canary(script: &str) -> Option<accel::Obstacle> {
    use std::os::unix::fs::PermissionsExt;
    let mut stage = Stage::new("unused");
    let program = stage.dir.path().join("qemu");
    let fake = fake_qemu();
    let text = format!("#!/bin/sh\nLAB_FAKE_QEMU={script} exec {} \"$@\"\n", fake.display());
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    stage.spec.qemu = program;
    let canary = accel::run_canary(&stage.spec, &stage.cancel);
    tokio::time::timeout(PATIENCE, canary).await.unwrap().unwrap()
}

#[tokio::test]
async fn kvm_is_proven_by_a_guest_that_prints() {
    assert_eq!(canary("good").await, None);
}

#[tokio::test]
async fn kvm_that_stops_dies_or_stays_silent_is_told_apart() {
    for (script, words, certain) in [
        ("internal-error", "stopped with internal-error", true),
        ("dies-at-once", "cannot set up guest memory", true),
        ("silent-console", "no sign of a kernel", false),
    ] {
        let obstacle = canary(script).await.unwrap();
        assert!(obstacle.reason.contains(words), "{script}: {obstacle:?}");
        assert_eq!(obstacle.certain, certain, "{script}");
    }
}

/// Set in the process that [`a_killed_lab_leaves_no_qemu`] kills: the directory of its stage.
const HOLD: &str = "LAB_TEST_HOLD";

/// The role of a lab that is killed: holds a VM, for another test. Nothing on its own.
#[tokio::test]
async fn holder() {
    let Ok(dir) = std::env::var(HOLD) else { return };
    let mut stage = Stage::new("good");
    stage.spec.dir = Path::new(&dir).join("vm");
    let machine = stage.hello().await.unwrap();
    std::fs::write(Path::new(&dir).join("up"), machine.pid().to_string()).unwrap();
    tokio::time::sleep(2 * PATIENCE).await;
}

#[tokio::test]
async fn a_killed_lab_leaves_no_qemu() {
    let stage = Stage::new("good");
    let mut lab = Program::new(std::env::current_exe().unwrap(), ["--exact", "holder"]);
    lab.env.push((HOLD.into(), stage.dir.path().into()));
    let lab = process::spawn(lab).await.unwrap();
    let begin = Instant::now();
    while !stage.dir.path().join("up").exists() {
        assert!(begin.elapsed() < PATIENCE, "{}", lab.stdout());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(process_with(stage.dir.path()).is_some());
    lab.kill_group();
    stage.nothing_left().await;
}

#[tokio::test]
async fn a_kernel_that_is_silent_is_asked_within_limits() {
    let mut stage = Stage::new("silent-console");
    stage.limits.sysrq = SHORT;
    let machine = stage.start().await.unwrap();
    let begin = Instant::now();
    assert!(!machine.sysrq(Break::Tasks).await.unwrap());
    assert_eq!(machine.nmi().await.unwrap(), 0);
    assert!(begin.elapsed() < 5 * SHORT, "{:?}", begin.elapsed());
    machine.end(End::Kill).await;
    stage.nothing_left().await;
}

#[tokio::test]
async fn a_boot_without_a_word_ends_at_the_limit_of_silence() {
    let mut stage = Stage::new("silent-agent");
    stage.limits.silence = SHORT;
    let error = stage.hello().await.unwrap_err();
    assert!(matches!(error, VmError::Silent { limit } if limit == SHORT), "{error}");
    stage.nothing_left().await;
}

#[tokio::test]
async fn a_core_that_was_not_written_is_an_error_and_no_room_is_one() {
    let stage = Stage::new("good");
    let machine = stage.hello().await.unwrap();
    let file = stage.record().join("vmcore");
    assert!(machine.vmcore(&file, 1 << 20).await.is_err(), "the fake writes none");
    let error = machine.vmcore(&file, u64::MAX / 2).await.unwrap_err();
    assert!(matches!(error, VmError::State { what: "vmcore", .. }), "{error}");
    machine.end(End::Quit).await;
    stage.nothing_left().await;
}
