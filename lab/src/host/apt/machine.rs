//! What this machine says about itself: its package sources and its release.

use std::path::{Path, PathBuf};

use super::sources::{self, Source};
use crate::host::files;

/// Largest source file read, bytes; it may hold keys.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Keyrings of Debian, in the order they are tried when a source names none.
const KEYRINGS: [&str; 2] = [
    "/usr/share/keyrings/debian-archive-keyring.gpg",
    "/usr/share/keyrings/debian-archive-keyring.pgp",
];

/// All sources below an apt directory, usually `/etc/apt`. Files that cannot be read are left
/// out, as are those that apt itself would not read for their names.
pub fn read_sources(etc_apt: &Path) -> Vec<Source> {
    let mut files = vec![etc_apt.join("sources.list")];
    let parts = std::fs::read_dir(etc_apt.join("sources.list.d"));
    let mut parts: Vec<PathBuf> =
        parts.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    parts.sort();
    files.extend(parts);
    files.iter().flat_map(|file| read_file(file)).collect()
}

fn read_file(path: &Path) -> Vec<Source> {
    let parse: fn(&str) -> Vec<Source> = match path.extension().and_then(|e| e.to_str()) {
        Some("list") => sources::parse_list,
        Some("sources") => sources::parse_deb822,
        _ => return Vec::new(),
    };
    let bytes = files::read_bounded(path, MAX_FILE_BYTES).unwrap_or_default();
    parse(&String::from_utf8_lossy(&bytes))
}

/// The keyring that Debian's signatures are checked with where a source names none.
pub fn keyring() -> Option<PathBuf> {
    KEYRINGS.iter().map(PathBuf::from).find(|path| path.is_file())
}

/// The distribution, from `os-release`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OsRelease {
    /// E.g. `debian`.
    pub id: String,
    /// E.g. `bookworm`.
    pub codename: Option<String>,
}

impl OsRelease {
    /// Reads the text of an `os-release` file.
    pub fn parse(text: &str) -> OsRelease {
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            line.map(|v| v.trim().trim_matches(['"', '\'']).to_owned()).filter(|v| !v.is_empty())
        };
        OsRelease { id: value("ID").unwrap_or_default(), codename: value("VERSION_CODENAME") }
    }

    /// That of this machine; empty where there is none.
    pub fn read() -> OsRelease {
        let bytes = files::read_bounded(Path::new("/etc/os-release"), MAX_FILE_BYTES);
        OsRelease::parse(&String::from_utf8_lossy(&bytes.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn os_release_is_read_with_and_without_quotes() {
        let text = "NAME=\"Debian\"\nVERSION_CODENAME=bookworm\nID='debian'\n";
        let wanted = OsRelease { id: "debian".into(), codename: Some("bookworm".into()) };
        assert_eq!(OsRelease::parse(text), wanted);
        assert_eq!(OsRelease::parse("VERSION_ID=1\n"), OsRelease::default());
    }

    #[test]
    fn both_forms_are_found_and_other_names_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let parts = dir.path().join("sources.list.d");
        std::fs::create_dir(&parts).unwrap();
        let line = |suite: &str| format!("deb http://m.example/debian {suite} main\n");
        std::fs::write(dir.path().join("sources.list"), line("a")).unwrap();
        std::fs::write(parts.join("b.list"), line("b")).unwrap();
        std::fs::write(parts.join("c.sources"), "Types: deb\nURIs: u\nSuites: c\n").unwrap();
        std::fs::write(parts.join("d.list.disabled"), line("d")).unwrap();
        let suites: Vec<_> =
            read_sources(dir.path()).into_iter().flat_map(|source| source.suites).collect();
        assert_eq!(suites, ["a", "b", "c"]);
    }
}
