//! Bounded memory of an unbounded stream: its head and its tail. No I/O.

use std::collections::VecDeque;

/// Keeps the first and the last bytes of a stream and counts the rest.
#[derive(Debug, Clone)]
pub struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_max: usize,
    tail_max: usize,
    total: u64,
}

impl Capture {
    /// A capture of at most `head_max` first and `tail_max` last bytes.
    pub fn new(head_max: usize, tail_max: usize) -> Capture {
        Capture { head: Vec::new(), tail: VecDeque::new(), head_max, tail_max, total: 0 }
    }

    /// Adds bytes as they came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = (self.head_max - self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        let rest = &bytes[room..];
        let rest = &rest[rest.len().saturating_sub(self.tail_max)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.tail_max);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// Bytes seen, kept or not.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bytes seen and not kept.
    pub fn lost(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// What was kept; a line tells where bytes are missing, and how many.
    pub fn text(&self) -> String {
        let mut out = self.head.clone();
        if self.lost() > 0 {
            out.extend_from_slice(format!("\n[{} bytes not kept]\n", self.lost()).as_bytes());
        }
        out.extend(&self.tail);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// At most the last `max` bytes of what was kept.
    pub fn last(&self, max: usize) -> Vec<u8> {
        let from_tail = self.tail.len().min(max);
        let mut out = Vec::with_capacity(max.min(self.head.len() + from_tail));
        if self.lost() == 0 {
            let from_head = (max - from_tail).min(self.head.len());
            out.extend_from_slice(&self.head[self.head.len() - from_head..]);
        }
        out.extend(self.tail.iter().skip(self.tail.len() - from_tail));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_and_tail_survive_any_split() {
        let stream: Vec<u8> = (0..=255).collect();
        for step in [1, 3, 7, 100, 256] {
            let mut capture = Capture::new(10, 20);
            stream.chunks(step).for_each(|part| capture.push(part));
            assert_eq!((capture.head.as_slice(), capture.total()), (&stream[..10], 256));
            assert_eq!(capture.last(20), &stream[236..], "step {step}");
            assert_eq!(capture.lost(), 226);
        }
    }

    #[test]
    fn short_streams_are_whole() {
        let mut capture = Capture::new(4, 4);
        capture.push(b"abcdef");
        assert_eq!(capture.text(), "abcdef");
        assert_eq!(capture.last(3), b"def");
        assert_eq!(capture.last(5), b"bcdef");
        capture.push(b"ghijk");
        assert_eq!(capture.text(), "abcd\n[3 bytes not kept]\nhijk");
    }
}
