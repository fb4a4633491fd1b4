//! mkdir, rmdir, readdir, depth and number.

use std::fs;
use std::io;
use std::path::Path;

use super::tape::Tape;

pub(super) fn run(tape: &Tape) {
    let at = |name: &str| tape.at(name);
    tape.op("mkdir d", || fs::create_dir(at("d")));
    tape.op("mkdir d again", || fs::create_dir(at("d")));
    tape.op("mkdir absent/e", || fs::create_dir(at("absent/e")));
    tape.op("mkdir d/sub", || fs::create_dir(at("d/sub")));
    tape.op("create d/file", || fs::write(at("d/file"), b"x"));
    tape.op("mkdir d/file/e", || fs::create_dir(at("d/file/e")));
    tape.op("readdir d", || list(&at("d")));
    tape.op("readdir d/file", || list(&at("d/file")));
    tape.op("readdir absent", || list(&at("absent")));
    tape.op("rmdir d", || fs::remove_dir(at("d")));
    tape.op("rmdir d/file", || fs::remove_dir(at("d/file")));
    tape.op("unlink d/sub", || fs::remove_file(at("d/sub")));
    tape.op("rmdir d/sub", || fs::remove_dir(at("d/sub")));
    tape.op("rmdir d/sub again", || fs::remove_dir(at("d/sub")));
    tape.op("fsync d", || fs::File::open(at("d"))?.sync_all());
    tape.op("mkdir 24 deep", || fs::create_dir_all(deep(tape)));
    tape.op("create 24 deep", || fs::write(deep(tape).join("leaf"), b"leaf"));
    tape.op("read 24 deep", || fs::read_to_string(deep(tape).join("leaf")));
    tape.op("create 200 in d", || {
        (0..200).try_for_each(|i| fs::write(at("d").join(format!("n{i:03}")), b""))
    });
    tape.op("readdir 201 of d", || {
        Ok(fs::read_dir(at("d"))?.collect::<io::Result<Vec<_>>>()?.len())
    });
    tape.op("unlink 200 in d", || {
        (0..200).try_for_each(|i| fs::remove_file(at("d").join(format!("n{i:03}"))))
    });
    tape.op("readdir d after", || list(&at("d")));
}

fn deep(tape: &Tape) -> std::path::PathBuf {
    tape.at(&["l"; 24].join("/"))
}

/// Names in a directory, sorted.
pub(super) fn list(dir: &Path) -> io::Result<String> {
    let mut names = fs::read_dir(dir)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<Vec<_>>>()?;
    names.sort();
    Ok(format!("[{}]", names.join(" ")))
}
