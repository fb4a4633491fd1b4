//! Tracepoint fuse_request_send in a tracing instance of its own.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::PathBuf;

const INSTANCES: &str = "/sys/kernel/tracing/instances";

/// Largest trace taken, bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Ring buffer per CPU, KiB: room for some thousand requests.
const BUFFER_KIB: &str = "512";

/// One request as the kernel traced it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    /// Thread that submitted.
    pub(super) tid: u32,
    /// CPU it ran on.
    pub(super) cpu: u32,
    /// Device number of the connection; its minor is the fusectl name.
    pub(super) connection: u32,
    /// Request id.
    pub(super) unique: u64,
}

/// A running trace of one connection. Dropping it ends it.
pub(super) struct Trace {
    instance: PathBuf,
}

impl Trace {
    /// Starts tracing the requests of `connection`.
    pub(super) fn start(connection: u32) -> io::Result<Trace> {
        let instance = PathBuf::from(INSTANCES).join(format!("lab-{connection}"));
        fs::create_dir(&instance)?;
        let trace = Trace { instance };
        trace.write("buffer_size_kb", BUFFER_KIB)?;
        let event = "events/fuse/fuse_request_send";
        trace.write(&format!("{event}/filter"), &format!("connection == {connection}"))?;
        trace.write(&format!("{event}/enable"), "1")?;
        Ok(trace)
    }

    fn write(&self, name: &str, value: &str) -> io::Result<()> {
        fs::write(self.instance.join(name), value)
    }

    /// Everything traced so far.
    pub(super) fn read(&self) -> io::Result<Vec<Sent>> {
        let mut text = Vec::new();
        File::open(self.instance.join("trace"))?.take(MAX_BYTES).read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).lines().filter_map(parse).collect())
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = self.write("events/fuse/fuse_request_send/enable", "0");
        let _ = fs::remove_dir(&self.instance);
    }
}

/// Parses a line such as
/// `  name-123  [002] .....  12.345678: fuse_request_send: connection 40 req 8 opcode 1 (X) len 52`.
/// The name may hold blanks, dashes and brackets, so the fields are found from the right.
fn parse(line: &str) -> Option<Sent> {
    let (head, event) = line.rsplit_once(": fuse_request_send: ")?;
    let (task, rest) = head.rsplit_once(" [")?;
    let cpu = rest.split_once(']')?.0.parse().ok()?;
    let tid = task.trim_end().rsplit_once('-')?.1.parse().ok()?;
    let mut words = event.split_whitespace();
    let mut after = |name: &str| words.by_ref().find(|word| *word == name).and(words.next());
    let connection = after("connection")?.parse().ok()?;
    let unique = after("req")?.parse().ok()?;
    Some(Sent { tid, cpu, connection, unique })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_lines() {
        let line = "     a b-c-123     [002] .....    12.345678: fuse_request_send: \
                    connection 40 req 8 opcode 1 (FUSE_LOOKUP) len 52 ";
        assert_eq!(parse(line), Some(Sent { tid: 123, cpu: 2, connection: 40, unique: 8 }));
    }

    #[test]
    fn other_lines_are_passed_over() {
        for line in ["# tracer: nop", "", "x-1 [000] ..... 1.0: fuse_request_end: connection 1"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
