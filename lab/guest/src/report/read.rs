//! Small reads of pseudo files.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

/// Largest pseudo file taken, bytes.
const MAX_BYTES: u64 = 64 << 10;

/// The file's text without the white space around it, at most 64 KiB; none when it cannot be
/// read.
pub(crate) fn text(path: impl AsRef<Path>) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// The file's text as a value.
pub(crate) fn value<T: FromStr>(path: impl AsRef<Path>) -> Option<T> {
    text(path)?.parse().ok()
}

/// Numbers at the end of directory entries `<prefix><number>`, ascending.
pub(crate) fn numbered(directory: &str, prefix: &str) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut numbers: Vec<u32> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.strip_prefix(prefix)?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
}
