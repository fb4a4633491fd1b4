//! Trees that kernels are built in: one for each source and configuration, used by one build
//! at a time, moved from series to series by writing only the files that differ.
//!
//! A tree is a copy of its source (hard links, where the source never changes) in `src`, the
//! objects in `obj`, and `state.json`, which says what in `src` may differ from the source. It
//! is written before the first file is, so a build that was killed leaves a tree that the next
//! one brings back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::error::BuildError;
use super::output::{self, Warning};
use super::patch;
use super::source::{Listing, SourceTree};
use crate::host::process::{self, Program};
use crate::host::{files, lock, paths};
use crate::kernel::recipe::Patch;

/// Longest wait for another build in the tree.
const LOCK_LIMIT: Duration = Duration::from_secs(4 * 3600);
const COPY_LIMIT: Duration = Duration::from_secs(1800);
const APPLY_LIMIT: Duration = Duration::from_secs(60);
const MAX_STATE_BYTES: u64 = 64 << 20;
/// Bytes of a reject that are shown.
const MAX_REJECT_BYTES: usize = 4000;

/// What is known of a tree.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    /// Files that may differ from the source.
    touched: BTreeSet<String>,
    /// Files as copied from a live source.
    copied: Listing,
    /// The configuration is made, and by which Kconfig files.
    configured: bool,
    /// A build is going on, or was when its process died.
    #[serde(default)]
    building: bool,
    /// What the compiler said of the files as they are now.
    #[serde(default)]
    warnings: Vec<Warning>,
}

/// A tree that this process holds.
pub(super) struct Tree {
    dir: PathBuf,
    state: State,
    _lock: lock::Lock,
}

impl Tree {
    /// Takes the tree in `dir`, waiting for another build there, and makes it where needed.
    pub(super) async fn take(
        dir: PathBuf,
        source: &SourceTree,
        tell: &(dyn Fn(&str) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Tree, BuildError> {
        paths::create_private(&dir)?;
        let path = dir.join("lock");
        let short = Duration::from_millis(200);
        let lock = match lock::exclusive(&path, short, cancel).await {
            Err(lock::LockError::Busy { .. }) => {
                tell(&format!("waiting for another build in {}", dir.display()));
                lock::exclusive(&path, LOCK_LIMIT, cancel).await?
            }
            taken => taken?,
        };
        let state = read_state(&dir);
        let is_made = dir.join("src/Makefile").is_file();
        let mut tree = Tree { dir, state: state.unwrap_or_default(), _lock: lock };
        if source.live.is_none() && !is_made {
            tree.link(source, cancel).await?;
        }
        if let Some(listing) = &source.live {
            tree.copy(source, listing)?;
        }
        let obj = tree.obj();
        std::fs::create_dir_all(&obj).map_err(BuildError::io(&obj))?;
        Ok(tree)
    }

    pub(super) fn src(&self) -> PathBuf {
        self.dir.join("src")
    }

    pub(super) fn obj(&self) -> PathBuf {
        self.dir.join("obj")
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether the configuration in `obj` is the one for the source as it is now.
    pub(super) fn is_configured(&self) -> bool {
        self.state.configured && self.obj().join(".config").is_file()
    }

    pub(super) fn set_configured(&mut self) -> Result<(), BuildError> {
        self.state.configured = true;
        self.write_state()
    }

    /// A source that never changes: hard links, made aside and moved in whole.
    async fn link(
        &mut self,
        source: &SourceTree,
        cancel: &CancellationToken,
    ) -> Result<(), BuildError> {
        files::remove_leftovers(&self.dir);
        for stale in ["src", "obj"] {
            let path = self.dir.join(stale);
            if path.exists() {
                std::fs::remove_dir_all(&path).map_err(BuildError::io(&path))?;
            }
        }
        self.state = State::default();
        self.write_state()?;
        let temp = self.dir.join(".tmp-src");
        let args = ["-al", "--"].map(std::ffi::OsString::from).into_iter();
        let args = args.chain([source.dir.clone().into(), temp.clone().into()]);
        let program = Program::new("cp", args.collect::<Vec<_>>());
        let output = process::run(program, COPY_LIMIT, cancel).await?;
        if !output.status.success() {
            let why = std::io::Error::other(output.stderr.trim().to_owned());
            return Err(BuildError::io(&temp)(why));
        }
        files::publish_dir(&temp, &self.src()).map_err(BuildError::io(self.src()))
    }

    /// A source that may change: the files that did.
    fn copy(&mut self, source: &SourceTree, listing: &Listing) -> Result<(), BuildError> {
        let src = self.src();
        let old = std::mem::take(&mut self.state.copied);
        let gone = |name: &&String| !listing.contains_key(*name);
        let stale: Vec<String> = old.keys().filter(gone).cloned().collect();
        let fresh: Vec<&String> = listing
            .iter()
            .filter(|(name, stamp)| {
                old.get(*name) != Some(*stamp) && !self.state.touched.contains(*name)
            })
            .map(|(name, _)| name)
            .collect();
        if stale.iter().chain(fresh.iter().copied()).any(|name| is_kconfig(name)) {
            self.state.configured = false;
        }
        // What was touched by patches is written from the source anew.
        self.state.touched.extend(stale.iter().cloned());
        self.write_state()?;
        for name in fresh {
            copy_file(&source.dir.join(name), &src.join(name))?;
        }
        for name in stale {
            remove(&src.join(&name))?;
            self.state.touched.remove(&name);
        }
        self.state.copied = listing.clone();
        self.write_state()
    }

    /// Brings the sources to the state after `patches`; only files that differ are written.
    pub(super) async fn move_to(
        &mut self,
        source: &SourceTree,
        patches: &[Patch],
        cancel: &CancellationToken,
    ) -> Result<(), BuildError> {
        let wanted = patched(source, patches, cancel).await?;
        let new: BTreeSet<String> = wanted.keys().cloned().collect();
        let all: BTreeSet<String> = self.state.touched.union(&new).cloned().collect();
        let mut changes = Vec::new();
        for name in &all {
            let content = match wanted.get(name) {
                Some(content) => content.clone(),
                None => content_of(&source.dir.join(name))?,
            };
            if content != content_of(&self.src().join(name))? {
                changes.push((name.clone(), content));
            }
        }
        if changes.iter().any(|(name, _)| is_kconfig(name)) {
            self.state.configured = false;
        }
        if all != self.state.touched || !self.state.configured {
            self.state.touched = all;
            self.write_state()?;
        }
        // What is said of a file holds for what it was; a header's includers are compiled again.
        let changed = |warning: &Warning| changes.iter().any(|(name, _)| *name == warning.file);
        self.state.warnings.retain(|warning| !changed(warning));
        for (name, content) in changes {
            put(&self.src().join(&name), content)?;
        }
        if self.state.touched != new {
            self.state.touched = new;
            self.write_state()?;
        }
        Ok(())
    }

    /// Marks the tree as being built in. Warnings of a build whose end nobody saw are lost; the
    /// files that are touched are compiled again then.
    pub(super) fn begin_build(&mut self) -> Result<(), BuildError> {
        if self.state.building {
            for name in &self.state.touched {
                let path = self.src().join(name);
                if let Some(content) = content_of(&path)? {
                    put(&path, Some(content))?;
                }
            }
        }
        self.state.building = true;
        self.write_state()
    }

    /// Takes the output of a build, also of one that failed: the warnings that hold now.
    pub(super) fn end_build(&mut self, output: &str) -> Result<Vec<Warning>, BuildError> {
        let compiled = output::compiled(output);
        let tree = self.src().display().to_string();
        self.state.warnings.retain(|warning| !compiled.contains(&warning.file));
        for warning in output::warnings(output, &tree) {
            if !self.state.warnings.contains(&warning) {
                self.state.warnings.push(warning);
            }
        }
        self.state.building = false;
        self.write_state()?;
        Ok(self.state.warnings.clone())
    }

    fn write_state(&self) -> Result<(), BuildError> {
        let path = self.dir.join("state.json");
        let text = serde_json::to_vec(&self.state).unwrap_or_default();
        files::replace(&path, &text).map_err(BuildError::io(path))
    }
}

/// The state of a tree; one that cannot be read is that of no tree.
fn read_state(dir: &Path) -> Option<State> {
    let bytes = files::read_bounded(&dir.join("state.json"), MAX_STATE_BYTES).ok();
    let state = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    if state.is_none() {
        // What is in it is unknown; it is made again.
        let _ = std::fs::remove_dir_all(dir.join("src"));
    }
    state
}

fn is_kconfig(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or_default();
    last.starts_with("Kconfig") || name == "Makefile" || name.starts_with("scripts/")
}

/// Content and whether it may be executed; nothing for what is not there.
type Content = Option<(Vec<u8>, bool)>;

fn content_of(path: &Path) -> Result<Content, BuildError> {
    use std::os::unix::fs::PermissionsExt;
    let meta = match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_file() => meta,
        Ok(_) => {
            let why = "a patch may touch plain files only".to_owned();
            return Err(BuildError::Source { what: path.display().to_string(), why });
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(BuildError::io(path)(error)),
    };
    let bytes = std::fs::read(path).map_err(BuildError::io(path))?;
    Ok(Some((bytes, meta.permissions().mode() & 0o100 != 0)))
}

/// Writes beside and renames: the file may be a link to the source's.
fn put(path: &Path, content: Content) -> Result<(), BuildError> {
    use std::os::unix::fs::PermissionsExt;
    let Some((bytes, executable)) = content else { return remove(path) };
    let parent = path.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(parent).map_err(BuildError::io(parent))?;
    files::replace(path, &bytes).map_err(BuildError::io(path))?;
    if executable {
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(path, mode).map_err(BuildError::io(path))?;
    }
    Ok(())
}

fn remove(path: &Path) -> Result<(), BuildError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(BuildError::io(path)(error))
        }
        _ => Ok(()),
    }
}

fn copy_file(from: &Path, to: &Path) -> Result<(), BuildError> {
    let parent = to.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(parent).map_err(BuildError::io(parent))?;
    remove(to)?;
    if from.is_symlink() {
        let target = std::fs::read_link(from).map_err(BuildError::io(from))?;
        return std::os::unix::fs::symlink(target, to).map_err(BuildError::io(to));
    }
    std::fs::copy(from, to).map(drop).map_err(BuildError::io(to))
}

/// The files that patches touch, as they are after the last one. They are applied by git in a
/// directory that holds nothing else.
async fn patched(
    source: &SourceTree,
    patches: &[Patch],
    cancel: &CancellationToken,
) -> Result<BTreeMap<String, Content>, BuildError> {
    let mut touched = BTreeSet::new();
    for patch in patches {
        touched.extend(patch::files(patch)?);
    }
    let temp = paths::private_temp()?;
    let work = temp.path().join("work");
    std::fs::create_dir(&work).map_err(BuildError::io(&work))?;
    for name in &touched {
        inside(&source.dir, name)?;
        let path = source.dir.join(name);
        if let content @ Some(_) = content_of(&path)? {
            put(&work.join(name), content)?;
        }
    }
    for patch in patches {
        apply(&work, temp.path(), patch, cancel).await?;
    }
    touched.into_iter().map(|name| Ok((name.clone(), content_of(&work.join(&name))?))).collect()
}

/// No directory on the way to a file is a link: it could lead out of the tree.
fn inside(root: &Path, name: &str) -> Result<(), BuildError> {
    let mut path = root.to_owned();
    for part in Path::new(name).parent().into_iter().flat_map(Path::components) {
        path.push(part);
        if path.is_symlink() {
            let why = format!("{name} is behind the link {}", path.display());
            return Err(BuildError::Source { what: root.display().to_string(), why });
        }
    }
    Ok(())
}

async fn apply(
    work: &Path,
    temp: &Path,
    patch: &Patch,
    cancel: &CancellationToken,
) -> Result<(), BuildError> {
    let file = temp.join("patch");
    files::replace(&file, &patch.text).map_err(BuildError::io(&file))?;
    let git = |reject: bool| {
        let mut args: Vec<std::ffi::OsString> = vec!["apply".into(), "--whitespace=nowarn".into()];
        if reject {
            args.push("--reject".into());
        }
        args.push(file.clone().into());
        let mut program = Program::new("git", args);
        program.cwd = Some(work.to_owned());
        // No repository around the directory, no configuration of the user.
        program.env = [
            ("GIT_CEILING_DIRECTORIES", temp.as_os_str().to_owned()),
            ("GIT_DIR", temp.join("none").into()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
            ("GIT_CONFIG_SYSTEM", "/dev/null".into()),
            ("LC_ALL", "C".into()),
        ]
        .map(|(name, value)| (name.into(), value))
        .into();
        program
    };
    let output = process::run(git(false), APPLY_LIMIT, cancel).await?;
    if output.status.success() {
        return Ok(());
    }
    // Once more, for the hunks that do not fit; what fits is thrown away with the directory.
    process::run(git(true), APPLY_LIMIT, cancel).await?;
    let mut rejects = output.stderr.trim().to_owned();
    for name in patch::files(patch)? {
        let path = work.join(format!("{name}.rej"));
        if let Ok(text) = std::fs::read(&path) {
            rejects.push('\n');
            rejects.push_str(String::from_utf8_lossy(&text).trim_end());
        }
    }
    let mut end = rejects.len().min(MAX_REJECT_BYTES);
    while !rejects.is_char_boundary(end) {
        end -= 1;
    }
    rejects.truncate(end);
    Err(BuildError::Apply { patch: patch.name.clone(), rejects })
}
