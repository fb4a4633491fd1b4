//! Modes, owners, times and extended attributes.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::time::{Duration, UNIX_EPOCH};

use super::tape::Tape;
use crate::sys::file;

pub(super) fn run(tape: &Tape) {
    modes(tape);
    owners_and_times(tape);
    xattrs(tape);
    special(tape);
}

fn modes(tape: &Tape) {
    let mode = |name: &str| -> io::Result<String> {
        Ok(format!("{:06o}", fs::symlink_metadata(tape.at(name))?.mode()))
    };
    let chmod = |name: &str, mode| fs::set_permissions(tape.at(name), Permissions::from_mode(mode));
    tape.op("create m", || fs::write(tape.at("m"), b"12345"));
    tape.op("mode of m", || mode("m"));
    tape.op("mode of d", || mode("d"));
    tape.op("mode of soft", || mode("soft"));
    tape.op("chmod m 0600", || chmod("m", 0o600));
    tape.op("mode of m after 0600", || mode("m"));
    tape.op("chmod m 4755", || chmod("m", 0o4755));
    tape.op("mode of m after 4755", || mode("m"));
    tape.op("chmod d 1777", || chmod("d", 0o1777));
    tape.op("mode of d after 1777", || mode("d"));
    tape.op("chmod absent", || chmod("absent", 0o600));
    tape.op("size and nlink of m", || {
        let seen = fs::metadata(tape.at("m"))?;
        Ok(format!("{} {}", seen.len(), seen.nlink()))
    });
}

fn owners_and_times(tape: &Tape) {
    let m = tape.at("m");
    tape.op("chown m 12 34", || chown(&m, Some(12), Some(34)));
    tape.op("owner of m", || {
        let seen = fs::metadata(&m)?;
        Ok(format!("{} {}", seen.uid(), seen.gid()))
    });
    tape.op("utimens m", || {
        let time = UNIX_EPOCH + Duration::new(1_000_000_007, 123_000_000);
        let times = fs::FileTimes::new().set_accessed(time).set_modified(time);
        OpenOptions::new().write(true).open(&m)?.set_times(times)
    });
    tape.op("times of m", || {
        let seen = fs::metadata(&m)?;
        Ok(format!("{} {} {}", seen.atime(), seen.mtime(), seen.mtime_nsec()))
    });
    tape.op("write m moves its mtime", || {
        fs::write(&m, b"new")?;
        Ok(format!("{}", fs::metadata(&m)?.mtime() > 1_000_000_007))
    });
}

fn xattrs(tape: &Tape) {
    let m = tape.at("m");
    let get = |name: &str, size| -> io::Result<String> {
        let (length, value) = file::get_xattr(&m, name, size)?;
        Ok(format!("{length} [{}]", String::from_utf8_lossy(&value)))
    };
    tape.op("getxattr m user.a", || get("user.a", 64));
    tape.op("setxattr m user.a REPLACE", || {
        file::set_xattr(&m, "user.a", b"v", libc::XATTR_REPLACE)
    });
    tape.op("setxattr m user.a", || file::set_xattr(&m, "user.a", b"value", 0));
    tape.op("setxattr m user.a CREATE", || file::set_xattr(&m, "user.a", b"v", libc::XATTR_CREATE));
    tape.op("setxattr m user.b", || file::set_xattr(&m, "user.b", b"", 0));
    tape.op("getxattr m user.a again", || get("user.a", 64));
    tape.op("getxattr m user.a of size 0", || get("user.a", 0));
    tape.op("getxattr m user.a of size 2", || get("user.a", 2));
    tape.op("getxattr m user.b", || get("user.b", 64));
    tape.op("listxattr m", || Ok(format!("{:?}", file::list_xattr(&m)?)));
    tape.op("setxattr m user.big", || file::set_xattr(&m, "user.big", &[7; 2000], 0));
    tape.op("getxattr m user.big", || Ok(file::get_xattr(&m, "user.big", 4096)?.0));
    tape.op("removexattr m user.a", || file::remove_xattr(&m, "user.a"));
    tape.op("removexattr m user.a again", || file::remove_xattr(&m, "user.a"));
    tape.op("listxattr m after", || Ok(format!("{:?}", file::list_xattr(&m)?)));
}

fn special(tape: &Tape) {
    let fifo = tape.at("fifo");
    tape.op("mkfifo fifo", || file::make_fifo(&fifo, 0o640));
    tape.op("mode of fifo", || Ok(format!("{:06o}", fs::symlink_metadata(&fifo)?.mode())));
    tape.op("unlink fifo", || fs::remove_file(&fifo));
    tape.op("close reports no error", || {
        file::close(File::create(tape.at("closed"))?)?;
        fs::remove_file(tape.at("closed"))
    });
}
