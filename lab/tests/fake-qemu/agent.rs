//! The agent's side of the scripts.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use lab_proto::frame::{Decoder, Frame, Kind, encode_json};
use lab_proto::message::{Command, HelloReply, Reply, Request, Response};
use lab_proto::observe::{Facts, TopologyReport};

/// Answers frames until the other side goes.
pub(crate) fn play(mut control: UnixStream, _bulk: &UnixStream, script: &str) {
    let mut decoder = Decoder::for_guest();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = control.read(&mut buffer) {
        decoder.push(&buffer[..count]);
        while let Ok(Some(frame)) = decoder.next_frame() {
            if !handle(&mut control, &frame, script) {
                return;
            }
        }
    }
    thread::sleep(Duration::from_secs(120));
}

/// Answers one frame; whether to go on.
fn handle(control: &mut UnixStream, frame: &Frame, script: &str) -> bool {
    match (frame.kind, script) {
        (_, "silent-agent") => true,
        (Kind::Hello, "garbage-hello") => {
            while control.write_all(&[b'L'; 4096]).is_ok() {}
            true
        }
        (Kind::Hello, _) => {
            let reply = HelloReply { agent_version: "fake".into(), boottime_ns: 1 };
            send(control, frame, Kind::HelloReply, &reply)
        }
        (_, "garbage-agent") => control.write_all(b"no frame at all, not at all").is_ok(),
        (_, "agent-hangs-up") => false,
        _ => frame.json::<Request>().is_ok_and(|request| {
            let id = request.id;
            let poweroff = request.command == Command::PowerOff;
            let result = Ok(answer(&request.command));
            let sent = send(control, frame, Kind::Response, &Response { id, result });
            if poweroff && !matches!(script, "hang-on-quit" | "ignores-power-off") {
                std::process::exit(0);
            }
            sent
        }),
    }
}

fn send<T: serde::Serialize>(control: &mut UnixStream, to: &Frame, kind: Kind, value: &T) -> bool {
    encode_json(kind, to.session, value).is_ok_and(|wire| control.write_all(&wire).is_ok())
}

fn answer(command: &Command) -> Reply {
    match command {
        Command::Topology => Reply::Topology(TopologyReport {
            possible: vec![0],
            present: vec![0],
            online: vec![0],
            cpus: Vec::new(),
            nodes: Vec::new(),
        }),
        Command::Facts => Reply::Facts(Facts {
            release: "0.0.0-fake".into(),
            version: String::new(),
            cmdline: String::new(),
            tainted: 0,
            enable_uring: None,
            traces_fuse: false,
            fio: None,
        }),
        Command::PowerOff => Reply::PoweringOff,
        _ => Reply::Marked { tainted: 0 },
    }
}
