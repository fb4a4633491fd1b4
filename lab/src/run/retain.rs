//! How many runs are kept. The oldest go first; one that goes on or is being read stays.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use walkdir::WalkDir;

use super::{log, record};

/// Begin of the name of a run that is being removed.
const GONE: &str = ".gone-";

/// What is kept; a run of the future counts as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Runs, at least one.
    pub runs: usize,
    /// Bytes on disk of all of them together.
    pub bytes: u64,
}

impl Default for Keep {
    fn default() -> Keep {
        Keep { runs: 100, bytes: 5 << 30 }
    }
}

impl Keep {
    /// From what the user set, `LAB_KEEP_RUNS` and `LAB_KEEP_BYTES`; else the usual.
    ///
    /// Errors: one line about a value that is none.
    pub fn read(runs: Option<&str>, bytes: Option<&str>) -> Result<Keep, String> {
        let usual = Keep::default();
        let runs = match runs {
            Some(text) => text
                .parse()
                .ok()
                .filter(|runs| *runs > 0)
                .ok_or_else(|| format!("LAB_KEEP_RUNS is `{text}`, not a number from 1"))?,
            None => usual.runs,
        };
        let bytes = match bytes {
            Some(text) => text
                .parse::<bytesize::ByteSize>()
                .map_err(|_| format!("LAB_KEEP_BYTES is `{text}`, not a size such as 5GiB"))?
                .as_u64(),
            None => usual.bytes,
        };
        Ok(Keep { runs, bytes })
    }
}

/// What was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Removed {
    /// Runs.
    pub runs: usize,
    /// Their bytes on disk.
    pub bytes: u64,
}

/// Removes the oldest runs below `runs` until what is left fits `keep`; the newest stays.
///
/// A run that cannot be removed is passed over. Errors: the directory cannot be read.
pub fn prune(runs: &Path, keep: Keep) -> io::Result<Removed> {
    finish_removals(runs)?;
    let names = record::names(runs).map_err(io::Error::other)?;
    let sizes: Vec<u64> = names.iter().map(|name| size(&runs.join(name))).collect();
    let (mut count, mut total) = (names.len(), sizes.iter().sum::<u64>());
    let mut removed = Removed::default();
    for (name, bytes) in names.iter().zip(sizes).take(names.len().saturating_sub(1)) {
        if count <= keep.runs.max(1) && total <= keep.bytes {
            break;
        }
        if remove(runs, name).unwrap_or(false) {
            (count, total) = (count - 1, total.saturating_sub(bytes));
            removed = Removed { runs: removed.runs + 1, bytes: removed.bytes + bytes };
        }
    }
    Ok(removed)
}

/// Removes one run, unless somebody holds it; whether it went.
fn remove(runs: &Path, name: &str) -> io::Result<bool> {
    let file = fs::File::open(runs.join(name).join(log::FILE))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(false),
        Err(e) => return Err(e.into()),
    }
    // One step makes it invisible; a removal that is cut off is finished by the next.
    let gone = runs.join(format!("{GONE}{name}"));
    fs::rename(runs.join(name), &gone)?;
    let _ = fs::remove_dir_all(gone);
    Ok(true)
}

fn finish_removals(runs: &Path) -> io::Result<()> {
    for entry in fs::read_dir(runs)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(GONE) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

/// Bytes on disk of a directory; links are not followed.
fn size(dir: &Path) -> u64 {
    let files = WalkDir::new(dir).into_iter().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|meta| meta.blocks() * 512).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::log::EventLog;
    use crate::run::record::RunDir;

    /// Runs by day, each with a file of 64 KiB.
    fn made(days: std::ops::RangeInclusive<u32>) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for day in days {
            let run = dir.path().join(format!("202601{day:02}T000000Z-abcdef"));
            fs::create_dir_all(run.join("cases/k")).unwrap();
            fs::write(run.join(log::FILE), "").unwrap();
            fs::write(run.join("cases/k/console.log"), vec![b'x'; 64 << 10]).unwrap();
        }
        dir
    }

    fn days(dir: &Path) -> Vec<String> {
        record::names(dir).unwrap().iter().map(|name| name[6..8].to_string()).collect()
    }

    #[test]
    fn the_oldest_go_by_count_and_by_size() {
        let dir = made(1..=5);
        let by_count = Keep { runs: 3, bytes: u64::MAX };
        assert_eq!(prune(dir.path(), by_count).unwrap().runs, 2);
        assert_eq!(days(dir.path()), ["03", "04", "05"]);
        let by_size = Keep { runs: 100, bytes: 180 << 10 };
        let removed = prune(dir.path(), by_size).unwrap();
        assert_eq!(days(dir.path()), ["04", "05"]);
        assert!(removed.bytes >= 64 << 10, "{removed:?}");
        assert_eq!(prune(dir.path(), by_size).unwrap(), Removed::default());
        prune(dir.path(), Keep { runs: 0, bytes: 0 }).unwrap();
        assert_eq!(days(dir.path()), ["05"], "the newest always stays");
    }

    #[test]
    fn a_run_that_goes_on_or_is_read_stays() {
        let dir = made(1..=4);
        let run = |day: &str| dir.path().join(format!("202601{day}T000000Z-abcdef"));
        let writer = EventLog::resume(&run("01")).unwrap();
        let reader = RunDir::open(&run("02")).hold().unwrap();
        let one = Keep { runs: 1, bytes: u64::MAX };
        assert_eq!(prune(dir.path(), one).unwrap().runs, 1);
        assert_eq!(days(dir.path()), ["01", "02", "04"]);
        drop((writer, reader));
        prune(dir.path(), one).unwrap();
        assert_eq!(days(dir.path()), ["04"]);
    }

    #[test]
    fn the_user_sets_both_bounds() {
        assert_eq!(Keep::read(None, None), Ok(Keep::default()));
        let set = Keep { runs: 7, bytes: 2 << 20 };
        assert_eq!(Keep::read(Some("7"), Some("2MiB")), Ok(set));
        for (runs, bytes) in [(Some("0"), None), (Some("x"), None), (None, Some("much"))] {
            assert!(Keep::read(runs, bytes).unwrap_err().starts_with("LAB_KEEP_"));
        }
    }

    #[test]
    fn a_removal_that_was_cut_off_is_finished_and_never_seen() {
        let dir = made(1..=2);
        let gone = dir.path().join(".gone-20260101T000000Z-abcdef");
        fs::rename(dir.path().join("20260101T000000Z-abcdef"), &gone).unwrap();
        assert_eq!(days(dir.path()), ["02"]);
        prune(dir.path(), Keep::default()).unwrap();
        assert!(!gone.exists());
    }
}
