//! Anonymous, page-aligned memory for buffers that the kernel writes into.

#![allow(unsafe_code)] // mmap and slices over it; nothing else in the crate maps memory

use std::ptr::{self, NonNull};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::errno::Result;

/// Page size assumed for rounding. The kernel's may be larger, never smaller, on Linux.
pub const PAGE: usize = 4096;

/// A private zeroed mapping, unmapped on drop.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is plain memory owned by this value alone; no thread affinity.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps at least `len` bytes. Pages are taken when touched first, by the touching CPU.
    ///
    /// # Errors
    /// The error of mmap(2).
    pub fn new(len: usize) -> Result<Mapping> {
        let len = len.max(1).next_multiple_of(PAGE);
        // SAFETY: a fresh anonymous mapping at an address the kernel picks aliases nothing.
        let start = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )?
        };
        let start = NonNull::new(start.cast()).ok_or(crate::errno::Errno::EIO)?;
        Ok(Mapping { start, len })
    }

    /// Bytes mapped.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never true; a mapping has at least a page.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Address of the first byte, for commands that hand memory to the kernel.
    pub fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// A part of the mapping.
    ///
    /// # Panics
    /// When the part is not inside the mapping.
    pub fn part(&mut self, offset: usize, len: usize) -> &mut [u8] {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len));
        // SAFETY: in bounds by the assertion, initialised (zero pages), and borrowed from
        // self exclusively for the life of the slice.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(offset), len) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the range mapped in `new`; borrows of it cannot outlive self.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_zero_writable_and_aligned() {
        let mut map = Mapping::new(5000).unwrap();
        assert_eq!(map.len(), 2 * PAGE);
        assert_eq!(map.address() % PAGE as u64, 0);
        map.part(4999, 2).copy_from_slice(b"ab");
        assert_eq!(map.part(4998, 4), b"\0ab\0");
    }

    #[test]
    #[should_panic(expected = "assertion")]
    fn a_part_outside_is_refused() {
        Mapping::new(1).unwrap().part(PAGE, 1);
    }
}
