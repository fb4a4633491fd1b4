//! Virtual machines: what they are to be (data), QEMU's arguments (pure), QMP, console,
//! accelerator, templates and clones.

pub mod spec;
