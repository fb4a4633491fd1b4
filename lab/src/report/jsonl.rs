//! The record itself, as it is written.

use super::reporter::Reporter;
use super::sink::Sink;
use crate::run::events::Record;

/// Streams the lines of `events.jsonl`.
pub struct Jsonl {
    sink: Sink,
}

impl Jsonl {
    /// Streams to `sink`.
    pub fn new(sink: Sink) -> Jsonl {
        Jsonl { sink }
    }
}

impl Reporter for Jsonl {
    fn on(&mut self, record: &Record) {
        // A record without a line was refused by the log too, which tells of it.
        if let Ok(line) = record.to_line() {
            self.sink.line(&line);
        }
    }

    fn finish(&mut self) {}
}
