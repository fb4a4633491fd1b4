//! Artifacts: files that the guest sends over the bulk port.
//!
//! Names, offsets and sizes are checked before a byte is written; a file is always new, so a
//! guest can neither follow a link nor change what is there. The first broken rule ends the
//! reception, and every waiter is told.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lab_proto::frame::{Decoder, decode_bulk};
use lab_proto::message::BulkHeader;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Limits on what one session may leave on the host's disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of one artifact.
    pub artifact_bytes: u64,
    /// Bytes of all of them.
    pub total_bytes: u64,
    /// Number of them.
    pub count: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { artifact_bytes: 64 << 20, total_bytes: 256 << 20, count: 256 }
    }
}

/// Which rule an artifact broke.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArtifactError {
    /// Not `[a-z0-9][a-z0-9._-]{0,63}`.
    #[error("the guest sent an artifact with a refused name")]
    Name,
    /// A chunk is not where the one before it ended, or comes after the last.
    #[error("artifact {name}: chunk at {got}, expected at {want}")]
    Offset {
        /// Artifact.
        name: String,
        /// Offset of the chunk, bytes.
        got: u64,
        /// Where it belongs, bytes.
        want: u64,
    },
    /// More than [`Bounds`] allow.
    #[error("artifact {name}: over the bound of {what}")]
    TooMuch {
        /// Artifact.
        name: String,
        /// Which bound.
        what: &'static str,
    },
    /// The bulk port did not carry frames.
    #[error("the bulk port carried garbage: {0}")]
    Garbage(String),
    /// The bulk port ended before the artifact was whole.
    #[error("the bulk port ended")]
    End,
    /// The host could not write it.
    #[error("artifact cannot be written: {0}")]
    Io(String),
}

/// Whether the host takes an artifact of this name.
pub fn valid_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    (1..=64).contains(&bytes.len())
        && plain(bytes[0])
        && bytes.iter().all(|byte| plain(*byte) || b"._-".contains(byte))
}

/// Receives artifacts until the port ends or a rule is broken.
#[derive(Debug)]
pub(super) struct Receiver {
    dir: Arc<PathBuf>,
    state: watch::Receiver<Progress>,
    task: JoinHandle<()>,
}

/// What waiters may know.
#[derive(Debug, Clone, Default)]
struct Progress {
    whole: Vec<String>,
    end: Option<ArtifactError>,
}

impl Receiver {
    /// Makes `dir` and receives into it.
    pub(super) fn start(
        bulk: UnixStream,
        session: u64,
        dir: &Path,
        bounds: Bounds,
    ) -> Result<Receiver, ArtifactError> {
        std::fs::create_dir_all(dir).map_err(io)?;
        let dir = Arc::new(dir.to_path_buf());
        let (tell, state) = watch::channel(Progress::default());
        let mut store = Store { dir: Arc::clone(&dir), bounds, total: 0, files: HashMap::new() };
        let task = tokio::spawn(async move {
            let end = receive(bulk, session, &mut store, &tell).await;
            tell.send_modify(|progress| progress.end = Some(end));
        });
        Ok(Receiver { dir, state, task })
    }

    /// Waits until the artifact is whole and gives its file.
    pub(super) async fn complete(&self, name: &str) -> Result<PathBuf, ArtifactError> {
        let mut state = self.state.clone();
        let whole = |progress: &Progress| progress.whole.iter().any(|known| known == name);
        let known = state.wait_for(|progress| whole(progress) || progress.end.is_some()).await;
        match known {
            Ok(progress) if whole(&progress) => Ok(self.dir.join(name)),
            Ok(progress) => Err(progress.end.clone().unwrap_or(ArtifactError::End)),
            Err(_) => Err(ArtifactError::End),
        }
    }
}

impl Receiver {
    /// Returns when an artifact broke a rule; that the port ended is none.
    pub(super) async fn broken(&self) -> ArtifactError {
        let mut state = self.state.clone();
        let broke =
            |end: &Option<ArtifactError>| end.as_ref().is_some_and(|e| *e != ArtifactError::End);
        if let Ok(progress) = state.wait_for(|progress| broke(&progress.end)).await
            && let Some(error) = &progress.end
        {
            return error.clone();
        }
        std::future::pending().await
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[allow(clippy::needless_pass_by_value)] // as a function given to map_err
fn io(error: std::io::Error) -> ArtifactError {
    ArtifactError::Io(error.to_string())
}

async fn receive(
    mut bulk: UnixStream,
    session: u64,
    store: &mut Store,
    tell: &watch::Sender<Progress>,
) -> ArtifactError {
    let mut decoder = Decoder::for_bulk(session);
    let mut buffer = vec![0; 64 << 10];
    loop {
        match bulk.read(&mut buffer).await {
            Ok(0) => return ArtifactError::End,
            Ok(count) => decoder.push(&buffer[..count]),
            Err(e) => return ArtifactError::Garbage(e.to_string()),
        }
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => match take(store, &frame.body) {
                    Ok(Some(name)) => tell.send_modify(|progress| progress.whole.push(name)),
                    Ok(None) => {}
                    Err(e) => return e,
                },
                Ok(None) => break,
                Err(e) => return ArtifactError::Garbage(e.to_string()),
            }
        }
    }
}

fn take(store: &mut Store, body: &[u8]) -> Result<Option<String>, ArtifactError> {
    let (header, data) = decode_bulk(body).map_err(|e| ArtifactError::Garbage(e.to_string()))?;
    store.chunk(header, data)
}

struct Store {
    dir: Arc<PathBuf>,
    bounds: Bounds,
    total: u64,
    files: HashMap<String, Entry>,
}

struct Entry {
    /// Absent once the artifact is whole.
    file: Option<File>,
    next: u64,
}

impl Store {
    /// Writes a chunk; gives the name when the artifact is whole.
    fn chunk(&mut self, header: BulkHeader, data: &[u8]) -> Result<Option<String>, ArtifactError> {
        let BulkHeader { name, offset, last } = header;
        if !valid_name(&name) {
            return Err(ArtifactError::Name);
        }
        self.admit(&name, offset, data.len() as u64)?;
        if !self.files.contains_key(&name) {
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
                .open(self.dir.join(&name))
                .map_err(io)?;
            self.files.insert(name.clone(), Entry { file: Some(file), next: 0 });
        }
        let Some(entry) = self.files.get_mut(&name) else { return Err(ArtifactError::Name) };
        if let Some(file) = &mut entry.file {
            file.write_all(data).map_err(io)?;
        }
        entry.next += data.len() as u64;
        self.total += data.len() as u64;
        if last {
            entry.file = None;
        }
        Ok(last.then_some(name))
    }

    fn admit(&self, name: &str, offset: u64, length: u64) -> Result<(), ArtifactError> {
        let over = |what| ArtifactError::TooMuch { name: name.into(), what };
        let entry = self.files.get(name);
        let want = entry.map_or(0, |entry| entry.next);
        if offset != want || entry.is_some_and(|entry| entry.file.is_none()) {
            return Err(ArtifactError::Offset { name: name.into(), got: offset, want });
        }
        if want + length > self.bounds.artifact_bytes {
            return Err(over("bytes of an artifact"));
        }
        if self.total + length > self.bounds.total_bytes {
            return Err(over("bytes of all artifacts"));
        }
        if entry.is_none() && self.files.len() >= self.bounds.count {
            return Err(over("the number of artifacts"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use lab_proto::frame::encode_bulk;
    use tokio::io::AsyncWriteExt;

    use super::*;

    const BOUNDS: Bounds = Bounds { artifact_bytes: 8, total_bytes: 12, count: 3 };

    fn chunk(name: &str, offset: u64, last: bool, data: &[u8]) -> Vec<u8> {
        encode_bulk(3, &BulkHeader { name: name.into(), offset, last }, data).unwrap()
    }

    /// Sends `wire` and gives what becomes of artifact `a`, and the directory.
    async fn send(wire: Vec<u8>) -> (Result<PathBuf, ArtifactError>, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let receiver = Receiver::start(ours, 3, dir.path(), BOUNDS).unwrap();
        theirs.write_all(&wire).await.unwrap();
        drop(theirs);
        (receiver.complete("a").await, dir)
    }

    #[tokio::test]
    async fn chunks_make_a_file() {
        let wire =
            [chunk("a", 0, false, b"ab"), chunk("b", 0, false, b"x"), chunk("a", 2, true, b"cd")];
        let (path, _dir) = send(wire.concat()).await;
        assert_eq!(std::fs::read(path.unwrap()).unwrap(), b"abcd");
    }

    #[tokio::test]
    async fn names_that_could_leave_the_directory_are_refused() {
        for name in ["", "..", "../x", "/etc/x", "A", ".a", "a/b", "a\0", "-a", &"a".repeat(65)] {
            assert!(!valid_name(name), "{name:?}");
            let (path, dir) = send(chunk(name, 0, true, b"x")).await;
            assert_eq!(path, Err(ArtifactError::Name), "{name:?}");
            assert_eq!(dir.path().read_dir().unwrap().count(), 0);
        }
        assert!(valid_name("fio-1_a.json") && valid_name(&"a".repeat(64)));
    }

    #[tokio::test]
    async fn gaps_repeats_and_overruns_end_it() {
        let offset = |got, want| Err(ArtifactError::Offset { name: "a".into(), got, want });
        let (path, _dir) = send(chunk("a", 1, true, b"x")).await;
        assert_eq!(path, offset(1, 0));
        let (path, _dir) =
            send([chunk("a", 0, false, b"x"), chunk("a", 0, true, b"x")].concat()).await;
        assert_eq!(path, offset(0, 1));
        let wire = [chunk("b", 0, true, b"x"), chunk("b", 1, true, b"x")].concat();
        let (path, _dir) = send(wire).await;
        assert!(matches!(path, Err(ArtifactError::Offset { .. })));
        let (path, _dir) = send(chunk("a", 0, true, b"123456789")).await;
        assert!(matches!(path, Err(ArtifactError::TooMuch { what: "bytes of an artifact", .. })));
        let wire = [chunk("b", 0, true, b"1234567"), chunk("a", 0, true, b"1234567")].concat();
        let (path, _dir) = send(wire).await;
        assert!(matches!(path, Err(ArtifactError::TooMuch { what: "bytes of all artifacts", .. })));
        let many: Vec<_> = ["b", "c", "d", "a"].map(|n| chunk(n, 0, true, b"")).concat();
        let (path, _dir) = send(many).await;
        assert!(matches!(
            path,
            Err(ArtifactError::TooMuch { what: "the number of artifacts", .. })
        ));
    }

    #[tokio::test]
    async fn a_link_in_the_way_is_not_followed() {
        let outside = tempfile::tempdir().unwrap();
        let target = outside.path().join("target");
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(&target, dir.path().join("a")).unwrap();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let receiver = Receiver::start(ours, 3, dir.path(), BOUNDS).unwrap();
        theirs.write_all(&chunk("a", 0, true, b"x")).await.unwrap();
        assert!(matches!(receiver.complete("a").await, Err(ArtifactError::Io(_))));
        assert!(!target.exists());
    }

    #[tokio::test]
    async fn a_file_that_is_there_is_not_changed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "before").unwrap();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let receiver = Receiver::start(ours, 3, dir.path(), BOUNDS).unwrap();
        theirs.write_all(&chunk("a", 0, true, b"after")).await.unwrap();
        assert!(matches!(receiver.complete("a").await, Err(ArtifactError::Io(_))));
        assert_eq!(std::fs::read(dir.path().join("a")).unwrap(), b"before");
    }
}
