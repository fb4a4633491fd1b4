//! PID 1 of a guest that misbehaves on purpose, to test that the host trusts no word of it.
//!
//! It speaks the protocol like the lab's own agent until its mode tells otherwise. A mode is the
//! last part of the first path below `/hostile/` that a step names, or the kernel argument
//! `lab.hostile=MODE` for what has to go wrong before the first step. Without a mode it answers
//! as a good guest would, so that a template of it can be saved.
//!
//! Not part of the shipped program: the tests build it and name it to `lab` by `LAB_GUEST`.

mod artifacts;
mod console;
mod frames;
mod honest;
mod lies;
mod port;
mod sys;
mod texts;

use std::process::ExitCode;

use lab_proto::frame::{Decoder, Frame, Kind};
use lab_proto::message::{Command, HelloReply, Request, Response};
use lab_proto::step::Step;
use lab_proto::{BULK_PORT, CONTROL_PORT};
use port::Port;

/// What the guest is and how it misbehaves.
struct Guest {
    mode: String,
    session: u64,
    control: Port,
    bulk: Port,
}

fn main() -> ExitCode {
    // Never by chance on a host: it mounts, and powers off.
    if std::process::id() != 1 {
        return ExitCode::from(64);
    }
    sys::mount_all();
    let _ = std::fs::write("/proc/self/comm", "lab-agent");
    let cmdline = std::fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let mode = cmdline.split_whitespace().find_map(|word| word.strip_prefix("lab.hostile="));
    let mut guest = Guest {
        mode: mode.unwrap_or_default().to_owned(),
        session: 0,
        control: Port::open(CONTROL_PORT),
        bulk: Port::open(BULK_PORT),
    };
    guest.serve();
    ExitCode::FAILURE
}

impl Guest {
    fn serve(&mut self) {
        let mut decoder = Decoder::for_guest();
        loop {
            decoder.push(&self.control.read());
            while let Ok(Some(frame)) = decoder.next_frame() {
                self.take(&frame);
            }
        }
    }

    fn take(&mut self, frame: &Frame) {
        match frame.kind {
            Kind::Hello => {
                self.session = frame.session;
                if self.mode == "no-frames" {
                    self.control.pour(b"no frame of any session\0\x1b[2J");
                }
                let reply = HelloReply { agent_version: texts::EVIL.into(), boottime_ns: u64::MAX };
                self.control.json(Kind::HelloReply, self.session, &reply);
            }
            Kind::Request => {
                if let Ok(request) = frame.json() {
                    self.request(&request);
                }
            }
            _ => {}
        }
    }

    fn request(&mut self, request: &Request) {
        if let Command::Step { step, .. } = &request.command
            && let Some(mode) = mode_of(path(step))
        {
            mode.clone_into(&mut self.mode);
        }
        if frames::misbehave(self, request)
            || console::misbehave(self, request)
            || artifacts::misbehave(self, request)
        {
            return;
        }
        let result = texts::result(&self.mode, &request.command)
            .or_else(|| lies::result(&self.mode, &request.command))
            .unwrap_or_else(|| Ok(honest::reply(&request.command)));
        self.answer(request.id, result);
    }

    fn answer(
        &mut self,
        id: u32,
        result: Result<lab_proto::message::Reply, lab_proto::message::Fault>,
    ) {
        self.control.json(Kind::Response, self.session, &Response { id, result });
    }
}

/// The mode that a path below `/hostile/` is.
fn mode_of(path: &str) -> Option<&str> {
    path.strip_prefix("/hostile/")?.split('/').next()
}

/// The path that a step names.
fn path(step: &Step) -> &str {
    match step {
        Step::Serve(spec) => &spec.mount_point,
        Step::Tmpfs { mount_point } | Step::Unmount { mount_point } => mount_point,
        Step::Tree { path }
        | Step::Place { path, .. }
        | Step::Teardown { path, .. }
        | Step::Fio { path, .. } => path,
        Step::Sabotage { .. } => "",
    }
}
