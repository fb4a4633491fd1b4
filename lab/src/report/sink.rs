//! Where a reporter writes.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// The first error of a sink, for whoever ends the run. A reader that went away is none.
#[derive(Debug, Clone, Default)]
pub struct SinkFault(Arc<Mutex<Option<String>>>);

impl SinkFault {
    /// The error, if there was one.
    pub fn text(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, error: &io::Error) {
        if error.kind() != io::ErrorKind::BrokenPipe {
            let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            text.get_or_insert_with(|| error.to_string());
        }
    }
}

/// A writer that is given up after its first error: a closed pipe does not end a run.
pub struct Sink {
    out: Option<Box<dyn Write + Send>>,
    fault: SinkFault,
}

impl Sink {
    /// Writes to `out`.
    pub fn new(out: Box<dyn Write + Send>) -> Sink {
        Sink::watched(out, SinkFault::default())
    }

    /// Writes to `out` and tells `fault` of an error.
    pub fn watched(out: Box<dyn Write + Send>, fault: SinkFault) -> Sink {
        Sink { out: Some(out), fault }
    }

    /// Writes and flushes.
    pub fn text(&mut self, text: &str) {
        let Some(out) = &mut self.out else { return };
        if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            self.fault.set(&error);
            self.out = None;
        }
    }

    /// Writes one line.
    pub fn line(&mut self, line: &str) {
        self.text(&format!("{line}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Broken(io::ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_told_and_a_closed_pipe_is_not() {
        for (kind, told) in [(io::ErrorKind::StorageFull, true), (io::ErrorKind::BrokenPipe, false)]
        {
            let fault = SinkFault::default();
            Sink::watched(Box::new(Broken(kind)), fault.clone()).line("x");
            assert_eq!(fault.text().is_some(), told, "{kind:?}");
        }
    }
}
