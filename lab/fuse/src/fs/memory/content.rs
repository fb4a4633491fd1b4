//! The bytes of a file: pages that were written, and holes between them.

use std::collections::BTreeMap;

use crate::errno::{Errno, Result};

const PAGE: u64 = 4096;
/// Largest file, bytes.
pub(super) const SIZE_MAX: u64 = 1 << 62;

/// Sparse file content.
#[derive(Debug, Default)]
pub(super) struct Content {
    size: u64,
    pages: BTreeMap<u64, Box<[u8; PAGE as usize]>>,
}

impl Content {
    /// Size, bytes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Blocks of 512 bytes in use.
    pub(super) fn blocks(&self) -> u64 {
        self.pages.len() as u64 * (PAGE / 512)
    }

    /// Reads up to the end; holes read as zero.
    pub(super) fn read(&self, offset: u64, out: &mut [u8]) -> usize {
        let len = (out.len() as u64).min(self.size.saturating_sub(offset)) as usize;
        for (page, inside, part) in pieces(offset, len) {
            let to = &mut out[part.clone()];
            match self.pages.get(&page) {
                Some(bytes) => to.copy_from_slice(&bytes[inside..inside + part.len()]),
                None => to.fill(0),
            }
        }
        len
    }

    /// Writes, growing the file as needed.
    pub(super) fn write(&mut self, offset: u64, data: &[u8]) -> Result<usize> {
        let end = end_of(offset, data.len() as u64)?;
        for (page, inside, part) in pieces(offset, data.len()) {
            let len = part.len();
            let bytes = self.pages.entry(page).or_insert_with(|| Box::new([0; PAGE as usize]));
            bytes[inside..inside + len].copy_from_slice(&data[part]);
        }
        self.size = self.size.max(end);
        Ok(data.len())
    }

    /// Cuts or grows the file; what is grown is a hole.
    pub(super) fn resize(&mut self, size: u64) -> Result<()> {
        end_of(size, 0)?;
        if size < self.size {
            self.zero(size, self.size - size);
            self.pages.split_off(&size.div_ceil(PAGE));
        }
        self.size = size;
        Ok(())
    }

    /// Grows to the end of a range if it is beyond the file's.
    pub(super) fn grow(&mut self, offset: u64, len: u64) -> Result<()> {
        self.size = self.size.max(end_of(offset, len)?);
        Ok(())
    }

    /// Makes the range read as zero; whole pages become holes.
    pub(super) fn zero(&mut self, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        let pages: Vec<u64> =
            self.pages.range(offset / PAGE..end.div_ceil(PAGE)).map(|(page, _)| *page).collect();
        for page in pages {
            let start = page * PAGE;
            let (from, to) = (offset.max(start) - start, end.min(start + PAGE) - start);
            if to - from == PAGE {
                self.pages.remove(&page);
            } else if let Some(bytes) = self.pages.get_mut(&page) {
                bytes[from as usize..to as usize].fill(0);
            }
        }
    }

    /// The next data at or after `offset`.
    pub(super) fn data(&self, offset: u64) -> Result<u64> {
        let next = self.pages.range(offset / PAGE..).next();
        let found = next.map(|(page, _)| offset.max(page * PAGE));
        found.filter(|found| *found < self.size).ok_or(Errno::ENXIO)
    }

    /// The next hole at or after `offset`; the end of the file is one.
    pub(super) fn hole(&self, offset: u64) -> Result<u64> {
        if offset >= self.size {
            return Err(Errno::ENXIO);
        }
        let mut page = offset / PAGE;
        while self.pages.contains_key(&page) {
            page += 1;
        }
        Ok((page * PAGE).max(offset).min(self.size))
    }
}

fn end_of(offset: u64, len: u64) -> Result<u64> {
    offset.checked_add(len).filter(|end| *end <= SIZE_MAX).ok_or(Errno::EFBIG)
}

/// A range by pages: page number, offset inside it, part of the caller's buffer.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done >= len {
            return None;
        }
        let at = offset + done as u64;
        let inside = (at % PAGE) as usize;
        let part = done..len.min(done + PAGE as usize - inside);
        done = part.end;
        Some((at / PAGE, inside, part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_read_as_zero_and_take_no_space() {
        let mut content = Content::default();
        content.write(10_000, b"end").unwrap();
        let mut out = [1u8; 20_000];
        assert_eq!(content.read(0, &mut out), 10_003);
        assert!(out[..10_000].iter().all(|byte| *byte == 0));
        assert_eq!(&out[10_000..10_003], b"end");
        assert_eq!(content.blocks(), 8);
        assert_eq!((content.data(0), content.hole(0)), (Ok(8192), Ok(0)));
        assert_eq!(content.hole(9000), Ok(10_003));
        assert_eq!(content.data(10_003), Err(Errno::ENXIO));
    }

    #[test]
    fn what_was_cut_off_does_not_come_back() {
        let mut content = Content::default();
        content.write(0, &[7; 9000]).unwrap();
        content.resize(4100).unwrap();
        content.resize(9000).unwrap();
        let mut out = [1u8; 9000];
        content.read(0, &mut out);
        assert!(out[..4100].iter().all(|byte| *byte == 7));
        assert!(out[4100..].iter().all(|byte| *byte == 0));
        content.resize(0).unwrap();
        assert_eq!(content.blocks(), 0);
    }

    #[test]
    fn ends_beyond_the_limit_are_refused() {
        let mut content = Content::default();
        assert_eq!(content.write(u64::MAX, b"a"), Err(Errno::EFBIG));
        assert_eq!(content.resize(SIZE_MAX + 1), Err(Errno::EFBIG));
        content.zero(u64::MAX - 1, u64::MAX);
    }
}
