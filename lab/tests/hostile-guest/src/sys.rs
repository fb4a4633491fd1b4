//! Mounts and the end of the machine.
#![allow(unsafe_code)] // mount is not in std

use std::ffi::CString;

const MOUNTS: [(&str, &str); 3] = [("devtmpfs", "/dev"), ("proc", "/proc"), ("sysfs", "/sys")];

/// Mounts what ports and console need; what fails shows soon enough.
pub(crate) fn mount_all() {
    for (kind, target) in MOUNTS {
        let _ = std::fs::create_dir_all(target);
        let (Ok(kind), Ok(target)) = (CString::new(kind), CString::new(target)) else { continue };
        // SAFETY: all pointers are strings with an end, alive during the call, or null.
        unsafe { libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, std::ptr::null()) };
    }
}
