//! A run: dispatcher, attempts, events, and the directory they are recorded in.

pub mod events;
pub mod options;
pub mod project;
