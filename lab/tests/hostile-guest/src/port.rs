//! A virtio-serial port, written to without any care for what the other side may take.

use std::fs::File;
use std::io::{Read, Write};
use std::time::Duration;

use lab_proto::frame::{self, Kind};

const CLASS: &str = "/sys/class/virtio-ports";

/// An open port.
pub(crate) struct Port {
    file: File,
}

impl Port {
    /// Opens the port called `name`; waits for it for ever, as nobody else needs this process.
    pub(crate) fn open(name: &str) -> Port {
        loop {
            let entries = std::fs::read_dir(CLASS).into_iter().flatten().flatten();
            for entry in entries {
                let told = std::fs::read_to_string(entry.path().join("name")).unwrap_or_default();
                let device = std::path::Path::new("/dev").join(entry.file_name());
                if told.trim() == name
                    && let Ok(file) = File::options().read(true).write(true).open(device)
                {
                    return Port { file };
                }
            }
            pause();
        }
    }

    /// Some bytes, however long they take to come.
    pub(crate) fn read(&mut self) -> Vec<u8> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            match self.file.read(&mut buffer) {
                Ok(count @ 1..) => return buffer[..count].to_vec(),
                _ => pause(),
            }
        }
    }

    /// Writes bytes as they are; whether they went out.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> bool {
        self.file.write_all(bytes).is_ok()
    }

    /// Writes the same bytes again and again, without end.
    pub(crate) fn pour(&mut self, bytes: &[u8]) -> ! {
        let many = bytes.repeat(1 + (32 << 10) / bytes.len().max(1));
        loop {
            if !self.raw(&many) {
                pause();
            }
        }
    }

    /// Writes a frame with this body.
    pub(crate) fn body(&mut self, kind: Kind, session: u64, body: &[u8]) -> bool {
        frame::encode(kind, session, body).is_ok_and(|bytes| self.raw(&bytes))
    }

    /// Writes a good frame.
    pub(crate) fn json<T: serde::Serialize>(&mut self, kind: Kind, session: u64, value: &T) {
        if let Ok(bytes) = frame::encode_json(kind, session, value) {
            self.raw(&bytes);
        }
    }
}

/// A moment of nothing.
pub(crate) fn pause() {
    std::thread::sleep(Duration::from_millis(5));
}
