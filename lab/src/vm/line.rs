//! Lines from a stream, each of at most a given length.

use tokio::io::{AsyncRead, AsyncReadExt};

/// Why there is no line.
#[derive(Debug, thiserror::Error)]
pub(super) enum LineError {
    #[error("end of stream")]
    End,
    #[error("line over {0} bytes")]
    TooLong(usize),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// A reader of lines. [`Lines::next`] may be dropped and called again: nothing is lost.
#[derive(Debug)]
pub(super) struct Lines<R> {
    stream: R,
    buffer: Vec<u8>,
    searched: usize,
    max: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of at most `max` bytes.
    pub(super) fn new(stream: R, max: usize) -> Lines<R> {
        Lines { stream, buffer: Vec::new(), searched: 0, max }
    }

    /// The next line without its end; a last one without an end counts as cut off.
    pub(super) async fn next(&mut self) -> Result<Vec<u8>, LineError> {
        loop {
            let fresh = &self.buffer[self.searched..];
            if let Some(at) = fresh.iter().position(|byte| *byte == b'\n') {
                let end = self.searched + at;
                let mut line: Vec<u8> = self.buffer.drain(..=end).collect();
                self.searched = 0;
                line.truncate(line.trim_ascii_end().len());
                return Ok(line);
            }
            self.searched = self.buffer.len();
            if self.searched > self.max {
                return Err(LineError::TooLong(self.max));
            }
            self.buffer.reserve(16 << 10);
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(LineError::End);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn lines_come_whole_also_when_a_wait_was_given_up() {
        let (ours, mut theirs) = tokio::io::duplex(64);
        let mut lines = Lines::new(ours, 16);
        theirs.write_all(b"one\r\ntw").await.unwrap();
        assert_eq!(lines.next().await.unwrap(), b"one");
        let short = Duration::from_millis(20);
        assert!(tokio::time::timeout(short, lines.next()).await.is_err());
        theirs.write_all(b"o\n\ncut").await.unwrap();
        drop(theirs);
        assert_eq!(lines.next().await.unwrap(), b"two");
        assert_eq!(lines.next().await.unwrap(), b"");
        assert!(matches!(lines.next().await, Err(LineError::End)));
    }

    #[tokio::test]
    async fn a_line_over_the_bound_is_an_error() {
        let mut lines = Lines::new(&[b'x'; 100][..], 16);
        assert!(matches!(lines.next().await, Err(LineError::TooLong(16))));
    }
}
