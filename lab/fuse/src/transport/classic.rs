//! Readers of /dev/fuse: the whole service in classic mode, the rest of it beside a ring.

use zerocopy::FromBytes;

use crate::abi::header::InHeader;
use crate::abi::opcode::Opcode;
use crate::errno::{Errno, Result};
use crate::session::{Handler, Outcome, Request};
use crate::sys::map::{Mapping, PAGE};

use super::device::Device;

/// What a reader of /dev/fuse is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// One of the threads of classic mode; its telemetry counts as a queue.
    Server,
    /// Beside a ring, for the kinds of request that never go over it.
    BesideRing,
}

/// Serves /dev/fuse until the connection ends. `number` tells readers apart.
///
/// # Errors
/// No memory, or an error of the device that is not its end.
pub fn serve_device(
    device: &Device,
    handler: &Handler,
    payload_len: usize,
    role: Role,
    number: u32,
) -> Result<()> {
    // The kernel refuses a buffer shorter than the largest write with its headers.
    let mut buffer = Mapping::new(payload_len + PAGE)?;
    let buffer_len = buffer.len();
    while let Some(len) = device.read(buffer.part(0, buffer_len))? {
        let Some(mut request) = split(buffer.part(0, buffer_len), len) else { continue };
        let telemetry = handler.telemetry();
        telemetry.dev_fuse(number).count(request.header.opcode);
        let outcome = match role {
            Role::Server => handler.serve(telemetry.queue(number), &mut request),
            Role::BesideRing => handler.answer(&mut request),
        };
        let Outcome::Reply(result) = outcome else { continue };
        let reply = result.map(|len| &request.payload[..len]);
        match device.reply(request.header.unique, reply) {
            // ENOENT: the request was interrupted. ENODEV: the next read says so too.
            Ok(()) | Err(Errno::ENOENT) => {}
            Err(errno) if errno.raw() == libc::ENODEV => {}
            // The kernel refused the reply's form: the caller still waits for one.
            Err(_) => drop(device.reply(request.header.unique, Err(Errno::EIO))),
        }
    }
    Ok(())
}

/// A request's parts in the buffer it was read into. None when it is malformed.
fn split(buffer: &mut [u8], len: usize) -> Option<Request<'_>> {
    let len = len.min(buffer.len());
    let (header, _) = InHeader::read_from_prefix(&buffer[..len]).ok()?;
    if header.len as usize != len {
        return None;
    }
    let fixed_len = Opcode::from_number(header.opcode).map_or(0, Opcode::fixed_len);
    let (head, payload) = buffer.split_at_mut(size_of::<InHeader>() + fixed_len);
    let head_in = len.min(head.len());
    let fixed = &head[size_of::<InHeader>()..head_in];
    Some(Request { header, fixed, payload, payload_in: len - head_in })
}

#[cfg(test)]
mod tests {
    use zerocopy::IntoBytes;

    use super::*;

    fn buffer(opcode: u32, len: u32) -> Vec<u8> {
        let mut buffer = vec![0u8; 4096];
        let header = InHeader { len, opcode, unique: 2, ..InHeader::default() };
        buffer[..40].copy_from_slice(header.as_bytes());
        buffer
    }

    #[test]
    fn a_request_is_cut_after_its_fixed_part() {
        let mut bytes = buffer(16, 85);
        bytes[80..85].copy_from_slice(b"hello");
        let request = split(&mut bytes, 85).unwrap();
        assert_eq!((request.fixed.len(), request.payload_in), (40, 5));
        assert_eq!(&request.payload[..5], b"hello");
    }

    #[test]
    fn malformed_lengths_do_not_leave_the_buffer() {
        assert!(split(&mut buffer(16, 85), 84).is_none());
        assert!(split(&mut buffer(16, 85), 20).is_none());
        // Shorter than its fixed part: the decoder sees less, not what lies behind.
        let mut bytes = buffer(16, 44);
        let request = split(&mut bytes, 44).unwrap();
        assert_eq!((request.fixed.len(), request.payload_in), (4, 0));
    }
}
