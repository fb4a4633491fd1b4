//! The guest as the host sees it: commands, artifacts. Nothing the guest sends is trusted.

mod artifact;
mod client;

pub use artifact::{ArtifactError, Bounds, valid_name};
pub use client::{Agent, AgentError, Ports};
