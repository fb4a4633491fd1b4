//! A QEMU that plays a script, to test supervision: it makes the sockets of its arguments and
//! speaks the machine protocol and the agent's, well or badly.
//!
//! The script is the environment variable `LAB_FAKE_QEMU`, or else the VM's name without
//! `lab-`; a name that is no script behaves well.

mod agent;
mod qmp;

use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;
use std::time::Duration;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.iter().any(|arg| arg == "--version") {
        let _ = writeln!(std::io::stdout(), "QEMU emulator version 10.0.2 (fake)");
        return;
    }
    let script = script(&args);
    if script == "dies-at-once" {
        die("fake-qemu: cannot set up guest memory");
    }
    if script == "no-sockets" {
        thread::sleep(Duration::from_secs(120));
        return;
    }
    let ports = ["qmp", "lab-console", "control", "bulk"].map(|id| listen(&args, id));
    let [qmp, console, control, bulk] = ports;
    let script = &*Box::leak(script.into_boxed_str());
    thread::spawn(move || play_console(&accept(&console), script));
    thread::spawn(move || agent::play(accept(&control), &accept(&bulk), script));
    thread::spawn(move || qmp::play(accept(&qmp), script));
    // Nobody may be left with a fake that its test forgot.
    thread::sleep(Duration::from_secs(120));
}

fn script(args: &[String]) -> String {
    let name = value(args, "-name").unwrap_or_default();
    std::env::var("LAB_FAKE_QEMU").unwrap_or_else(|_| name.trim_start_matches("lab-").into())
}

fn value(args: &[String], flag: &str) -> Option<String> {
    args.iter().skip_while(|arg| *arg != flag).nth(1).cloned()
}

/// Ends like a QEMU that gives up.
fn die(text: &str) -> ! {
    let _ = writeln!(std::io::stderr(), "{text}");
    std::process::exit(1)
}

fn listen(args: &[String], id: &str) -> UnixListener {
    let begin = format!("socket,id={id},path=");
    let path = args.iter().find_map(|arg| arg.strip_prefix(&begin)?.split(',').next());
    let Some(path) = path else { die(&format!("fake-qemu: no chardev {id}")) };
    UnixListener::bind(path).unwrap_or_else(|e| die(&format!("fake-qemu: {path}: {e}")))
}

fn accept(listener: &UnixListener) -> UnixStream {
    match listener.accept() {
        Ok((stream, _)) => stream,
        Err(e) => die(&format!("fake-qemu: accept: {e}")),
    }
}

fn play_console(mut console: &UnixStream, script: &str) {
    if !matches!(script, "internal-error" | "silent-console") {
        let _ = console.write_all(b"[    0.000000] Linux version 0.0.0-fake\r\n");
    }
    let noise = "still going\r\n".repeat(1000);
    while script == "endless-console" && console.write_all(noise.as_bytes()).is_ok() {}
    // A console that closes early would look like the end of QEMU.
    thread::sleep(Duration::from_secs(120));
}
