//! Files that do not want to stay where the host keeps them.

use lab_proto::frame::{self, BULK_CHUNK, Kind};
use lab_proto::message::{BulkHeader, Command, Reply, Request};
use lab_proto::observe::Observation;
use lab_proto::step::Step;

use crate::texts::EVIL;
use crate::{Guest, honest};

/// More artifacts than any case may leave.
const MANY: u32 = 100_000;

/// Misbehaves where the mode is about artifacts; whether the request is done with.
pub(crate) fn misbehave(guest: &mut Guest, request: &Request) -> bool {
    let Command::Step { step: Step::Fio { .. }, .. } = &request.command else { return false };
    let Some(mode) = guest.mode.strip_prefix("file-").map(str::to_owned) else { return false };
    let (name, bytes) = match mode.as_str() {
        "up" => ("../../escaped", b"{}".to_vec()),
        "deep" => ("artifacts/../../../escaped", b"{}".to_vec()),
        "absolute" => ("/tmp/lab-hostile-escaped", b"{}".to_vec()),
        "device" => ("/dev/null", b"{}".to_vec()),
        "dots" => ("..", b"{}".to_vec()),
        "unnamed" => ("", b"{}".to_vec()),
        "evil" => (EVIL, b"{}".to_vec()),
        "nul" => ("a\0b", b"{}".to_vec()),
        "empty" => ("fio.json", Vec::new()),
        // It is there, under another name than the one told.
        "none" => {
            send(guest, "fio.json", 0, true, b"{}");
            return answer(guest, request.id, "../artifacts/fio.json", 2);
        }
        "short" => return short(guest, request.id),
        "nan" => ("fio.json", b"{\"jobs\":[{\"read\":{\"total_ios\":NaN}}]}".to_vec()),
        "nested" => ("fio.json", "[".repeat(BULK_CHUNK).into_bytes()),
        "evil-json" => ("fio.json", format!("{{{EVIL}:1").into_bytes()),
        "numbers" => ("fio.json", numbers()),
        "many" => return many(guest),
        "endless" => return endless(guest),
        _ => return false,
    };
    send(guest, name, 0, true, &bytes);
    answer(guest, request.id, name, bytes.len() as u64)
}

fn send(guest: &mut Guest, name: &str, offset: u64, last: bool, data: &[u8]) {
    let header = BulkHeader { name: name.into(), offset, last };
    if let Ok(bytes) = frame::encode_bulk(guest.session, &header, data) {
        guest.bulk.raw(&bytes);
    }
}

fn answer(guest: &mut Guest, id: u32, name: &str, bytes: u64) -> bool {
    let mut seen = honest::fio(name, bytes);
    seen.stderr = EVIL.into();
    guest.answer(id, Ok(Reply::Observed(Observation::Fio(seen))));
    true
}

/// Fewer bytes than told, and a header that is longer than its frame.
fn short(guest: &mut Guest, id: u32) -> bool {
    let mut body = u32::MAX.to_le_bytes().to_vec();
    body.extend_from_slice(b"{}");
    guest.bulk.body(Kind::Bulk, guest.session, &body);
    answer(guest, id, "fio.json", u64::MAX)
}

/// Two jobs whose counts do not add up in 64 bits.
fn numbers() -> Vec<u8> {
    let max = u64::MAX;
    let side = format!(
        "{{\"total_ios\":{max},\"short_ios\":{max},\"drop_ios\":{max},\"io_bytes\":{max},\"runtime\":{max},\
         \"iops\":1e308,\"bw_bytes\":{max},\"bw\":{max},\
         \"clat_ns\":{{\"min\":0,\"max\":{max},\"N\":{max},\"mean\":1e308,\"percentile\":{{\"99.000000\":{max}}}}}}}"
    );
    let job = format!(
        "{{\"jobname\":\"j\",\"error\":0,\"elapsed\":{max},\"job_runtime\":{max},\
         \"usr_cpu\":1e308,\"sys_cpu\":1e308,\"ctx\":{max},\
         \"read\":{side},\"write\":{side},\"trim\":{side}}}"
    );
    format!("{{\"fio version\":\"fio-3.33\",\"timestamp\":{max},\"jobs\":[{job},{job}]}}")
        .into_bytes()
}

fn many(guest: &mut Guest) -> bool {
    for n in 0..MANY {
        send(guest, &format!("a{n}"), 0, true, b"");
    }
    true
}

fn endless(guest: &mut Guest) -> bool {
    let data = vec![b'x'; BULK_CHUNK];
    for n in 0.. {
        send(guest, "fio.json", n * BULK_CHUNK as u64, false, &data);
    }
    true
}
