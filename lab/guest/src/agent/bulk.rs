//! Artifacts to the host, in chunks on their own port. Writes block: that is the back-pressure.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lab_proto::BULK_PORT;
use lab_proto::frame::{self, BULK_CHUNK};
use lab_proto::message::BulkHeader;

use super::port;

/// How long the port may take to appear.
const PORT_LIMIT: Duration = Duration::from_secs(2);

/// Largest artifact, bytes.
const MAX_ARTIFACT: u64 = 64 << 20;

/// The bulk port, opened when the first artifact is sent.
#[derive(Default)]
pub(crate) struct Bulk {
    port: Mutex<Option<File>>,
}

impl Bulk {
    /// Sends a file as artifact `name`, at most 64 MiB of it; returns the bytes sent.
    ///
    /// # Errors
    /// `NotFound` without a port, else what reading and writing say.
    pub(crate) fn send(&self, session: u64, name: &str, path: &Path) -> io::Result<u64> {
        let mut slot = self.port.lock().unwrap_or_else(PoisonError::into_inner);
        let port = match &mut *slot {
            Some(port) => port,
            none => none.insert(port::open(BULK_PORT, PORT_LIMIT)?),
        };
        write_chunks(session, name, &mut File::open(path)?.take(MAX_ARTIFACT), port)
    }
}

fn write_chunks(
    session: u64,
    name: &str,
    source: &mut impl Read,
    port: &mut impl Write,
) -> io::Result<u64> {
    let mut offset = 0;
    let mut chunk = read_chunk(source)?;
    loop {
        let next = read_chunk(source)?;
        let header = BulkHeader { name: name.to_owned(), offset, last: next.is_empty() };
        let bytes = frame::encode_bulk(session, &header, &chunk)
            .map_err(|e| io::Error::other(e.to_string()))?;
        port.write_all(&bytes)?;
        offset += chunk.len() as u64;
        if header.last {
            return Ok(offset);
        }
        chunk = next;
    }
}

fn read_chunk(source: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut chunk = Vec::new();
    source.take(BULK_CHUNK as u64).read_to_end(&mut chunk)?;
    Ok(chunk)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab_proto::frame::{Decoder, decode_bulk};

    fn sent(bytes: &[u8]) -> Vec<(u64, bool, usize)> {
        let mut wire = Vec::new();
        assert_eq!(write_chunks(4, "a", &mut &bytes[..], &mut wire).unwrap(), bytes.len() as u64);
        let mut decoder = Decoder::for_bulk(4);
        decoder.push(&wire);
        let mut seen = Vec::new();
        while let Some(frame) = decoder.next_frame().unwrap() {
            let (header, data) = decode_bulk(&frame.body).unwrap();
            seen.push((header.offset, header.last, data.len()));
        }
        seen
    }

    #[test]
    fn the_last_chunk_is_flagged() {
        assert_eq!(sent(b""), [(0, true, 0)]);
        assert_eq!(sent(b"abc"), [(0, true, 3)]);
        assert_eq!(sent(&vec![0; BULK_CHUNK]), [(0, true, BULK_CHUNK)]);
        let big = vec![7; BULK_CHUNK + 1];
        assert_eq!(sent(&big), [(0, false, BULK_CHUNK), (BULK_CHUNK as u64, true, 1)]);
    }
}
