//! virtio-serial ports: found by name, opened, and read through disconnects.
//!
//! While the host is not connected a read gives end of file. That is not the end: the host of
//! a clone connects later, so the reader sleeps a little and tries again.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::report::read;

const CLASS: &str = "/sys/class/virtio-ports";

/// Pause between reads while the host is away.
const AWAY: Duration = Duration::from_millis(5);

/// Opens the port `name` for reading and writing, waiting for it to appear at most `limit`.
///
/// # Errors
/// `NotFound` when it does not appear, else what open says.
pub(crate) fn open(name: &str, limit: Duration) -> io::Result<File> {
    let start = Instant::now();
    loop {
        if let Some(device) = find(Path::new(CLASS), name) {
            match File::options().read(true).write(true).open(format!("/dev/{device}")) {
                // The device node may lag behind sysfs.
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                other => return other,
            }
        }
        if start.elapsed() >= limit {
            return Err(io::Error::new(ErrorKind::NotFound, format!("no port named {name}")));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Device name of the port called `name` below a class directory.
fn find(class: &Path, name: &str) -> Option<String> {
    let mut devices: Vec<_> = std::fs::read_dir(class).ok()?.flatten().collect();
    devices.sort_by_key(std::fs::DirEntry::file_name);
    devices
        .into_iter()
        .find(|device| read::text(device.path().join("name")).as_deref() == Some(name))
        .and_then(|device| device.file_name().into_string().ok())
}

/// Reads at least one byte, however long the host is away.
///
/// # Errors
/// What read says when the port is gone for good.
pub(crate) fn read_some(port: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match port.read(buffer) {
            Ok(0) => std::thread::sleep(AWAY),
            Ok(count) => return Ok(count),
            Err(e) if transient(&e) => std::thread::sleep(AWAY),
            Err(e) => return Err(e),
        }
    }
}

fn transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_found_by_its_name() {
        let class = std::env::temp_dir().join(format!("lab-ports-{}", std::process::id()));
        for (device, name) in [("vport0p1", "lab.bulk\n"), ("vport0p2", "lab.control\n")] {
            std::fs::create_dir_all(class.join(device)).unwrap();
            std::fs::write(class.join(device).join("name"), name).unwrap();
        }
        assert_eq!(find(&class, "lab.control").as_deref(), Some("vport0p2"));
        assert_eq!(find(&class, "lab.other"), None);
        std::fs::remove_dir_all(&class).unwrap();
    }
}
