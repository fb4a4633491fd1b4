//! The wire format of FUSE 7.46 as typed, byte-exact structures.
//!
//! Data only: layouts, numbers and flags, each checked at compile time. No system calls, no
//! policy; what a flag means for a session is decided in `session`.

#![allow(missing_docs)] // field names are the protocol's own; each struct says what it carries

pub mod flags;
pub mod header;
pub mod opcode;
pub mod reply;
pub mod request;

/// Asserts the size of a structure and the offsets of some fields at compile time.
macro_rules! layout {
    ($ty:ty, $size:expr $(, $field:ident @ $offset:expr)* $(,)?) => {
        const _: () = {
            assert!(size_of::<$ty>() == $size);
            $(assert!(core::mem::offset_of!($ty, $field) == $offset);)*
        };
    };
}
pub(crate) use layout;
