//! Where the dynamic loader of glibc looks for libraries; the rules alone, without running it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::elf::Needs;
use crate::host::files;

/// Searched after all others, whatever the configuration says.
const STANDARD: [&str; 6] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];
/// Largest configuration file read, bytes.
const MAX_CONF_BYTES: u64 = 64 << 10;
/// How deep configuration files may include each other.
const MAX_DEPTH: usize = 8;

/// The directories of `ld.so.conf`, in order, then the standard ones.
pub fn configured_dirs(conf: &Path) -> Vec<PathBuf> {
    let (mut dirs, mut seen) = (Vec::new(), BTreeSet::new());
    read_conf(conf, MAX_DEPTH, &mut dirs);
    dirs.extend(STANDARD.iter().map(PathBuf::from));
    dirs.retain(|dir| seen.insert(dir.clone()));
    dirs
}

fn read_conf(conf: &Path, depth: usize, dirs: &mut Vec<PathBuf>) {
    let Ok(bytes) = files::read_bounded(conf, MAX_CONF_BYTES) else { return };
    for line in String::from_utf8_lossy(&bytes).lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(pattern) = line.strip_prefix("include ").filter(|_| depth > 0) {
            let base = conf.parent().unwrap_or(Path::new("/"));
            for file in included(&base.join(pattern.trim())) {
                read_conf(&file, depth - 1, dirs);
            }
        } else if line.starts_with('/') {
            dirs.push(PathBuf::from(line));
        }
    }
}

/// Files that match a pattern whose last component may hold wildcards, sorted.
fn included(pattern: &Path) -> Vec<PathBuf> {
    let (Some(dir), Some(name)) = (pattern.parent(), pattern.file_name()) else {
        return Vec::new();
    };
    let Ok(glob) = globset::Glob::new(&name.to_string_lossy()) else { return Vec::new() };
    let matcher = glob.compile_matcher();
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .filter(|entry| matcher.is_match(Path::new(&entry.file_name())))
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}

/// One place where a library may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Path on the host.
    pub host: PathBuf,
    /// Path at which the loader of a guest finds it. A guest has no cache of the loader, so
    /// what only the host's configuration leads to moves to a standard directory.
    pub guest: PathBuf,
}

/// Where `library` may be when the file at `path` with these `needs` asks for it, best first.
/// `inherited` is the RPATH of those that loaded the file.
pub fn places(
    library: &str,
    path: &Path,
    needs: &Needs,
    inherited: &[PathBuf],
    configured: &[PathBuf],
) -> Vec<Place> {
    let same = |path: PathBuf| Place { guest: path.clone(), host: path };
    // A name with a slash is a path and is not searched for.
    if library.contains('/') {
        return vec![same(expand(library, path))];
    }
    let mut own = Vec::new();
    // A RUNPATH switches off the RPATHs, also those inherited.
    if needs.runpath.is_empty() {
        own.extend(needs.rpath.iter().map(|dir| expand(dir, path)));
        own.extend(inherited.iter().cloned());
    }
    own.extend(needs.runpath.iter().map(|dir| expand(dir, path)));
    let own = own.into_iter().map(|dir| same(dir.join(library)));
    let shared = configured.iter().map(|dir| {
        let is_standard = STANDARD.iter().any(|standard| dir == Path::new(standard));
        let guest = if is_standard { dir } else { Path::new(STANDARD[0]) };
        Place { host: dir.join(library), guest: guest.join(library) }
    });
    own.chain(shared).collect()
}

/// Replaces the loader's words in a search path of the file at `path`.
pub fn expand(dir: &str, path: &Path) -> PathBuf {
    let origin = path.parent().unwrap_or(Path::new("/")).to_string_lossy();
    let words =
        [("ORIGIN", origin.as_ref()), ("LIB", "lib/x86_64-linux-gnu"), ("PLATFORM", "x86_64")];
    let mut text = dir.to_owned();
    for (word, value) in words {
        text = text.replace(&format!("${{{word}}}"), value).replace(&format!("${word}"), value);
    }
    PathBuf::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(rpath: &[&str], runpath: &[&str]) -> Needs {
        let owned = |dirs: &[&str]| dirs.iter().map(|dir| (*dir).to_owned()).collect();
        Needs { rpath: owned(rpath), runpath: owned(runpath), ..Needs::default() }
    }

    fn found(library: &str, needs: &Needs) -> Vec<String> {
        let inherited = [PathBuf::from("/inherited")];
        let all = places(library, Path::new("/opt/p/bin/x"), needs, &inherited, &["/lib".into()]);
        all.into_iter().map(|place| place.host.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn rpath_comes_first_and_is_inherited() {
        let places = found("l.so", &needs(&["$ORIGIN/../lib"], &[]));
        assert_eq!(places, ["/opt/p/bin/../lib/l.so", "/inherited/l.so", "/lib/l.so"]);
    }

    #[test]
    fn runpath_switches_rpath_off() {
        let places = found("l.so", &needs(&["/r"], &["${ORIGIN}/plugins"]));
        assert_eq!(places, ["/opt/p/bin/plugins/l.so", "/lib/l.so"]);
    }

    #[test]
    fn a_path_is_not_searched_for() {
        assert_eq!(found("/a/l.so", &needs(&["/r"], &[])), ["/a/l.so"]);
    }

    #[test]
    fn what_only_the_configuration_finds_moves_to_a_standard_directory() {
        let configured = ["/usr/local/lib".into(), "/usr/lib".into()];
        let all = places("l.so", Path::new("/x"), &needs(&["/r"], &[]), &[], &configured);
        let guest: Vec<_> = all.iter().map(|place| place.guest.to_string_lossy()).collect();
        assert_eq!(guest, ["/r/l.so", "/lib/x86_64-linux-gnu/l.so", "/usr/lib/l.so"]);
    }

    #[test]
    fn the_configuration_is_followed_and_a_loop_ends() {
        let dir = tempfile::tempdir().unwrap();
        let conf = dir.path().join("ld.so.conf");
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::fs::write(&conf, "include d/*.conf\n/last # comment\ninclude ld.so.conf\n").unwrap();
        std::fs::write(dir.path().join("d/b.conf"), "/b\nrelative\n").unwrap();
        std::fs::write(dir.path().join("d/a.conf"), "/a\n").unwrap();
        std::fs::write(dir.path().join("d/c.other"), "/c\n").unwrap();
        let dirs = configured_dirs(&conf);
        let own: Vec<_> = dirs.iter().take(3).map(|dir| dir.to_string_lossy()).collect();
        assert_eq!(own, ["/a", "/b", "/last"]);
        assert_eq!(dirs.len(), 3 + STANDARD.len());
    }
}
