//! The agent: frames from the host in, observations out. It never touches a mount under test
//! itself, so it answers while everything else hangs.

mod control;
mod diagnose;
mod handler;
mod link;
mod port;

pub(crate) use control::main;
