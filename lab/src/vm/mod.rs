//! Virtual machines: what they are to be (data), QEMU's arguments (pure), QMP, console,
//! accelerator, templates and clones.

pub mod accel;
pub mod argv;
pub mod console;
mod console_log;
mod end;
mod error;
mod escalate;
#[cfg(test)]
mod layouts;
mod limits;
mod line;
pub mod machine;
mod memory;
pub mod qemu;
pub mod qmp;
pub mod spec;
pub mod template;
pub mod vng;

pub use end::{End, Ended};
pub use error::VmError;
pub use escalate::Break;
pub use limits::{Limits, Slowdown};
