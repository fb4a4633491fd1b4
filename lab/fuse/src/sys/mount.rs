//! mount(2) of a fuse connection, its number, and taking it away within a bound.

use std::ffi::CString;
use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::errno::{Errno, Result};

/// A mount that this process made and takes away again, at the latest on drop.
#[derive(Debug)]
pub struct Mount {
    point: String,
    connection: u32,
    gone: bool,
}

impl Mount {
    /// Mounts the connection behind `device` at `point`, which is made when missing.
    ///
    /// # Errors
    /// Making the directory, mount(2), or a mount that does not appear in mountinfo.
    pub fn new(device: BorrowedFd<'_>, name: &str, point: &str) -> Result<Mount> {
        fs::create_dir_all(point)?;
        let point = fs::canonicalize(point)?;
        let point = point.to_str().ok_or(Errno::EINVAL)?.to_owned();
        let options = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions",
            device.as_raw_fd()
        );
        let options = CString::new(options).map_err(|_| Errno::EINVAL)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount(name, point.as_str(), "fuse", flags, options.as_c_str())?;
        let mut this = Mount { point, connection: 0, gone: false };
        this.connection = mounted_at(&this.point).ok_or(Errno::EIO)?;
        Ok(this)
    }

    /// fusectl's number of the connection: the minor of the mount's device.
    pub fn connection(&self) -> u32 {
        self.connection
    }

    /// Absolute path of the mount point, without symbolic links.
    pub fn point(&self) -> &str {
        &self.point
    }

    /// Unmounts; when that takes longer than `limit` or is refused, aborts and detaches.
    /// True when the plain way was enough.
    pub fn unmount(&mut self, limit: Duration) -> bool {
        if !self.still_there() {
            self.gone = true;
            return true;
        }
        let (sender, receiver) = mpsc::channel();
        let point = self.point.clone();
        // A thread of its own: unmounting waits for requests that may never be answered.
        thread::spawn(move || sender.send(unmount(point.as_str(), UnmountFlags::empty()).is_ok()));
        let clean = receiver.recv_timeout(limit).unwrap_or(false);
        if !clean {
            self.force();
        }
        self.gone = true;
        clean
    }

    /// Aborts the connection and detaches the mount at once; waits for nothing.
    pub fn force(&mut self) {
        if self.still_there() {
            let _ = unmount(self.point.as_str(), UnmountFlags::FORCE | UnmountFlags::DETACH);
        }
        self.gone = true;
    }

    /// Whether our own mount, not somebody else's, is at the mount point.
    fn still_there(&self) -> bool {
        !self.gone && mounted_at(&self.point) == Some(self.connection)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        self.force();
    }
}

/// Device minor of the topmost fuse mount at a path. Reads mountinfo only, so it cannot hang.
fn mounted_at(point: &str) -> Option<u32> {
    find_mount(&fs::read_to_string("/proc/self/mountinfo").ok()?, point)
}

fn find_mount(mountinfo: &str, point: &str) -> Option<u32> {
    let escaped = escape(point);
    let line = mountinfo.lines().rfind(|line| line.split(' ').nth(4) == Some(&escaped))?;
    let is_fuse = line.split(" - ").nth(1)?.starts_with("fuse");
    let (_, minor) = line.split(' ').nth(2)?.split_once(':')?;
    if is_fuse { minor.parse().ok() } else { None }
}

/// mountinfo writes white space and backslashes as octal.
fn escape(path: &str) -> String {
    path.replace('\\', "\\134").replace(' ', "\\040").replace('\t', "\\011").replace('\n', "\\012")
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "22 1 0:21 / /mnt rw - tmpfs tmpfs rw\n\
                        30 22 0:45 / /mnt/a\\040b rw,nosuid shared:1 - fuse lab rw\n\
                        31 22 0:46 / /mnt/a\\040b rw - fuse lab rw\n";

    #[test]
    fn the_topmost_mount_of_a_path_counts() {
        assert_eq!(find_mount(INFO, "/mnt/a b"), Some(46));
        assert_eq!(find_mount(INFO, "/mnt/a"), None);
    }

    #[test]
    fn a_mount_of_another_kind_is_not_ours() {
        assert_eq!(find_mount(INFO, "/mnt"), None);
    }
}
