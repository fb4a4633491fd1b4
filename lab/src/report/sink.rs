//! Where a reporter writes.

use std::io::Write;

/// A writer that is given up after its first error: a closed pipe does not end a run.
pub struct Sink {
    out: Option<Box<dyn Write + Send>>,
}

impl Sink {
    /// Writes to `out`.
    pub fn new(out: Box<dyn Write + Send>) -> Sink {
        Sink { out: Some(out) }
    }

    /// Writes and flushes.
    pub fn text(&mut self, text: &str) {
        let Some(out) = &mut self.out else { return };
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
            self.out = None;
        }
    }

    /// Writes one line.
    pub fn line(&mut self, line: &str) {
        self.text(&format!("{line}\n"));
    }
}
