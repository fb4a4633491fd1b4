//! Running the operations in order, and the form of their lines.

use std::io;
use std::path::{Path, PathBuf};

use super::{attributes, data, directories, names};
use crate::client::out;
use crate::sys::{errno, file};
use crate::text;

/// Longest line, bytes.
const MAX_LINE: usize = 200;

/// Where the operations work and where their lines go.
pub(super) struct Tape {
    root: PathBuf,
}

/// Runs every operation below `dir`, in a directory of its own that is gone afterwards.
pub(crate) fn run(dir: &Path) {
    file::umask(0o022);
    let tape = Tape { root: dir.join("lab-tree") };
    tape.op("mkdir root", || std::fs::create_dir(&tape.root));
    directories::run(&tape);
    data::run(&tape);
    names::run(&tape);
    attributes::run(&tape);
    tape.op("remove all", || std::fs::remove_dir_all(&tape.root));
    tape.op("stat root", || std::fs::symlink_metadata(&tape.root).map(|_| "still there"));
}

/// What an operation gives, in words.
pub(super) trait Words {
    /// The words after the arrow.
    fn words(self) -> String;
}

impl Words for () {
    fn words(self) -> String {
        "ok".to_owned()
    }
}

impl Words for &str {
    fn words(self) -> String {
        self.to_owned()
    }
}

impl Words for String {
    fn words(self) -> String {
        self
    }
}

impl Words for u64 {
    fn words(self) -> String {
        self.to_string()
    }
}

impl Words for usize {
    fn words(self) -> String {
        self.to_string()
    }
}

impl Tape {
    /// The path of `name` in the directory of the tree.
    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Runs one operation: its name goes out before, its result after.
    pub(super) fn op<T: Words>(&self, name: &str, run: impl FnOnce() -> io::Result<T>) {
        out::line(&format!("? {name}"));
        let result = run().map_or_else(|e| errno::of(&e), Words::words);
        let line: String = format!("{name} -> {result}")
            .chars()
            .flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] })
            .collect();
        out::line(text::start(&line, MAX_LINE));
    }
}

/// Bytes that tell their place: a lost, repeated or moved block changes the sum.
pub(super) fn pattern(length: usize, salt: u8) -> Vec<u8> {
    (0..length).map(|i| (i ^ (i >> 8) ^ (i >> 16)) as u8 ^ salt).collect()
}

/// FNV-1a over the bytes, and their count.
pub(super) fn sum(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{} bytes {hash:016x}", bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_tell_blocks_apart() {
        assert_eq!(sum(b""), "0 bytes cbf29ce484222325");
        let good = pattern(8192, 0);
        let mut moved = good.clone();
        moved.rotate_left(4096);
        assert_ne!(sum(&good), sum(&moved));
    }
}
