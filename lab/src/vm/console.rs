//! The guest's serial console: read without pause, kept within bounds, watched for markers, and
//! typed to when a kernel that hangs is asked what it does.
//!
//! A guest that prints without end fills neither disk nor memory, and QEMU never waits for
//! the lab to read. What the text means is decided elsewhere (`detect`).

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::host::capture::Capture;

/// Most bytes in `console.log`; one line at its end tells that there was more.
pub const FILE_MAX: u64 = 32 << 20;

/// Bytes of the head and of the tail kept in memory for detection, each.
pub const TEXT_MAX: usize = 4 << 20;

/// Longer lines are matched in pieces of this many bytes.
const LINE_MAX: usize = 8 << 10;

/// Lines before the registration of a marker that are matched, too.
const RECENT: usize = 2048;

/// How often a console is looked at that is to be quiet.
const QUIET_POLL: Duration = Duration::from_millis(50);

/// Why a marker was not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MarkerError {
    /// The console ended first.
    #[error("the console ended before the marker")]
    End,
    /// Not within the limit.
    #[error("no marker on the console after {0} ms")]
    Timeout(u128),
}

/// A console that is being read.
#[derive(Debug)]
pub struct Console {
    shared: Arc<Mutex<State>>,
    writer: tokio::sync::Mutex<OwnedWriteHalf>,
    ended: watch::Receiver<bool>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct State {
    capture: Capture,
    total: u64,
    lost_bytes: u64,
    line: Vec<u8>,
    recent: VecDeque<String>,
    waiters: Vec<Waiter>,
    ended: bool,
}

#[derive(Debug)]
struct Waiter {
    marker: String,
    tell: oneshot::Sender<String>,
}

impl Console {
    /// Reads `stream` to its end, into the file `log` as well. Errors: the file cannot be made.
    pub fn follow(stream: UnixStream, log: &Path) -> std::io::Result<Console> {
        let mut log = Log { file: File::create(log)?, left: FILE_MAX };
        let shared = Arc::new(Mutex::new(State {
            capture: Capture::new(TEXT_MAX, TEXT_MAX),
            total: 0,
            lost_bytes: 0,
            line: Vec::new(),
            recent: VecDeque::new(),
            waiters: Vec::new(),
            ended: false,
        }));
        let (tell, ended) = watch::channel(false);
        let (stream, writer) = stream.into_split();
        let state = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            read_all(stream, &mut log, &state).await;
            lock(&state).end();
            let _ = tell.send(true);
        });
        Ok(Console { shared, writer: writer.into(), ended, task })
    }

    /// What was printed since the last cut, as kept: see [`TEXT_MAX`].
    pub fn text(&self) -> String {
        lock(&self.shared).capture.text()
    }

    /// As [`Console::text`], and begins anew: what comes later is told apart from it.
    pub fn cut(&self) -> String {
        let fresh = Capture::new(TEXT_MAX, TEXT_MAX);
        let mut state = lock(&self.shared);
        let old = std::mem::replace(&mut state.capture, fresh);
        state.lost_bytes += old.lost();
        old.text()
    }

    /// Types into the console, at most `limit`. Errors: QEMU does not take it.
    pub async fn type_in(&self, bytes: &[u8], limit: Duration) -> std::io::Result<()> {
        let write = async { self.writer.lock().await.write_all(bytes).await };
        tokio::time::timeout(limit, write).await.map_err(std::io::Error::from)?
    }

    /// Waits until nothing was printed for `pause`, at most `limit`; whether it came to that.
    pub async fn quiet(&self, pause: Duration, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let (mut total, mut since) = (self.total(), Instant::now());
        while Instant::now() < deadline {
            tokio::time::sleep(QUIET_POLL.min(pause)).await;
            let now = self.total();
            if now != total {
                (total, since) = (now, Instant::now());
            } else if since.elapsed() >= pause {
                return true;
            }
        }
        false
    }

    /// Bytes that are missing from [`Console::text`].
    pub fn lost_bytes(&self) -> u64 {
        let state = lock(&self.shared);
        state.lost_bytes + state.capture.lost()
    }

    /// Bytes printed so far.
    pub fn total(&self) -> u64 {
        lock(&self.shared).total
    }

    /// Waits for a line that contains `marker`, at most `limit`; one of the latest lines
    /// before the call counts, too. Gives the line.
    pub async fn wait_for(&self, marker: &str, limit: Duration) -> Result<String, MarkerError> {
        let line = lock(&self.shared).watch(marker);
        match tokio::time::timeout(limit, line).await {
            Ok(line) => line.map_err(|_| MarkerError::End),
            Err(_) => Err(MarkerError::Timeout(limit.as_millis())),
        }
    }

    /// Waits until QEMU closed the console, at most `limit`; whether it did.
    pub async fn drained(&self, limit: Duration) -> bool {
        let mut ended = self.ended.clone();
        tokio::time::timeout(limit, ended.wait_for(|ended| *ended)).await.is_ok()
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn watch(&mut self, marker: &str) -> oneshot::Receiver<String> {
        let (tell, line) = oneshot::channel();
        self.waiters.retain(|waiter| !waiter.tell.is_closed());
        let seen = self.recent.iter().find(|line| line.contains(marker));
        if let Some(seen) = seen {
            let _ = tell.send(seen.clone());
        } else if !self.ended {
            self.waiters.push(Waiter { marker: marker.into(), tell });
        }
        line
    }

    fn push(&mut self, bytes: &[u8]) {
        self.capture.push(bytes);
        self.total += bytes.len() as u64;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.line.len() > LINE_MAX {
                self.line_done();
            }
        }
    }

    fn line_done(&mut self) {
        let line = String::from_utf8_lossy(self.line.trim_ascii_end()).into_owned();
        self.line.clear();
        for waiter in self.waiters.extract_if(.., |waiter| line.contains(&waiter.marker)) {
            let _ = waiter.tell.send(line.clone());
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(line);
    }

    fn end(&mut self) {
        self.line_done();
        self.ended = true;
        self.waiters.clear();
    }
}

struct Log {
    file: File,
    left: u64,
}

impl Log {
    /// Writes what the bound allows. A file that cannot be written does not stop the reader:
    /// the text in memory is what is judged.
    fn push(&mut self, bytes: &[u8]) {
        if self.left == 0 {
            return;
        }
        let part = &bytes[..bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX))];
        self.left -= part.len() as u64;
        let _ = self.file.write_all(part);
        if self.left == 0 {
            let _ = self.file.write_all(b"\n[lab: the console went on, not kept]\n");
        }
    }
}

async fn read_all(mut stream: OwnedReadHalf, log: &mut Log, state: &Mutex<State>) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        log.push(&buffer[..count]);
        lock(state).push(&buffer[..count]);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    const LONG: Duration = Duration::from_secs(10);

    fn pair() -> (Console, UnixStream, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Console::follow(ours, &dir.path().join("console.log")).unwrap(), theirs, dir)
    }

    #[tokio::test]
    async fn a_marker_is_found_across_reads_and_before_the_call() {
        let (console, mut guest, _dir) = pair();
        guest.write_all(b"[1.0] lab-ma").await.unwrap();
        let later = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            guest.write_all(b"rk-7 end\r\nmore").await.unwrap();
        };
        let (line, ()) = tokio::join!(console.wait_for("lab-mark-7", LONG), later);
        assert_eq!(line.unwrap(), "[1.0] lab-mark-7 end");
        assert_eq!(console.wait_for("mark-7", LONG).await.unwrap(), "[1.0] lab-mark-7 end");
        let error = console.wait_for("mark-8", Duration::from_millis(20)).await.unwrap_err();
        assert_eq!(error, MarkerError::Timeout(20));
    }

    #[tokio::test]
    async fn the_end_of_the_console_ends_the_wait() {
        let (console, guest, _dir) = pair();
        let close = async move { drop(guest) };
        let (line, ()) = tokio::join!(console.wait_for("never", LONG), close);
        assert_eq!(line.unwrap_err(), MarkerError::End);
        assert!(console.drained(LONG).await);
        assert_eq!(console.wait_for("never", LONG).await.unwrap_err(), MarkerError::End);
    }

    #[tokio::test]
    async fn an_endless_console_fills_neither_disk_nor_memory() {
        let (console, mut guest, dir) = pair();
        let noise = vec![b'x'; 1 << 20];
        for _ in 0..40 {
            guest.write_all(&noise).await.unwrap();
        }
        guest.write_all(b"\nthe end\n").await.unwrap();
        drop(guest);
        assert!(console.drained(LONG).await);
        let size = dir.path().join("console.log").metadata().unwrap().len();
        assert!((FILE_MAX..FILE_MAX + 100).contains(&size), "{size}");
        let text = console.text();
        assert!(text.len() < 2 * TEXT_MAX + 100 && text.ends_with("\nthe end\n"));
    }

    #[tokio::test]
    async fn a_cut_tells_what_came_before_it_from_what_came_after() {
        let (console, mut guest, _dir) = pair();
        guest.write_all(b"before lab-a\n").await.unwrap();
        console.wait_for("lab-a", LONG).await.unwrap();
        assert_eq!(console.cut(), "before lab-a\n");
        guest.write_all(b"after lab-b\n").await.unwrap();
        console.wait_for("lab-b", LONG).await.unwrap();
        assert_eq!(console.text(), "after lab-b\n");
        assert_eq!(console.total(), 25);
        assert!(console.wait_for("lab-a", LONG).await.is_ok(), "markers outlive a cut");
    }

    #[tokio::test]
    async fn what_is_typed_arrives() {
        let (console, mut guest, _dir) = pair();
        console.type_in(b"w", LONG).await.unwrap();
        let mut key = [0];
        guest.read_exact(&mut key).await.unwrap();
        assert_eq!(&key, b"w");
    }

    #[tokio::test]
    async fn a_console_is_quiet_when_nothing_comes_for_the_pause() {
        let (console, mut guest, _dir) = pair();
        let short = Duration::from_millis(60);
        assert!(console.quiet(short, LONG).await);
        let noise = tokio::spawn(async move { while guest.write_all(b"x\n").await.is_ok() {} });
        assert!(!console.quiet(short, Duration::from_millis(300)).await);
        noise.abort();
    }
}
