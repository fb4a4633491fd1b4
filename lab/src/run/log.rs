//! The writer of `events.jsonl`: append, flush, and where proof is needed, fsync.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};

use super::events::{Event, Record};
use crate::kernel::recipe::Patch;
use crate::report::Reporter;

/// Name of the log in a run directory.
pub const FILE: &str = "events.jsonl";

/// The log of one run and everybody who watches it. Shared by reference between tasks.
pub struct EventLog {
    inner: Mutex<Inner>,
}

struct Inner {
    file: File,
    reporters: Vec<Box<dyn Reporter>>,
}

impl EventLog {
    /// Starts the log of the run directory `dir`.
    ///
    /// Errors when the directory has a log already: no two runs share one.
    pub fn create(dir: &Path) -> io::Result<EventLog> {
        let file = OpenOptions::new().append(true).create_new(true).open(dir.join(FILE))?;
        EventLog::of(file)
    }

    /// Goes on with the log of a run that was cut off. A torn last line is cut away: what it
    /// was to tell did not happen as far as the record goes.
    ///
    /// Errors: there is none, or another process still writes it
    /// ([`WouldBlock`](io::ErrorKind::WouldBlock)).
    pub fn resume(dir: &Path) -> io::Result<EventLog> {
        let path = dir.join(FILE);
        let file = OpenOptions::new().append(true).open(&path)?;
        let log = EventLog::of(file)?;
        mend(&path, &log.lock().file)?;
        Ok(log)
    }

    /// The lock says that the run is going on; it goes away with the process.
    fn of(file: File) -> io::Result<EventLog> {
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(EventLog { inner: Mutex::new(Inner { file, reporters: Vec::new() }) })
    }

    /// Adds a reporter; it sees every event from now on.
    pub fn with_reporter(self, reporter: Box<dyn Reporter>) -> EventLog {
        self.lock().reporters.push(reporter);
        self
    }

    /// Writes one event and shows it to the reporters, in one order for all of them.
    ///
    /// `run_*`, `case_started` and `case_finished` are on disk when this returns. Reporters see
    /// the event also when the file could not be written; the error is then the caller's.
    pub fn emit(&self, event: Event) -> io::Result<()> {
        let mut inner = self.lock();
        let record = Record { time: now(), event };
        let written = inner.write(&record);
        for reporter in &mut inner.reporters {
            reporter.on(&record);
        }
        written
    }

    /// Lets every reporter write what it keeps for the end.
    pub fn finish(&self) {
        for reporter in &mut self.lock().reporters {
            reporter.finish();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        // A reporter that panicked must not take the record with it.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the log with a whole line: one that lacks only its end gets it, any other goes.
fn mend(path: &Path, mut file: &File) -> io::Result<()> {
    let log = std::fs::read(path)?;
    let whole = log.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let rest = &log[whole..];
    if rest.is_empty() {
        return Ok(());
    }
    match Record::from_line(rest) {
        Ok(_) => file.write_all(b"\n")?,
        Err(_) => file.set_len(whole as u64)?,
    }
    file.sync_data()
}

impl Inner {
    fn write(&mut self, record: &Record) -> io::Result<()> {
        let mut line = record.to_line().map_err(io::Error::other)?;
        line.push('\n');
        // One write, so that a kill tears at most the last line.
        self.file.write_all(line.as_bytes())?;
        if is_proof(&record.event) { self.file.sync_data() } else { Ok(()) }
    }
}

/// Whether an event must be on disk before what it tells of may go on.
fn is_proof(event: &Event) -> bool {
    matches!(
        event,
        Event::RunStarted { .. }
            | Event::CaseStarted { .. }
            | Event::CaseFinished { .. }
            | Event::RunFinished { .. }
    )
}

/// The present, RFC 3339 with milliseconds, UTC.
fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// Copies patches into a directory of a record, which needs nothing else to be run again.
pub(super) fn keep_patches(dir: &Path, patches: &[Patch]) -> io::Result<()> {
    std::fs::create_dir_all(dir)?;
    for patch in patches {
        let name = Path::new(&patch.name).file_name().unwrap_or_default();
        std::fs::write(dir.join(name), &patch.text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::run::{samples, wire};

    struct Tape(Arc<Mutex<Vec<Record>>>);

    impl Reporter for Tape {
        fn on(&mut self, record: &Record) {
            self.0.lock().unwrap().push(record.clone());
        }
        fn finish(&mut self) {}
    }

    #[test]
    fn file_and_reporters_see_the_same_records() {
        let dir = tempfile::tempdir().unwrap();
        let tape = Arc::new(Mutex::new(Vec::new()));
        let log = EventLog::create(dir.path()).unwrap();
        let log = log.with_reporter(Box::new(Tape(tape.clone())));
        for record in samples::one_of_each() {
            log.emit(record.event).unwrap();
        }
        let (records, torn) = wire::read(&std::fs::read(dir.path().join(FILE)).unwrap());
        assert_eq!(torn, None);
        assert_eq!(records, *tape.lock().unwrap());
        let events: Vec<_> = records.into_iter().map(|r| r.event).collect();
        let given: Vec<_> = samples::one_of_each().into_iter().map(|r| r.event).collect();
        assert_eq!(events, given);
    }

    #[test]
    fn a_run_directory_has_one_log() {
        let dir = tempfile::tempdir().unwrap();
        let _log = EventLog::create(dir.path()).unwrap();
        assert!(EventLog::create(dir.path()).is_err());
    }

    #[test]
    fn a_log_goes_on_behind_its_last_whole_line() {
        let line = |n| samples::planned(&format!("k/t/{n}")).to_line().unwrap();
        for (rest, kept) in [
            (String::new(), 1),
            (line(2)[..30].to_string(), 1),
            (line(2), 2),
            ("\0\0\0".to_string(), 1),
        ] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join(FILE), line(1) + "\n" + &rest).unwrap();
            let log = EventLog::resume(dir.path()).unwrap();
            log.emit(Event::Note { text: "on".into() }).unwrap();
            let (records, torn) = wire::read(&std::fs::read(dir.path().join(FILE)).unwrap());
            assert_eq!((records.len(), torn), (kept + 1, None), "{rest}");
        }
    }

    #[test]
    fn a_run_that_goes_on_is_not_resumed() {
        let dir = tempfile::tempdir().unwrap();
        let first = EventLog::create(dir.path()).unwrap();
        let error = EventLog::resume(dir.path()).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        drop(first);
        EventLog::resume(dir.path()).unwrap();
        assert!(EventLog::resume(&dir.path().join("none")).is_err());
    }

    #[test]
    fn times_have_milliseconds_and_are_utc() {
        let time = now();
        assert_eq!(time.len(), "2026-01-02T03:04:05.678Z".len());
        assert!(time.ends_with('Z') && time.as_bytes()[19] == b'.', "{time}");
    }
}
