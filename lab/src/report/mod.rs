//! Reporters: each a fold over events.
//!
//! They write to what they are given and to nothing else. Text from a guest passes through
//! `escape` on its way out.

pub mod escape;
pub mod fold;
mod reporter;

pub use reporter::Reporter;
