//! Thin, safe wrappers over the system calls that std does not offer. No policy lives here.

pub(crate) mod affinity;
pub(crate) mod aio;
pub(crate) mod clock;
pub(crate) mod errno;
pub(crate) mod file;
pub(crate) mod kmsg;
pub(crate) mod mount;
pub(crate) mod power;
pub(crate) mod process;
pub(crate) mod random;
