//! Directory records in the reply's buffer, plain or with entries.

use zerocopy::IntoBytes;

use crate::abi::reply::{Dirent, EntryOut};

use super::api::Entry;

/// Collects records until the buffer is full.
pub struct DirBuffer<'a> {
    out: &'a mut [u8],
    used: usize,
    last: Option<u64>,
    /// Makes the reply form of an entry; present for readdirplus.
    plus: Option<&'a dyn Fn(&Entry) -> EntryOut>,
}

impl<'a> DirBuffer<'a> {
    /// Over the reply's buffer; with `plus`, records carry entries made by it.
    pub fn new(out: &'a mut [u8], plus: Option<&'a dyn Fn(&Entry) -> EntryOut>) -> DirBuffer<'a> {
        DirBuffer { out, used: 0, last: None, plus }
    }

    /// Whether records should carry entries, each of which counts as a lookup.
    pub fn wants_entries(&self) -> bool {
        self.plus.is_some()
    }

    /// Whether a record of that name still fits.
    pub fn fits(&self, name: &[u8]) -> bool {
        self.used + self.record_len(name) <= self.out.len()
    }

    /// Adds a record; false, with nothing added, when it does not fit.
    ///
    /// `next` is the position after it, `kind` a DT_ value of getdents(2). Without an entry
    /// the kernel does not count a lookup.
    pub fn push(&mut self, ino: u64, next: u64, kind: u32, name: &[u8], e: Option<&Entry>) -> bool {
        if !self.fits(name) {
            return false;
        }
        let len = self.record_len(name);
        let mut record = &mut self.out[self.used..self.used + len];
        record.fill(0);
        if let Some(reply) = self.plus {
            let (head, rest) = record.split_at_mut(size_of::<EntryOut>());
            head.copy_from_slice(e.map(reply).unwrap_or_default().as_bytes());
            record = rest;
        }
        let head = Dirent { ino, off: next, namelen: name.len() as u32, kind };
        record[..size_of::<Dirent>()].copy_from_slice(head.as_bytes());
        record[size_of::<Dirent>()..][..name.len()].copy_from_slice(name);
        self.used += len;
        self.last = Some(next);
        true
    }

    /// Bytes of all records.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Position after the last record added.
    pub fn last(&self) -> Option<u64> {
        self.last
    }

    fn record_len(&self, name: &[u8]) -> usize {
        let entry = if self.plus.is_some() { size_of::<EntryOut>() } else { 0 };
        entry + (size_of::<Dirent>() + name.len()).next_multiple_of(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_padded_and_bounded() {
        let mut out = [0xffu8; 72];
        let mut dir = DirBuffer::new(&mut out, None);
        assert!(dir.push(7, 1, 8, b"ab", None));
        assert!(dir.push(8, 2, 4, b"12345678", None));
        assert!(!dir.push(9, 3, 4, b"c", None));
        assert_eq!(dir.used(), 64);
        assert_eq!(&out[24..32], b"ab\0\0\0\0\0\0");
        assert_eq!(out[32], 8);
        assert_eq!(out[64], 0xff);
    }

    #[test]
    fn records_with_entries_carry_the_node() {
        let mut out = [0u8; 400];
        let reply = |entry: &Entry| EntryOut { nodeid: entry.node, ..EntryOut::default() };
        let mut dir = DirBuffer::new(&mut out, Some(&reply));
        let entry = Entry { node: 42, attr: Default::default() };
        assert!(dir.wants_entries() && dir.push(42, 1, 8, b"f", Some(&entry)));
        assert_eq!(dir.used(), 160);
        assert_eq!(out[0], 42);
    }
}
