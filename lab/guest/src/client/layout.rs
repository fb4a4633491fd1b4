//! The files of a fio job, written in large blocks beforehand: fio writes them in blocks of
//! the job's size, which takes ten times as long as a short run itself.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::out;
use crate::sys::errno;

/// Size of one write, bytes.
const CHUNK: usize = 1 << 20;

/// Writes `size` bytes to the file of each of `jobs` jobs below `dir`, under the names that
/// fio gives the files of a job called `lab`.
pub(crate) fn run(dir: &Path, size: u64, jobs: u32) {
    for job in 0..jobs {
        if let Err(e) = file(&dir.join(format!("lab.{job}.0")), size) {
            return out::line(&errno::of(&e));
        }
    }
    out::line("done");
}

/// Says `ok` after each call, so that the agent sees one that does not return.
fn file(path: &Path, size: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    out::line("ok");
    let chunk: Vec<u8> = (0..CHUNK).map(|i| (i ^ (i >> 8)) as u8).collect();
    let mut at = 0;
    while at < size {
        let length = (size - at).min(CHUNK as u64);
        file.write_all_at(&chunk[..length as usize], at)?;
        at += length;
        out::line("ok");
    }
    file.sync_all()
}
