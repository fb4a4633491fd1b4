//! Reporters: each a fold over events.
//!
//! They write to what they are given and to nothing else. Text from a guest passes through
//! `escape` on its way out.

mod bar;
pub mod color;
pub mod escape;
pub mod fold;
mod jsonl;
mod junit;
mod ktap;
mod replay;
mod reporter;
mod series;
mod sink;
mod terminal;

#[cfg(test)]
mod tests;

pub use jsonl::Jsonl;
pub use junit::Junit;
pub use ktap::Ktap;
pub use replay::replay;
pub use reporter::Reporter;
pub use sink::{Sink, SinkFault};
pub use terminal::{Options, Terminal};
