//! One queue of the ring: its io_uring, its buffers, its loop. Lives in one thread.

#![allow(unsafe_code)] // submission entries carry raw addresses, and one field has no setter

use std::os::fd::RawFd;

use io_uring::types::Fixed;
use io_uring::{IoUring, cqueue, opcode, squeue, types};
use zerocopy::{FromBytes, IntoBytes};

use crate::abi::header::{
    CMD_COMMIT_AND_FETCH, CMD_REGISTER, InHeader, OutHeader, RingCommand, RingHeader,
};
use crate::errno::{Errno, Result};
use crate::session::{Handler, Outcome, Request};
use crate::sys::map::Mapping;

/// Distance of two header buffers: whole cache lines, no page crossed.
const HEADER_STRIDE: usize = 512;
/// Token of the poll that tells the thread to stop; entries have their index.
const STOP: u64 = u64::MAX;
/// How often an entry is given again to a kernel that is not ready for it.
const RETRIES_MAX: u32 = 1000;

type Ring128 = IoUring<squeue::Entry128, cqueue::Entry>;

/// A queue, not yet known to the kernel's FUSE side.
pub(super) struct RingQueue {
    // Before the buffers: closing the ring ends the kernel's use of them.
    ring: Ring128,
    headers: Mapping,
    payloads: Mapping,
    iovecs: Vec<[libc::iovec; 2]>,
    /// Per entry, what was last given to the kernel: None for REGISTER, else the commit id.
    given: Vec<Option<u64>>,
    payload_len: usize,
    queue: u16,
    retries: u32,
    early: Vec<cqueue::Entry>,
}

impl RingQueue {
    /// Makes ring and buffers. Must run in the thread that will serve the queue.
    pub(super) fn new(queue: u16, depth: u32, payload_len: usize, device: RawFd) -> Result<Self> {
        let ring: Ring128 = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .build(depth + 1)?;
        ring.submitter().register_files(&[device])?;
        let count = depth as usize;
        let headers = Mapping::new(count * HEADER_STRIDE)?;
        let payloads = Mapping::new(count * payload_len)?;
        let iovec = |base: u64, len| libc::iovec { iov_base: base as *mut _, iov_len: len };
        let iovecs = (0..count)
            .map(|entry| {
                [
                    iovec(headers.address() + (entry * HEADER_STRIDE) as u64, HEADER_STRIDE),
                    iovec(payloads.address() + (entry * payload_len) as u64, payload_len),
                ]
            })
            .collect();
        let given = vec![None; count];
        let early = Vec::with_capacity(count);
        Ok(RingQueue {
            ring,
            headers,
            payloads,
            iovecs,
            given,
            payload_len,
            queue,
            retries: 0,
            early,
        })
    }

    /// Gives all entries to the kernel, and watches `stop` from now on.
    ///
    /// # Errors
    /// What the kernel refused the first entry with.
    pub(super) fn register(&mut self, stop: RawFd) -> Result<()> {
        let poll = opcode::PollAdd::new(types::Fd(stop), libc::POLLIN as u32);
        push(&mut self.ring.submission(), &poll.build().user_data(STOP).into());
        for entry in 0..self.given.len() {
            let command = self.command(entry);
            push(&mut self.ring.submission(), &command);
        }
        self.ring.submit()?;
        self.early.extend(self.ring.completion());
        let refused = self.early.iter().find(|cqe| cqe.result() < 0 && !again(cqe.result()));
        refused.map_or(Ok(()), |cqe| Err(Errno::new(-cqe.result())))
    }

    /// Serves requests until the connection ends or `stop` is signalled.
    ///
    /// # Errors
    /// A failing io_uring_enter(2).
    pub(super) fn run(&mut self, handler: &Handler) -> Result<()> {
        let early = std::mem::take(&mut self.early);
        let mut goes_on = early.iter().all(|cqe| self.complete(cqe, handler));
        while goes_on {
            match self.ring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if transient(&error) => continue,
                Err(error) => return Err(error.into()),
            }
            // All that has arrived is answered before the kernel is entered again.
            while goes_on {
                let Some(cqe) = self.ring.completion().next() else { break };
                goes_on = self.complete(&cqe, handler);
            }
        }
        Ok(())
    }

    /// Handles one completion; false ends the thread.
    fn complete(&mut self, cqe: &cqueue::Entry, handler: &Handler) -> bool {
        if cqe.user_data() == STOP {
            return false;
        }
        let entry = cqe.user_data() as usize;
        match -cqe.result() {
            error if error <= 0 => self.serve(entry, handler),
            libc::ENOTCONN | libc::ECANCELED | libc::ECONNABORTED | libc::ENODEV => return false,
            libc::EAGAIN | libc::EINTR => {
                self.retries += 1;
                if self.retries > RETRIES_MAX {
                    return false;
                }
                let command = self.command(entry);
                push(&mut self.ring.submission(), &command);
            }
            // The kernel refused this commit: the entry is lost, the others are not.
            _ => {}
        }
        true
    }

    fn serve(&mut self, entry: usize, handler: &Handler) {
        let bytes = self.headers.part(entry * HEADER_STRIDE, size_of::<RingHeader>());
        let Ok(header) = RingHeader::mut_from_bytes(bytes) else { return };
        let Ok((in_header, _)) = InHeader::read_from_prefix(&header.in_out) else { return };
        let payload = self.payloads.part(entry * self.payload_len, self.payload_len);
        let payload_in = (header.entry.payload_sz as usize).min(payload.len());
        let mut request = Request { header: in_header, fixed: &header.op, payload, payload_in };
        let queue = handler.telemetry().queue(u32::from(self.queue));
        let result = match handler.serve(queue, &mut request) {
            Outcome::Reply(result) => result,
            Outcome::Silent => Ok(0),
            Outcome::Dropped => return,
        };
        let (error, len) = match result {
            Ok(len) => (0, len as u32),
            Err(errno) => (-errno.raw(), 0),
        };
        let reply =
            OutHeader { len: size_of::<OutHeader>() as u32 + len, error, unique: in_header.unique };
        header.in_out[..size_of::<OutHeader>()].copy_from_slice(reply.as_bytes());
        header.entry.payload_sz = len;
        self.given[entry] = Some(header.entry.commit_id);
        let command = self.command(entry);
        push(&mut self.ring.submission(), &command);
    }

    /// The command that gives an entry to the kernel, for the first time or with a reply.
    fn command(&self, entry: usize) -> squeue::Entry128 {
        let commit_id = self.given[entry].unwrap_or(0);
        let command = RingCommand { commit_id, qid: self.queue, ..RingCommand::default() };
        let mut area = [0u8; 80];
        area[..size_of::<RingCommand>()].copy_from_slice(command.as_bytes());
        if self.given[entry].is_some() {
            let commit = opcode::UringCmd80::new(Fixed(0), CMD_COMMIT_AND_FETCH).cmd(area);
            return commit.build().user_data(entry as u64);
        }
        let register = opcode::UringCmd80::new(Fixed(0), CMD_REGISTER)
            .cmd(area)
            .addr(Some(self.iovecs[entry].as_ptr() as u64));
        let mut sqe = register.build().user_data(entry as u64);
        set_len(&mut sqe, 2);
        sqe
    }
}

fn again(result: i32) -> bool {
    matches!(-result, libc::EAGAIN | libc::EINTR)
}

fn transient(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}

/// Byte offset of the `len` field in a submission entry.
const SQE_LEN_OFFSET: usize = 24;
const _: () = assert!(size_of::<squeue::Entry128>() == 128);
const _: () = assert!(align_of::<squeue::Entry128>() >= align_of::<u32>());
const _: () = assert!(SQE_LEN_OFFSET.is_multiple_of(align_of::<u32>()));

/// Sets the length field, for which the command's builder has no setter.
fn set_len(sqe: &mut squeue::Entry128, len: u32) {
    // SAFETY: the entry is 128 bytes of plain data in the kernel's layout, in which a u32 is
    // at that offset; in bounds and aligned by the assertions above.
    unsafe { std::ptr::from_mut(sqe).cast::<u8>().add(SQE_LEN_OFFSET).cast::<u32>().write(len) }
}

/// Queues an entry. There is room: at most one per ring entry and the poll are ever queued.
fn push(queue: &mut squeue::SubmissionQueue<'_, squeue::Entry128>, sqe: &squeue::Entry128) {
    // SAFETY: the addresses in the entry are those of `iovecs` and of the mappings they name,
    // which live in the same RingQueue as the ring and are dropped after it.
    let pushed = unsafe { queue.push(sqe) };
    debug_assert!(pushed.is_ok(), "the submission queue holds an entry per ring entry");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_lands_where_the_kernel_reads_it() {
        let mut sqe = opcode::UringCmd80::new(Fixed(0), CMD_REGISTER).build();
        set_len(&mut sqe, 2);
        // SAFETY: the entry is 128 initialised bytes of plain data.
        let bytes: [u8; 128] = unsafe { std::mem::transmute(sqe) };
        assert_eq!(bytes[SQE_LEN_OFFSET..][..4], 2u32.to_ne_bytes());
    }
}
