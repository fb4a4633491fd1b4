//! Power-off.
#![allow(unsafe_code)] // reboot is not in std

/// Powers the machine off. Returns only when the kernel refuses.
pub(crate) fn off() {
    // SAFETY: takes no pointers.
    unsafe { libc::reboot(libc::RB_POWER_OFF) };
}

/// Powers off after writing dirty data back. A mount under test may never write back, so the
/// sync runs beside and gets a second.
pub(crate) fn sync_and_off() {
    let (done, wait) = std::sync::mpsc::channel();
    let sync = move || {
        // SAFETY: takes no arguments and cannot fail.
        unsafe { libc::sync() };
        let _ = done.send(());
    };
    if std::thread::Builder::new().spawn(sync).is_ok() {
        let _ = wait.recv_timeout(std::time::Duration::from_secs(1));
    }
    off();
}
