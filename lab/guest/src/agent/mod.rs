//! The agent: frames from the host in, observations out. It never touches a mount under test
//! itself, so it answers while everything else hangs.

mod bulk;
mod case;
mod control;
pub(crate) mod diagnose;
mod handler;
mod link;
mod port;
mod server;

pub(crate) use bulk::Bulk;
pub(crate) use case::Case;
pub(crate) use control::main;
pub(crate) use link::Link;
pub(crate) use server::Server;
