//! The wire format of FUSE 7.46 as typed, byte-exact structures.
//!
//! Data only: layouts, numbers and flags, each checked at compile time. No system calls, no
//! policy; what a flag means for a session is decided in `session`.

#![allow(missing_docs)] // field names are the protocol's own; each struct says what it carries

pub mod flags;
pub mod header;
mod layout;
pub mod opcode;
pub mod reply;
pub mod request;

pub(crate) use layout::layout;
