//! Files that must be whole or absent, and their digests.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sha2::{Digest, Sha256};

/// SHA-256 of a file's bytes, lower-case hex.
///
/// # Errors
///
/// Those of opening and reading.
pub fn sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&digest.finalize())),
            count => digest.update(&buffer[..count]),
        }
    }
}

/// SHA-256 of bytes, lower-case hex.
pub fn sha256_bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads a file of at most `limit` bytes.
///
/// # Errors
///
/// Those of reading; [`io::ErrorKind::FileTooLarge`]; [`io::ErrorKind::InvalidInput`] for what
/// is no regular file, as reading a pipe might never end.
pub fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let text = format!("more than {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// Puts `bytes` at `path` in one step: others see the old file or the new one, also after a
/// crash. The mode is 0644.
///
/// # Errors
///
/// Those of writing.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::Builder::new()
        .prefix(".tmp-")
        .permissions(std::fs::Permissions::from_mode(0o644))
        .tempfile_in(dir)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    sync_dir(dir)
}

/// Moves a finished directory from `from` to `to`, which must not exist, after all below it is
/// on disk.
///
/// # Errors
///
/// Those of syncing and renaming.
pub fn publish_dir(from: &Path, to: &Path) -> io::Result<()> {
    rustix::fs::syncfs(File::open(from)?)?;
    std::fs::rename(from, to)?;
    sync_dir(to.parent().unwrap_or(Path::new("/")))
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Removes what killed processes left in `dir`: entries that begin with `.tmp-`. Only for the
/// holder of the directory's lock.
pub fn remove_leftovers(dir: &Path) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(".tmp-") {
            // One that stays costs space, nothing else.
            let path = entry.path();
            let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_agree_with_the_standard() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_bytes(b"abc"), abc);
        let dir = tempfile::tempdir().unwrap();
        replace(&dir.path().join("f"), b"abc").unwrap();
        assert_eq!(sha256(&dir.path().join("f")).unwrap(), abc);
    }

    #[test]
    fn reading_is_bounded_and_refuses_pipes() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        replace(&file, b"12345").unwrap();
        assert_eq!(read_bounded(&file, 5).unwrap(), b"12345");
        assert_eq!(read_bounded(&file, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let kind = read_bounded(dir.path(), 5).unwrap_err().kind();
        assert_eq!(kind, io::ErrorKind::InvalidInput);
    }

    #[test]
    fn leftovers_go_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join(".tmp-a/b")).unwrap();
        replace(&dir.path().join(".tmp-c"), b"").unwrap();
        replace(&dir.path().join("keep"), b"").unwrap();
        remove_leftovers(dir.path());
        let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().collect();
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].file_name(), "keep");
    }
}
