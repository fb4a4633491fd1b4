//! A host program with all that it needs to start, as files with the paths the loader will
//! look at.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::{Component, Path, PathBuf};

use super::elf::{self, ElfError, Needs};
use super::search::{self, Place};
use crate::host::files;

/// Files of one program; fio of Debian has about a hundred.
const MAX_FILES: usize = 1024;
/// Largest file taken, bytes.
const MAX_FILE_BYTES: u64 = 512 << 20;

/// Why a program cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum ClosureError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is not what it must be.
    #[error("{}: {source}", path.display())]
    Elf {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ElfError,
    },
    /// A library is nowhere.
    #[error("{} needs {library}, which is in none of the places the loader looks at", by.display())]
    Missing {
        /// The library.
        library: String,
        /// Who asks.
        by: PathBuf,
    },
    /// Beyond a limit.
    #[error("{} needs more than {MAX_FILES} files", program.display())]
    TooMany {
        /// The program.
        program: PathBuf,
    },
}

/// Files of a closure: where the guest finds each, and its bytes on the host.
pub type Files = BTreeMap<PathBuf, PathBuf>;

/// The program at `program`, its loader and its libraries, recursively. The paths in the guest
/// are those that were asked for (the soname, not the file a link leads to), without links:
/// `/lib/x` and `/usr/lib/x` may be one file on the host and are two entries here only if both
/// are asked for.
///
/// # Errors
///
/// [`ClosureError`].
pub fn closure(program: &Path, configured: &[PathBuf]) -> Result<Files, ClosureError> {
    let mut files = Files::new();
    let mut sonames = BTreeSet::new();
    let first = Place { host: program.to_path_buf(), guest: program.to_path_buf() };
    let mut queue = VecDeque::from([(first, Vec::new())]);
    while let Some((place, inherited)) = queue.pop_front() {
        let real = real(&place.host)?;
        // $ORIGIN is the directory of the file, not that of a link to it.
        let needs = needs_of(&real)?;
        if files.insert(place.guest, real.clone()).is_some() {
            continue;
        }
        if files.len() > MAX_FILES {
            return Err(ClosureError::TooMany { program: program.to_path_buf() });
        }
        if let Some(loader) = &needs.interpreter {
            let path = PathBuf::from(loader);
            queue.push_back((Place { host: path.clone(), guest: path }, Vec::new()));
        }
        let below = rpaths(&needs, &real, &inherited);
        for library in &needs.libraries {
            // The loader loads each soname once, from where it was found first.
            if !sonames.insert(library.clone()) {
                continue;
            }
            let found = find(library, &real, &needs, &inherited, configured)?;
            queue.push_back((found, below.clone()));
        }
    }
    Ok(files)
}

fn rpaths(needs: &Needs, path: &Path, inherited: &[PathBuf]) -> Vec<PathBuf> {
    let own: &[String] = if needs.runpath.is_empty() { &needs.rpath } else { &[] };
    let own = own.iter().map(|dir| search::expand(dir, path));
    own.chain(inherited.iter().cloned()).collect()
}

fn find(
    library: &str,
    by: &Path,
    needs: &Needs,
    inherited: &[PathBuf],
    configured: &[PathBuf],
) -> Result<Place, ClosureError> {
    search::places(library, by, needs, inherited, configured)
        .into_iter()
        .map(|place| Place { host: normal(&place.host), guest: normal(&place.guest) })
        // The loader passes over files of other machines, as on a host with 32-bit libraries.
        .find(|place| place.host.is_file() && needs_of(&place.host).is_ok())
        .ok_or_else(|| ClosureError::Missing { library: library.to_owned(), by: by.to_path_buf() })
}

fn needs_of(path: &Path) -> Result<Needs, ClosureError> {
    let data = files::read_bounded(path, MAX_FILE_BYTES)
        .map_err(|source| ClosureError::Read { path: path.to_path_buf(), source })?;
    elf::needs(&data).map_err(|source| ClosureError::Elf { path: path.to_path_buf(), source })
}

fn real(path: &Path) -> Result<PathBuf, ClosureError> {
    path.canonicalize().map_err(|source| ClosureError::Read { path: path.to_path_buf(), source })
}

/// Without `.` and `..`: archives cannot hold them.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}

/// The path of a program: `name` itself if it has a slash, else the first in `path_variable`.
pub fn which(name: &str, path_variable: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let runnable = |path: &PathBuf| {
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(runnable);
    }
    // An empty entry means the working directory, from where nothing is taken.
    path_variable
        .split(':')
        .filter(|dir| dir.starts_with('/'))
        .map(|dir| Path::new(dir).join(name))
        .find(runnable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configured() -> Vec<PathBuf> {
        search::configured_dirs(Path::new("/etc/ld.so.conf"))
    }

    #[test]
    fn a_program_comes_with_loader_and_libc() {
        let program = std::env::current_exe().unwrap();
        let files = closure(&program, &configured()).unwrap();
        let names: Vec<_> = files.keys().filter_map(|path| path.file_name()?.to_str()).collect();
        assert!(
            names.contains(&"libc.so.6") && names.contains(&"ld-linux-x86-64.so.2"),
            "{names:?}"
        );
        assert!(files.contains_key(&program));
        assert!(files.keys().all(|path| path.is_absolute()));
    }

    #[test]
    fn a_missing_library_is_named_with_who_asks() {
        let program = std::env::current_exe().unwrap();
        let error = closure(&program, &[]).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("in none of the places") && text.contains(" needs lib"), "{text}");
    }

    #[test]
    fn other_files_are_refused() {
        assert!(matches!(closure(Path::new("/etc/passwd"), &[]), Err(ClosureError::Elf { .. })));
        assert!(matches!(closure(Path::new("/none"), &[]), Err(ClosureError::Read { .. })));
    }

    #[test]
    fn programs_are_looked_up_in_absolute_directories_only() {
        assert!(which("sh", "/nowhere:/bin").is_some());
        let up = "../".repeat(20);
        assert!(Path::new(&format!("{up}bin/sh")).exists());
        assert_eq!(which("sh", &format!("{up}bin::.")), None);
        assert_eq!(which("/etc/passwd", ""), None);
    }

    #[test]
    fn paths_lose_their_dots() {
        assert_eq!(normal(Path::new("/a/./b/../c")), Path::new("/a/c"));
    }
}
