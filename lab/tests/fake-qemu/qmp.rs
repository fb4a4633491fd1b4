//! The machine protocol's side of the scripts.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

const GREETING: &str = r#"{"QMP":{"version":{"qemu":{"micro":2,"minor":0,"major":10},"package":"fake"},"capabilities":["oob"]}}"#;

/// Greets and answers until the other side goes.
pub(crate) fn play(mut stream: UnixStream, script: &str) {
    if script == "no-greeting" {
        return thread::sleep(Duration::from_secs(120));
    }
    say(&mut stream, GREETING);
    if script == "greeting-then-death" {
        crate::die("fake-qemu: died after the greeting");
    }
    let Ok(input) = stream.try_clone() else { return };
    let mut asked_status = false;
    for line in BufReader::new(input).lines().map_while(Result::ok) {
        let Ok(command) = serde_json::from_str::<Value>(&line) else { return };
        let name = command["execute"].as_str().unwrap_or_default().to_string();
        if name == "query-status" && script == "late-reply" && !asked_status {
            asked_status = true;
            thread::sleep(Duration::from_millis(600));
        }
        if name == "quit" && script == "hang-on-quit" {
            continue;
        }
        let mut reply = answer(&name, script);
        reply["id"] = command["id"].clone();
        say(&mut stream, &reply.to_string());
        after(&mut stream, &name, script);
    }
    thread::sleep(Duration::from_secs(120));
}

fn say(stream: &mut UnixStream, line: &str) {
    let _ = stream.write_all(format!("{line}\r\n").as_bytes());
}

fn answer(name: &str, script: &str) -> Value {
    let refusal = json!({"error": {"class": "GenericError", "desc": "fake refusal"}});
    match (name, script) {
        ("migrate-set-capabilities", "refuses-to-save") => refusal,
        ("query-migrate", "save-never-ends") => json!({"return": {"status": "active"}}),
        ("query-migrate", "save-fails") => {
            json!({"return": {"status": "failed", "error-desc": "disk on fire"}})
        }
        ("query-migrate", _) => json!({"return": {"status": "completed"}}),
        ("query-status", "internal-error") => {
            json!({"return": {"status": "internal-error", "running": false}})
        }
        ("query-status", _) => json!({"return": {"status": "running", "running": true}}),
        _ => json!({"return": {}}),
    }
}

/// What follows a reply.
fn after(stream: &mut UnixStream, name: &str, script: &str) {
    match (name, script) {
        ("quit", _) => std::process::exit(0),
        ("cont", "internal-error") => say(stream, r#"{"event":"STOP","timestamp":{}}"#),
        ("cont", "garbage-qmp") => say(stream, "this is no json"),
        ("cont", "endless-qmp-line") => while stream.write_all(&[b'x'; 4096]).is_ok() {},
        (_, "unknown-event") => {
            say(stream, r#"{"event":"FROM_THE_FUTURE","data":{"x":[1,2]},"timestamp":{}}"#);
        }
        _ => {}
    }
}
