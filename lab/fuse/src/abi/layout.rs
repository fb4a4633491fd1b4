//! The compile-time check that a structure is laid out as the kernel reads it.

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
