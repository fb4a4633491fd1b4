//! Virtual machines: what they are to be (data), QEMU's arguments (pure), QMP, console,
//! accelerator, templates and clones.

pub mod argv;
pub mod console;
#[cfg(test)]
mod layouts;
mod line;
pub mod qmp;
pub mod spec;
