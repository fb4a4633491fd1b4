//! A request in its buffers, decoded with bounds. Replies go over the request's own payload.

use std::ffi::CStr;

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::abi::header::InHeader;
use crate::errno::{Errno, Result};

/// A request's parts. The payload buffer holds names or data, later the reply.
pub struct Request<'a> {
    /// Header, copied out so that nothing changes under the server.
    pub header: InHeader,
    /// Fixed part; may be longer than the opcode's.
    pub fixed: &'a [u8],
    /// Payload buffer.
    pub payload: &'a mut [u8],
    /// Bytes of the payload that came with the request.
    pub payload_in: usize,
}

impl Request<'_> {
    /// The fixed part as its structure.
    pub(super) fn fixed<T: FromBytes>(&self) -> Result<T> {
        T::read_from_prefix(self.fixed).map(|(value, _)| value).map_err(|_| Errno::EINVAL)
    }

    /// What came in the payload.
    pub(super) fn data(&self) -> Result<&[u8]> {
        self.payload.get(..self.payload_in).ok_or(Errno::EINVAL)
    }

    /// The name in the payload.
    pub(super) fn name(&self) -> Result<&CStr> {
        split_name(self.data()?).map(|(name, _)| name)
    }

    /// The two names in the payload.
    pub(super) fn names(&self) -> Result<(&CStr, &CStr)> {
        let (first, rest) = split_name(self.data()?)?;
        let second = CStr::from_bytes_until_nul(rest).map_err(|_| Errno::EINVAL)?;
        Ok((first, second))
    }

    /// The name in the payload and the bytes after it.
    pub(super) fn name_and_rest(&self) -> Result<(&CStr, &[u8])> {
        split_name(self.data()?)
    }

    /// The first `size` bytes of the payload, for the reply; fewer when it is smaller.
    pub(super) fn room(&mut self, size: u32) -> &mut [u8] {
        let size = (size as usize).min(self.payload.len());
        &mut self.payload[..size]
    }

    /// Makes `value` the reply, or adds it at `offset`, and returns the reply's length.
    pub(super) fn put_at<T: IntoBytes + Immutable>(&mut self, offset: usize, value: &T) -> usize {
        let end = offset + size_of::<T>();
        self.payload[offset..end].copy_from_slice(value.as_bytes());
        end
    }
}

/// Splits after the name that `bytes` begin with: one path component that is not empty.
fn split_name(bytes: &[u8]) -> Result<(&CStr, &[u8])> {
    let name = CStr::from_bytes_until_nul(bytes).map_err(|_| Errno::EINVAL)?;
    if name.is_empty() || name.to_bytes().contains(&b'/') {
        return Err(Errno::EINVAL);
    }
    Ok((name, &bytes[name.count_bytes() + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::request::ReadIn;

    fn with<T>(payload: &[u8], payload_in: usize, check: impl FnOnce(Request<'_>) -> T) -> T {
        let mut payload = payload.to_vec();
        check(Request {
            header: InHeader::default(),
            fixed: &[0; 39],
            payload: &mut payload,
            payload_in,
        })
    }

    #[test]
    fn names_end_within_what_came() {
        assert!(with(b"ab\0", 3, |r| r.name().is_ok()));
        // The zero byte is in the buffer, but not in the request.
        assert!(with(b"ab\0", 2, |r| r.name().is_err()));
        assert!(with(b"ab", 3, |r| r.name().is_err()));
        assert!(with(b"\0", 1, |r| r.name().is_err()));
        assert!(with(b"a/b\0", 4, |r| r.name().is_err()));
    }

    #[test]
    fn two_names_are_both_needed() {
        with(b"a\0bc\0", 5, |r| assert_eq!(r.names().unwrap(), (c"a", c"bc")));
        assert!(with(b"a\0bc\0", 4, |r| r.names().is_err()));
        with(b"n\0xyz", 5, |r| assert_eq!(r.name_and_rest().unwrap(), (c"n", &b"xyz"[..])));
    }

    #[test]
    fn a_short_fixed_part_is_refused() {
        assert!(with(b"", 0, |r| r.fixed::<ReadIn>().is_err()));
    }

    #[test]
    fn room_is_never_more_than_the_buffer() {
        with(b"1234", 0, |mut r| assert_eq!(r.room(u32::MAX).len(), 4));
    }
}
