//! Frames that are none, and answers that nobody asked for.

use std::time::Duration;

use lab_proto::frame::{self, Kind};
use lab_proto::message::{Command, Reply, Request, Response};

use crate::texts::EVIL;
use crate::{Guest, honest};

/// Longer than the step limit of the scenarios, stretched.
const LATE: Duration = Duration::from_secs(12);

/// Levels of a body that nests.
const DEPTH: usize = 200_000;

/// Misbehaves where the mode is about frames; whether the request is done with.
pub(crate) fn misbehave(guest: &mut Guest, request: &Request) -> bool {
    if other_answer(guest, request) || more_answers(guest, request) {
        return true;
    }
    if !matches!(request.command, Command::Step { .. }) {
        return false;
    }
    if let Some(bytes) = broken(guest, request) {
        guest.control.raw(&bytes);
        return true;
    }
    let Some(body) = odd_body(&guest.mode, request.id) else { return false };
    guest.control.body(Kind::Response, guest.session, &body);
    true
}

/// Bytes that are no frame of this session, made from a good one.
fn broken(guest: &Guest, request: &Request) -> Option<Vec<u8>> {
    let response = Response { id: request.id, result: Ok(honest::reply(&request.command)) };
    let good = |session| frame::encode_json(Kind::Response, session, &response).ok();
    let bent = |at: usize, byte: u8| {
        let mut bytes = good(guest.session)?;
        *bytes.get_mut(at)? = byte;
        Some(bytes)
    };
    match guest.mode.as_str() {
        "magic" => bent(0, 0x1b),
        "version" => bent(4, 99),
        "kind" => bent(5, 77),
        "huge" => bent(19, 0xff),
        "crc" => bent(20, 0).map(|mut bytes| {
            bytes[21] ^= 0xff;
            bytes
        }),
        "session" => good(!guest.session),
        "hello" => frame::encode(Kind::Hello, !guest.session, b"{}").ok(),
        "truncated" => good(guest.session).map(|bytes| bytes[..bytes.len() - 1].to_vec()),
        _ => None,
    }
}

/// A body that is not the answer that its frame says.
fn odd_body(mode: &str, id: u32) -> Option<Vec<u8>> {
    let text = match mode {
        "deep" => "[".repeat(DEPTH),
        "deep-reply" => format!("{{\"id\":{id},\"result\":{}", "{\"Ok\":".repeat(DEPTH)),
        "no-json" => return Some(vec![0xff; 4096]),
        "unknown" => format!("{{\"id\":{id},\"result\":{{\"Ok\":{{{}:1}}}}}}", quoted(EVIL)),
        "unknown-step" => {
            format!("{{\"id\":{id},\"result\":{{\"Ok\":{{\"observed\":{}}}}}}}", quoted(EVIL))
        }
        "never-asked" => format!("{{\"id\":{},\"result\":{{\"Ok\":\"powering-off\"}}}}", u32::MAX),
        "id-zero" => "{\"id\":0,\"result\":{\"Ok\":\"powering-off\"}}".into(),
        "number" => {
            format!("{{\"id\":{id},\"result\":{{\"Ok\":{{\"marked\":{{\"tainted\":1e999}}}}}}}}")
        }
        "nan" => "{\"id\":NaN,\"result\":{\"Ok\":\"powering-off\"}}".into(),
        "negative" => "{\"id\":-1,\"result\":{\"Ok\":\"powering-off\"}}".into(),
        _ => return None,
    };
    Some(text.into_bytes())
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A good answer to another question.
fn other_answer(guest: &mut Guest, request: &Request) -> bool {
    let other = match (guest.mode.as_str(), &request.command) {
        ("other-facts", Command::Facts)
        | ("other-topology", Command::Topology)
        | ("other-step", Command::Step { .. })
        | ("other-stats", Command::Stats)
        | ("other-mark", Command::Mark { .. }) => Reply::PoweringOff,
        _ => return false,
    };
    guest.answer(request.id, Ok(other));
    true
}

/// Too many answers, or one too late.
fn more_answers(guest: &mut Guest, request: &Request) -> bool {
    let is_step = matches!(request.command, Command::Step { .. });
    match guest.mode.as_str() {
        "twice" => {
            let good = honest::reply(&request.command);
            guest.answer(request.id, Ok(good));
            guest.answer(request.id, Ok(Reply::Marked { tainted: 1 }));
            true
        }
        "late" if is_step => {
            std::thread::sleep(LATE);
            guest.answer(request.id, Ok(honest::reply(&request.command)));
            true
        }
        "heartbeats" if is_step => {
            // Good frames without end: answers to a request that was answered long ago.
            let response = Response { id: 1, result: Ok(Reply::PoweringOff) };
            match frame::encode_json(Kind::Response, guest.session, &response) {
                Ok(bytes) => guest.control.pour(&bytes),
                Err(_) => true,
            }
        }
        _ => false,
    }
}
