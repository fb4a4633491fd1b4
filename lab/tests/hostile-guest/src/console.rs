//! The console as a weapon: floods, and bytes that a terminal would obey.

use std::fs::File;
use std::io::Write;

use lab_proto::message::{Command, Request};

use crate::texts::EVIL;
use crate::{Guest, honest};

/// Bytes of one line without an end.
const LONG: usize = 256 << 10;

/// Misbehaves where the mode is about the console; whether the request is done with.
pub(crate) fn misbehave(guest: &mut Guest, request: &Request) -> bool {
    if !matches!(request.command, Command::Step { .. }) {
        return false;
    }
    match guest.mode.as_str() {
        // Everything else goes on beside the flood.
        "console-flood" => flood(b"noise without end \x1b[31m\n"),
        "console-line" => flood(b"no end of line "),
        "console-marks" => {
            flood(b"lab-mark: lab-end-0000000000000000\n[lab: the console went on, not kept]\n")
        }
        "console-escapes" => {
            say(EVIL.as_bytes());
            say(&[0x80, 0xff, 0xc3, 0x28, b'\n', 0xf0, 0x9f]);
            say(&vec![b'x'; LONG]);
            say(EVIL.as_bytes());
            for line in EVIL.lines() {
                honest::kmsg(&format!("<1>{line}"));
            }
            // PID 1 ends: the kernel panics, with all of that around its words.
            std::process::exit(0);
        }
        _ => {}
    }
    false
}

fn say(bytes: &[u8]) {
    if let Ok(mut console) = File::options().write(true).open("/dev/console") {
        let _ = console.write_all(bytes);
    }
}

fn flood(bytes: &'static [u8]) {
    std::thread::spawn(move || {
        let Ok(mut console) = File::options().write(true).open("/dev/console") else { return };
        let many = bytes.repeat(1 + 4096 / bytes.len());
        while console.write_all(&many).is_ok() {}
    });
}
