//! Length-prefixed, versioned, bounded frames.
//!
//! Layout, little endian: magic `LABF`, version u8, kind u8, reserved u16 (zero), session u64,
//! body length u32, CRC-32 of the body u32, body. The session is the nonce of one VM: bytes
//! that were queued when its template was saved carry another session, or begin in the middle
//! of a frame, and are dropped until the first frame of the session that the reader waits for.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::VERSION;

const MAGIC: [u8; 4] = *b"LABF";

/// Bytes before the body.
pub const HEADER_LEN: usize = 24;

/// Largest body, bytes.
pub const MAX_BODY: usize = 2 << 20;

/// Bytes that a seeking decoder drops before it gives up.
pub const MAX_SEEK: u64 = 16 << 20;

/// Largest data part of a bulk frame, bytes.
pub const BULK_CHUNK: usize = 64 << 10;

/// What the body of a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// JSON [`crate::message::Hello`].
    Hello = 1,
    /// JSON [`crate::message::HelloReply`].
    HelloReply = 2,
    /// JSON [`crate::message::Request`].
    Request = 3,
    /// JSON [`crate::message::Response`].
    Response = 4,
    /// u32 length of a JSON [`crate::message::BulkHeader`], the header, the data.
    Bulk = 5,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Kind> {
        [Kind::Hello, Kind::HelloReply, Kind::Request, Kind::Response, Kind::Bulk]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

/// A frame that arrived whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What the body is.
    pub kind: Kind,
    /// Session of the sender.
    pub session: u64,
    /// The body, at most [`MAX_BODY`] bytes.
    pub body: Vec<u8>,
}

impl Frame {
    /// Reads the body as JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, FrameError> {
        serde_json::from_slice(&self.body).map_err(|e| FrameError::Body(e.to_string()))
    }
}

/// Why bytes are not a frame, or a value does not fit one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The stream is not at a frame.
    #[error("not a frame: bytes {0:02x?}")]
    Magic([u8; 4]),
    /// The other side speaks another version.
    #[error("frame version {0}, this side speaks {VERSION}")]
    Version(u8),
    /// No such kind.
    #[error("unknown frame kind {0}")]
    Kind(u8),
    /// The body is over the bound.
    #[error("frame of {0} bytes, the bound is {MAX_BODY}")]
    TooLong(u64),
    /// The body is damaged.
    #[error("frame checksum differs")]
    Checksum,
    /// A frame of another session after the handshake.
    #[error("frame of session {got:#018x}, expected {want:#018x}")]
    Session {
        /// In the frame.
        got: u64,
        /// Of this VM.
        want: u64,
    },
    /// No frame of the session within [`MAX_SEEK`] bytes.
    #[error("no frame of this session in {MAX_SEEK} bytes")]
    Seek,
    /// The body is not what its kind says.
    #[error("frame body: {0}")]
    Body(String),
}

/// Encodes one frame with a raw body.
pub fn encode(kind: Kind, session: u64, body: &[u8]) -> Result<Vec<u8>, FrameError> {
    if body.len() > MAX_BODY {
        return Err(FrameError::TooLong(body.len() as u64));
    }
    let mut out = Vec::with_capacity(HEADER_LEN + body.len());
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[VERSION, kind as u8, 0, 0]);
    out.extend_from_slice(&session.to_le_bytes());
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend_from_slice(&crc32fast::hash(body).to_le_bytes());
    out.extend_from_slice(body);
    Ok(out)
}

/// Encodes one frame with a JSON body.
pub fn encode_json<T: Serialize>(
    kind: Kind,
    session: u64,
    value: &T,
) -> Result<Vec<u8>, FrameError> {
    let body = serde_json::to_vec(value).map_err(|e| FrameError::Body(e.to_string()))?;
    encode(kind, session, &body)
}

/// Encodes one bulk frame.
pub fn encode_bulk(
    session: u64,
    header: &crate::message::BulkHeader,
    data: &[u8],
) -> Result<Vec<u8>, FrameError> {
    let head = serde_json::to_vec(header).map_err(|e| FrameError::Body(e.to_string()))?;
    let mut body = Vec::with_capacity(4 + head.len() + data.len());
    body.extend_from_slice(&(head.len() as u32).to_le_bytes());
    body.extend_from_slice(&head);
    body.extend_from_slice(data);
    encode(Kind::Bulk, session, &body)
}

/// Splits the body of a bulk frame.
pub fn decode_bulk(body: &[u8]) -> Result<(crate::message::BulkHeader, &[u8]), FrameError> {
    let short = || FrameError::Body("bulk frame is cut short".into());
    let (length, rest) = body.split_first_chunk::<4>().ok_or_else(short)?;
    let (head, data) =
        rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(short)?;
    let header = serde_json::from_slice(head).map_err(|e| FrameError::Body(e.to_string()))?;
    Ok((header, data))
}

/// Whose frames a decoder takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Drop everything up to a frame of this session and kind.
    Seek { session: Option<u64>, kind: Kind },
    /// Every byte must be part of a frame of this session.
    Strict { session: u64 },
}

/// Turns bytes into frames. Holds at most one frame and one read beyond it.
#[derive(Debug)]
pub struct Decoder {
    buffer: Vec<u8>,
    start: usize,
    dropped: u64,
    mode: Mode,
}

impl Decoder {
    /// A decoder of the host side: waits for the [`Kind::HelloReply`] of `session`, then is strict.
    pub fn for_host(session: u64) -> Decoder {
        Decoder::new(Mode::Seek { session: Some(session), kind: Kind::HelloReply })
    }

    /// A decoder of the bulk port: waits for the first bulk frame of `session`, then is strict.
    pub fn for_bulk(session: u64) -> Decoder {
        Decoder::new(Mode::Seek { session: Some(session), kind: Kind::Bulk })
    }

    /// A decoder of the guest side: takes a [`Kind::Hello`] of any session at any time, and
    /// between them only frames of the session of the last one.
    pub fn for_guest() -> Decoder {
        Decoder::new(Mode::Seek { session: None, kind: Kind::Hello })
    }

    fn new(mode: Mode) -> Decoder {
        Decoder { buffer: Vec::new(), start: 0, dropped: 0, mode }
    }

    /// Bytes dropped while seeking.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Adds bytes as they were read.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame, or none until more bytes are pushed.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        loop {
            let parsed = parse(&self.buffer[self.start..]);
            match (self.mode, parsed) {
                (_, Ok(None)) => return Ok(None),
                (Mode::Strict { session }, Ok(Some((frame, length)))) => {
                    self.start += length;
                    if frame.session != session && frame.kind != Kind::Hello {
                        return Err(FrameError::Session { got: frame.session, want: session });
                    }
                    self.mode = Mode::Strict { session: frame.session };
                    return Ok(Some(frame));
                }
                (Mode::Strict { .. }, Err(e)) => return Err(e),
                (Mode::Seek { session, kind }, Ok(Some((frame, length)))) => {
                    self.start += length;
                    if frame.kind == kind && session.is_none_or(|s| s == frame.session) {
                        self.mode = Mode::Strict { session: frame.session };
                        return Ok(Some(frame));
                    }
                    self.drop_bytes(length)?;
                }
                (Mode::Seek { .. }, Err(_)) => {
                    let skip = next_magic(&self.buffer[self.start..]);
                    self.start += skip;
                    self.drop_bytes(skip)?;
                }
            }
        }
    }

    fn drop_bytes(&mut self, count: usize) -> Result<(), FrameError> {
        self.dropped += count as u64;
        if self.dropped > MAX_SEEK { Err(FrameError::Seek) } else { Ok(()) }
    }
}

/// Distance to the next place where a frame may begin, at least 1.
fn next_magic(bytes: &[u8]) -> usize {
    (1..bytes.len())
        .find(|&i| {
            let rest = &bytes[i..];
            let n = rest.len().min(MAGIC.len());
            rest[..n] == MAGIC[..n]
        })
        .unwrap_or(bytes.len())
}

/// One frame at the start of `bytes` and its length, or none while it is incomplete.
fn parse(bytes: &[u8]) -> Result<Option<(Frame, usize)>, FrameError> {
    let seen = bytes.len().min(MAGIC.len());
    if bytes[..seen] != MAGIC[..seen] {
        let mut head = [0; 4];
        head[..seen].copy_from_slice(&bytes[..seen]);
        return Err(FrameError::Magic(head));
    }
    let Some(header) = bytes.first_chunk::<HEADER_LEN>() else { return Ok(None) };
    if header[4] != VERSION {
        return Err(FrameError::Version(header[4]));
    }
    let kind = Kind::from_byte(header[5]).ok_or(FrameError::Kind(header[5]))?;
    let u32_at =
        |i: usize| u32::from_le_bytes([header[i], header[i + 1], header[i + 2], header[i + 3]]);
    let session = u64::from(u32_at(8)) | u64::from(u32_at(12)) << 32;
    let length = u32_at(16) as usize;
    if length > MAX_BODY {
        return Err(FrameError::TooLong(length as u64));
    }
    let Some(body) = bytes.get(HEADER_LEN..HEADER_LEN + length) else { return Ok(None) };
    if crc32fast::hash(body) != u32_at(20) {
        return Err(FrameError::Checksum);
    }
    Ok(Some((Frame { kind, session, body: body.to_vec() }, HEADER_LEN + length)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{BulkHeader, Command, Hello, HelloReply, Request};

    fn reply(session: u64) -> Vec<u8> {
        let reply = HelloReply { agent_version: "0".into(), boottime_ns: 7 };
        encode_json(Kind::HelloReply, session, &reply).unwrap()
    }

    #[test]
    fn frames_survive_any_split() {
        let request = Request { id: 3, command: Command::Topology };
        let mut wire = reply(9);
        wire.extend(encode_json(Kind::Request, 9, &request).unwrap());
        for step in 1..wire.len() {
            let mut decoder = Decoder::for_host(9);
            let mut seen = Vec::new();
            for part in wire.chunks(step) {
                decoder.push(part);
                while let Some(frame) = decoder.next_frame().unwrap() {
                    seen.push(frame);
                }
            }
            assert_eq!(seen.len(), 2, "split at {step}");
            assert_eq!(seen[1].json::<Request>().unwrap(), request);
        }
    }

    #[test]
    fn leftovers_of_the_template_are_dropped() {
        let mut wire = reply(1)[5..].to_vec();
        wire.extend(reply(2));
        wire.extend(b"LABLAF noise LAB");
        wire.extend(reply(3));
        let mut decoder = Decoder::for_host(3);
        decoder.push(&wire);
        assert_eq!(decoder.next_frame().unwrap().unwrap().session, 3);
        assert_eq!(decoder.dropped() as usize, wire.len() - reply(3).len());
        assert_eq!(decoder.next_frame().unwrap(), None);
    }

    #[test]
    fn a_synced_stream_takes_no_garbage() {
        let mut decoder = Decoder::for_host(3);
        decoder.push(&reply(3));
        decoder.next_frame().unwrap().unwrap();
        decoder.push(b"oops");
        assert!(matches!(decoder.next_frame(), Err(FrameError::Magic(_))));
        let mut decoder = Decoder::for_host(3);
        decoder.push(&reply(3));
        decoder.push(&reply(4));
        decoder.next_frame().unwrap().unwrap();
        assert_eq!(decoder.next_frame(), Err(FrameError::Session { got: 4, want: 3 }));
    }

    #[test]
    fn a_guest_follows_the_latest_hello() {
        let hello = Hello { wall_time_ns: 1, rng_seed: [2; 32] };
        let request = Request { id: 1, command: Command::Stats };
        let mut decoder = Decoder::for_guest();
        for session in [5, 6] {
            decoder.push(&encode_json(Kind::Hello, session, &hello).unwrap());
            decoder.push(&encode_json(Kind::Request, session, &request).unwrap());
            assert_eq!(decoder.next_frame().unwrap().unwrap().kind, Kind::Hello);
            assert_eq!(decoder.next_frame().unwrap().unwrap().session, session);
        }
        decoder.push(&encode_json(Kind::Request, 5, &request).unwrap());
        assert!(decoder.next_frame().is_err());
    }

    #[test]
    fn bounds_and_damage_are_errors() {
        assert!(matches!(
            encode(Kind::Bulk, 1, &vec![0; MAX_BODY + 1]),
            Err(FrameError::TooLong(_))
        ));
        for (at, value) in [(4, VERSION + 1), (5, 77), (19, 0xff), (HEADER_LEN, b'x')] {
            let mut wire = reply(3);
            wire.extend(reply(3));
            let second = wire.len() / 2;
            wire[second + at] = value;
            let mut decoder = Decoder::for_host(3);
            decoder.push(&wire);
            decoder.next_frame().unwrap().unwrap();
            assert!(decoder.next_frame().is_err(), "byte {at}");
        }
    }

    #[test]
    fn endless_noise_ends_the_seek() {
        let mut decoder = Decoder::for_host(3);
        let noise = vec![b'L'; 1 << 20];
        let end = (0..20).find_map(|_| {
            decoder.push(&noise);
            decoder.next_frame().err()
        });
        assert_eq!(end, Some(FrameError::Seek));
    }

    #[test]
    fn bulk_round_trip_and_truncation() {
        let header = BulkHeader { name: "fio.json".into(), offset: 0, last: true };
        let wire = encode_bulk(4, &header, b"data").unwrap();
        let mut decoder = Decoder::for_bulk(4);
        decoder.push(&wire);
        let frame = decoder.next_frame().unwrap().unwrap();
        assert_eq!(decode_bulk(&frame.body).unwrap(), (header, &b"data"[..]));
        assert!(decode_bulk(&frame.body[..3]).is_err());
        assert!(decode_bulk(&frame.body[..9]).is_err());
    }
}
