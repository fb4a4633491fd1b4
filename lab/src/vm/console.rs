//! The guest's serial console: read without pause, kept within bounds, scanned for faults,
//! watched for markers, and typed to when a kernel that hangs is asked what it does.
//!
//! A guest that prints without end fills neither disk nor memory, and hides no fault by it: the
//! scan sees every byte. What the text means is decided elsewhere (`detect`).

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::console_log::{FAULTS_MAX, HEAD_MAX, Log, TAIL_MAX};
use crate::detect::{Fault, MAX_FAULTS, Scan};
use crate::host::capture::Capture;

/// Most bytes in `console.log`; of a longer console its head, the lines of faults and its tail.
pub const FILE_MAX: u64 = (HEAD_MAX + FAULTS_MAX + TAIL_MAX) as u64 + 200;

/// Bytes of the head and of the tail kept in memory, each.
pub const TEXT_MAX: usize = 4 << 20;

/// Longer lines are matched in pieces of this many bytes.
const LINE_MAX: usize = 8 << 10;

/// Longest marker, bytes.
const MARKER_MAX: usize = 64;

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
    scan: Scan,
    /// Faults of what was cut off.
    earlier: Vec<Fault>,
    total: u64,
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
        let mut log = Log::create(log)?;
        let shared = Arc::new(Mutex::new(State {
            capture: Capture::new(TEXT_MAX, TEXT_MAX),
            scan: Scan::default(),
            earlier: Vec::new(),
            total: 0,
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
            let faults = lock(&state).end();
            log.end(&faults);
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
        std::mem::replace(&mut lock(&self.shared).capture, fresh).text()
    }

    /// The faults in everything that was printed since the last [`Console::cut_faults`], kept
    /// or not.
    pub fn faults(&self) -> Vec<Fault> {
        lock(&self.shared).scan.faults()
    }

    /// As [`Console::faults`], and begins anew. With the number of lines that were scanned.
    pub fn cut_faults(&self) -> (Vec<Fault>, usize) {
        let mut state = lock(&self.shared);
        let scan = std::mem::take(&mut state.scan);
        let faults = scan.faults();
        state.earlier.extend(faults.iter().cloned());
        state.earlier.truncate(MAX_FAULTS);
        (faults, scan.lines())
    }

    /// The scan as it stands: that of a console which goes on where this one ended.
    pub fn scan(&self) -> Scan {
        lock(&self.shared).scan.clone()
    }

    /// Takes `scan` for what was printed before, by a guest of which this one is a clone. To be
    /// called before it runs.
    pub fn go_on_from(&self, scan: Scan) {
        lock(&self.shared).scan = scan;
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
        self.scan.push(bytes);
        self.total += bytes.len() as u64;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.line_done();
            } else if self.line.len() > LINE_MAX {
                // A marker may be on both sides of where a long line is divided.
                let overlap = self.line[self.line.len() - MARKER_MAX..].to_vec();
                self.line_done();
                self.line = overlap;
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

    /// Ends the waits; gives the faults of all that was printed.
    fn end(&mut self) -> Vec<Fault> {
        self.line_done();
        self.ended = true;
        self.waiters.clear();
        let mut faults = std::mem::take(&mut self.earlier);
        faults.extend(self.scan.faults());
        faults
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
        assert!((HEAD_MAX as u64..FILE_MAX).contains(&size), "{size}");
        let text = console.text();
        assert!(text.len() < 2 * TEXT_MAX + 100 && text.ends_with("\nthe end\n"));
    }

    #[tokio::test]
    async fn a_fault_in_the_middle_of_a_flood_is_found_and_kept() {
        let (console, mut guest, dir) = pair();
        let noise = format!("{}\n", "noise ".repeat(10_000)).repeat(16);
        let half = (52 << 20) / noise.len();
        for _ in 0..half {
            guest.write_all(noise.as_bytes()).await.unwrap();
        }
        guest.write_all(b"[    2.000000] Kernel panic - not syncing: lost?\n").await.unwrap();
        for _ in 0..half {
            guest.write_all(noise.as_bytes()).await.unwrap();
        }
        drop(guest);
        assert!(console.drained(LONG).await);
        assert!(console.total() > 99 << 20);
        let faults = console.faults();
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].first_line, half * 16 + 1);
        assert!(!console.text().contains("lost?"), "beyond what is kept");
        let log = std::fs::read_to_string(dir.path().join("console.log")).unwrap();
        assert!(log.contains("[lab: fault at line") && log.contains("not syncing: lost?"));
        assert!(log.ends_with(&noise[noise.len() - 1000..]) && log.len() as u64 <= FILE_MAX);
    }

    #[tokio::test]
    async fn a_marker_is_found_wherever_a_line_without_an_end_is_divided() {
        for shift in 0..MARKER_MAX {
            let (console, mut guest, _dir) = pair();
            let before = "x".repeat(LINE_MAX - MARKER_MAX + shift);
            guest.write_all(format!("{before}lab-end-0123456789abcdef").as_bytes()).await.unwrap();
            guest.write_all(&[b'y'; LINE_MAX]).await.unwrap();
            assert!(console.wait_for("lab-end-0123456789abcdef", LONG).await.is_ok(), "{shift}");
        }
    }

    #[tokio::test]
    async fn faults_are_told_by_the_cut_and_those_of_a_clone_go_on_from_its_template() {
        let (console, mut guest, _dir) = pair();
        guest.write_all(b"[    1.000000] Kernel panic - not syncing: a\nx lab-a\n").await.unwrap();
        console.wait_for("lab-a", LONG).await.unwrap();
        let (clone, mut cloned, _dir) = pair();
        clone.go_on_from(console.scan());
        cloned.write_all(b"[    2.000000] Kernel panic - not syncing: b\nlab-b\n").await.unwrap();
        clone.wait_for("lab-b", LONG).await.unwrap();
        let lines: Vec<_> = clone.faults().iter().map(|f| f.first_line).collect();
        assert_eq!(lines, [1, 3]);
        let (faults, lines) = console.cut_faults();
        assert_eq!((faults.len(), lines, console.faults().len()), (1, 2, 0));
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
