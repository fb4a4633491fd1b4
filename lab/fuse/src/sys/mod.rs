//! Small wrappers over the system that more than one module needs: CPUs, memory, mount.

pub mod cpu;
pub mod map;
pub mod mount;
