//! Snapshot files: read before the run, written for review after a case. The one place of
//! `judge` that does I/O.

use std::fs;
use std::io;
use std::path::Path;

use super::snapshot::{Pending, SnapshotSet, Wanted};

/// Largest snapshot that is read, bytes.
const MAX_SNAPSHOT: u64 = 4 << 20;

/// Reads the wanted snapshots below `root`, the `snapshots/` directory.
pub fn load(root: &Path, wanted: &[Wanted]) -> SnapshotSet {
    let mut set = SnapshotSet::default();
    for wanted in wanted {
        if let Some(text) = read(&root.join(&wanted.path)) {
            set.texts.insert(wanted.path.clone(), text);
        }
    }
    set
}

/// The text of one snapshot; none when there is no such file.
fn read(path: &Path) -> Option<Result<String, String>> {
    let size = match fs::metadata(path) {
        Ok(meta) => meta.len(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
        Err(e) => return Some(Err(e.to_string())),
    };
    if size > MAX_SNAPSHOT {
        return Some(Err(format!("{size} bytes, the bound is {MAX_SNAPSHOT}")));
    }
    Some(parse(path))
}

fn parse(path: &Path) -> Result<String, String> {
    // insta takes a file without this line for its old format and prints about it.
    let raw = fs::read_to_string(path).map_err(|e| e.to_string())?;
    if raw.lines().next().map(str::trim_end) != Some("---") {
        return Err("it does not begin with `---`".into());
    }
    let snapshot = insta::Snapshot::from_file(path).map_err(|e| e.to_string())?;
    match snapshot.as_text() {
        Some(text) => Ok(text.to_string()),
        None => Err("it is not a text snapshot".into()),
    }
}

/// Writes a snapshot for review with `cargo insta review`.
pub fn write_pending(root: &Path, pending: &Pending) -> io::Result<()> {
    let path = root.join(format!("{}.new", pending.path));
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    // Whole or not at all: a reviewer may look at any time.
    let temporary = root.join(format!("{}.tmp-{}", pending.path, std::process::id()));
    fs::write(&temporary, format(pending))?;
    fs::rename(&temporary, &path)
}

/// insta's format. Strings are quoted as in JSON, which is also YAML.
fn format(pending: &Pending) -> String {
    let quote = |text: &str| serde_json::Value::from(text).to_string();
    format!(
        "---\nsource: {}\nexpression: {}\n---\n{}\n",
        quote(&pending.source),
        quote(&pending.expression),
        pending.text.trim_end()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending() -> Pending {
        Pending {
            path: "placement/stat/2x2@next-cpu.snap".into(),
            text: "## place\nqueue: \"1\"\n---\n  end\n".into(),
            expression: "placement/stat on 2x2, queue policy \"next-cpu\"".into(),
            source: "scenarios/placement/stat.toml".into(),
        }
    }

    fn wanted() -> Vec<Wanted> {
        vec![Wanted { path: pending().path, steps: vec![], per_topology: true }]
    }

    #[test]
    fn what_is_accepted_reads_as_what_was_written() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(load(dir.path(), &wanted()), SnapshotSet::default());
        write_pending(dir.path(), &pending()).unwrap();
        let new = dir.path().join("placement/stat/2x2@next-cpu.snap.new");
        fs::rename(&new, new.with_extension("")).unwrap();
        let set = load(dir.path(), &wanted());
        let text = set.texts[&pending().path].as_ref().unwrap();
        assert_eq!(text.trim_end(), pending().text.trim_end());
    }

    #[test]
    fn a_file_that_is_no_snapshot_is_told_and_not_new() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(pending().path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        for bad in ["", "text\n", "---\n: : [\n---\nx"] {
            fs::write(&path, bad).unwrap();
            assert!(load(dir.path(), &wanted()).texts[&pending().path].is_err(), "{bad:?}");
        }
    }
}
