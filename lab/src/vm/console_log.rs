//! The file of a console: its head as it comes, and at the end what makes up for the middle of a
//! console that was too long: the lines of every fault in it, and its tail.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use crate::detect::Fault;
use crate::host::capture::Capture;

/// Most bytes of the head.
pub(super) const HEAD_MAX: usize = 32 << 20;

/// Most bytes of the tail, where there is more than the head.
pub(super) const TAIL_MAX: usize = 1 << 20;

/// Most bytes of the lines of faults.
pub(super) const FAULTS_MAX: usize = 2 << 20;

#[derive(Debug)]
pub(super) struct Log {
    file: File,
    left: usize,
    tail: Capture,
}

impl Log {
    /// Errors: the file cannot be made.
    pub(super) fn create(path: &Path) -> std::io::Result<Log> {
        let file = File::create(path)?;
        Ok(Log { file, left: HEAD_MAX, tail: Capture::new(0, TAIL_MAX) })
    }

    /// Writes what the bound allows. A file that cannot be written does not stop the reader:
    /// what is scanned is what is judged.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(self.left));
        self.left -= head.len();
        let _ = self.file.write_all(head);
        self.tail.push(rest);
    }

    /// Writes the end, where the head is not all of it.
    pub(super) fn end(&mut self, faults: &[Fault]) {
        if self.tail.total() == 0 {
            return;
        }
        let mut text = format!("\n[lab: {} bytes not kept]\n", self.tail.lost()).into_bytes();
        for fault in faults {
            let lines = format!(
                "[lab: fault at line {}: {}]\n{}\n",
                fault.first_line,
                fault.title,
                fault.lines.join("\n")
            );
            if text.len() + lines.len() <= FAULTS_MAX {
                text.extend_from_slice(lines.as_bytes());
            }
        }
        text.extend_from_slice(b"[lab: the end of the console]\n");
        text.extend(self.tail.last(TAIL_MAX));
        let _ = self.file.write_all(&text);
    }
}
