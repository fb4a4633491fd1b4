//! Images on disk: one file each, layers one after the other, built when missing.

use std::borrow::Cow;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::closure::{self, ClosureError, Files};
use super::cpio::{Archive, CpioError, Node};
use super::recipe::Recipe;
use super::search;
use crate::config::scenario::ImageKind;
use crate::host::files;
use crate::host::lock::{self, LockError};
use crate::host::paths::{self, PathsError};

/// Counts changes of what images are made of beside their inputs.
const FORMAT: u32 = 1;
/// Empty directories of the guest, mostly mount points.
const DIRS: [&str; 9] = ["dev", "etc", "mnt", "proc", "root", "run", "sys", "tmp", "var"];
const MAX_META_BYTES: u64 = 64 << 10;
/// How long another process may take to build.
const LOCK_LIMIT: Duration = Duration::from_secs(300);
/// Images that nobody used for this long are removed when another one is built.
const UNUSED: Duration = Duration::from_secs(7 * 24 * 3600);

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A program of the recipe is not installed.
    #[error("{program} is not installed: run `lab test --setup`, or install it")]
    NoProgram {
        /// Its name.
        program: String,
    },
    /// A recipe is wrong.
    #[error("image recipe {recipe}: {message}")]
    Recipe {
        /// Its name.
        recipe: &'static str,
        /// All that is wrong.
        message: String,
    },
    /// A program cannot be packed.
    #[error(transparent)]
    Closure(#[from] ClosureError),
    /// An archive cannot be made.
    #[error(transparent)]
    Cpio(#[from] CpioError),
    /// A path of a host file that is no text.
    #[error("{} is no text", path.display())]
    OddPath {
        /// The path.
        path: PathBuf,
    },
    /// Another process holds the cache.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A directory of the cache cannot be made.
    #[error(transparent)]
    Paths(#[from] PathsError),
    /// A file of the cache or the host cannot be read or written.
    #[error("image {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The thread that built it panicked.
    #[error("building the image broke off: {0}")]
    Broken(#[from] tokio::task::JoinError),
}

/// A guest image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The initramfs.
    pub path: PathBuf,
    /// SHA-256 of the file, hex.
    pub sha256: String,
    /// One line for people: what is in it.
    pub summary: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Meta {
    sha256: String,
    summary: String,
}

/// What an image is made of, before it is made.
struct Plan {
    name: &'static str,
    summary: String,
    init: Cow<'static, [u8]>,
    programs: Files,
}

/// The image of this kind with `guest` as its `/init`, built if it is not in `cache`. One that
/// was built from other inputs (another binary, a newer fio) is another image. A second process
/// that wants it waits for the first.
///
/// # Errors
///
/// [`ImageError`].
pub async fn ensure(
    kind: ImageKind,
    cache: &Path,
    guest: Cow<'static, [u8]>,
    cancel: &CancellationToken,
) -> Result<Image, ImageError> {
    paths::create_private(cache)?;
    if kind == ImageKind::Host {
        return binary(cache, &guest);
    }
    let plan = plan(kind, guest)?;
    let stem = format!("{}-{}", plan.name, &key(&plan)?[..16]);
    if let Some(image) = load(cache, &stem) {
        return Ok(image);
    }
    let held = lock::exclusive(&cache.join("lock"), LOCK_LIMIT, cancel).await?;
    if let Some(image) = load(cache, &stem) {
        return Ok(image);
    }
    let cache = cache.to_path_buf();
    let built = tokio::task::spawn_blocking(move || {
        files::remove_leftovers(&cache);
        remove_unused(&cache);
        let image = build(&cache, &stem, &plan);
        drop(held);
        image
    });
    built.await?
}

/// The guest binary alone, for guests whose root is the host's.
fn binary(cache: &Path, guest: &[u8]) -> Result<Image, ImageError> {
    use std::os::unix::fs::PermissionsExt;
    let sha256 = files::sha256_bytes(guest);
    let path = cache.join(format!("host-{}", &sha256[..16]));
    if files::sha256(&path).ok().as_ref() != Some(&sha256) {
        let wrong = |source| io_error(&path, source);
        files::replace(&path, guest).map_err(wrong)?;
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, mode).map_err(wrong)?;
    }
    Ok(Image { path, sha256, summary: "the host's root, by virtme-ng".into() })
}

fn plan(kind: ImageKind, init: Cow<'static, [u8]>) -> Result<Plan, ImageError> {
    let recipes: &[(&'static str, &str)] = match kind {
        ImageKind::Agent | ImageKind::Host => {
            &[("agent", include_str!("../../../images/agent.toml"))]
        }
        ImageKind::Fio => &[
            ("agent", include_str!("../../../images/agent.toml")),
            ("fio", include_str!("../../../images/fio.toml")),
        ],
    };
    let mut plan = Plan { name: "agent", summary: String::new(), init, programs: Files::new() };
    let path_variable = std::env::var("PATH").unwrap_or_default();
    let configured = search::configured_dirs(Path::new("/etc/ld.so.conf"));
    for &(name, text) in recipes {
        let recipe = read_recipe(name, text)?;
        plan.name = name;
        plan.summary = recipe.summary;
        for program in recipe.programs {
            let path = closure::which(&program, &path_variable)
                .ok_or(ImageError::NoProgram { program })?;
            plan.programs.extend(closure::closure(&path, &configured)?);
        }
    }
    Ok(plan)
}

fn read_recipe(name: &'static str, text: &str) -> Result<Recipe, ImageError> {
    Recipe::parse(text).map_err(|problems| {
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        ImageError::Recipe { recipe: name, message: all.join("; ") }
    })
}

/// Digest of all that decides the image's bytes. Host files count by what changes when a
/// package manager replaces them, so that a look at them suffices.
fn key(plan: &Plan) -> Result<String, ImageError> {
    let mut text = format!("{FORMAT}\n{}\n{}\n", plan.summary, files::sha256_bytes(&plan.init));
    for (guest, host) in &plan.programs {
        let meta = std::fs::metadata(host).map_err(|source| io_error(host, source))?;
        text += &format!(
            "{} {} {} {} {} {}\n",
            guest.display(),
            host.display(),
            meta.len(),
            meta.ino(),
            meta.mtime(),
            meta.mtime_nsec()
        );
    }
    Ok(files::sha256_bytes(text.as_bytes()))
}

fn load(cache: &Path, stem: &str) -> Option<Image> {
    let path = cache.join(format!("{stem}.cpio"));
    let meta = cache.join(format!("{stem}.json"));
    let meta: Meta =
        serde_json::from_slice(&files::read_bounded(&meta, MAX_META_BYTES).ok()?).ok()?;
    if files::sha256(&path).ok()? != meta.sha256 {
        return None;
    }
    // Notes the use; an image that only looks unused is built again, so failing is harmless.
    let _ = std::fs::File::options()
        .append(true)
        .open(&path)
        .and_then(|file| file.set_modified(SystemTime::now()));
    Some(Image { path, sha256: meta.sha256, summary: meta.summary })
}

fn build(cache: &Path, stem: &str, plan: &Plan) -> Result<Image, ImageError> {
    let mut bytes = base_layer(&plan.init)?.to_bytes()?;
    if !plan.programs.is_empty() {
        bytes.extend(program_layer(&plan.programs)?.to_bytes()?);
    }
    let path = cache.join(format!("{stem}.cpio"));
    let sha256 = files::sha256_bytes(&bytes);
    files::replace(&path, &bytes).map_err(|source| io_error(&path, source))?;
    // Last, as it makes the image count.
    let meta = Meta { sha256: sha256.clone(), summary: plan.summary.clone() };
    let meta_path = cache.join(format!("{stem}.json"));
    serde_json::to_vec(&meta)
        .map_err(io::Error::other)
        .and_then(|text| files::replace(&meta_path, &text))
        .map_err(|source| io_error(&meta_path, source))?;
    Ok(Image { path, sha256, summary: meta.summary })
}

fn base_layer(init: &[u8]) -> Result<Archive, CpioError> {
    let mut archive = Archive::new();
    for dir in DIRS {
        archive.add(dir, Node::Dir)?;
    }
    // The kernel opens it for PID 1 before anything is mounted.
    archive.add("dev/console", Node::CharDevice { major: 5, minor: 1 })?;
    archive.add("init", Node::File { data: init.to_vec(), executable: true })?;
    Ok(archive)
}

fn program_layer(programs: &Files) -> Result<Archive, ImageError> {
    let mut archive = Archive::new();
    for (guest, host) in programs {
        let name = guest.to_str().ok_or_else(|| ImageError::OddPath { path: guest.clone() })?;
        let data = std::fs::read(host).map_err(|source| io_error(host, source))?;
        archive.add(name, Node::File { data, executable: true })?;
    }
    Ok(archive)
}

fn remove_unused(cache: &Path) {
    let entries = std::fs::read_dir(cache).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let modified = path.metadata().and_then(|meta| meta.modified());
        let age = modified.ok().and_then(|time| time.elapsed().ok());
        if path.extension().is_some_and(|e| e == "cpio") && age.is_some_and(|age| age > UNUSED) {
            // One that stays costs space, nothing else.
            let _ = std::fs::remove_file(path.with_extension("json"));
            let _ = std::fs::remove_file(&path);
        }
    }
}

fn io_error(path: &Path, source: io::Error) -> ImageError {
    ImageError::Io { path: path.to_path_buf(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn agent(cache: &Path, guest: &'static [u8]) -> Image {
        ensure(ImageKind::Agent, cache, guest.into(), &CancellationToken::new()).await.unwrap()
    }

    #[tokio::test]
    async fn the_same_inputs_are_the_same_image() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let image = agent(one.path(), b"init").await;
        let inode = image.path.metadata().unwrap().ino();
        assert_eq!(agent(one.path(), b"init").await, image);
        assert_eq!(image.path.metadata().unwrap().ino(), inode, "built again");
        assert_eq!(agent(two.path(), b"init").await.sha256, image.sha256);
        assert_ne!(agent(one.path(), b"other").await.path, image.path);
    }

    #[tokio::test]
    async fn a_damaged_image_is_built_again() {
        let dir = tempfile::tempdir().unwrap();
        let image = agent(dir.path(), b"init").await;
        std::fs::write(&image.path, "damage").unwrap();
        assert_eq!(agent(dir.path(), b"init").await, image);
        assert_eq!(files::sha256(&image.path).unwrap(), image.sha256);
    }

    #[tokio::test]
    async fn unused_images_go_when_another_is_built() {
        let dir = tempfile::tempdir().unwrap();
        let old = agent(dir.path(), b"old").await;
        let long_ago = SystemTime::now() - UNUSED - Duration::from_secs(60);
        let file = std::fs::File::options().append(true).open(&old.path).unwrap();
        file.set_modified(long_ago).unwrap();
        let used = agent(dir.path(), b"used").await;
        assert!(!old.path.exists() && used.path.exists());
    }

    #[test]
    fn the_base_layer_has_what_pid_1_needs() {
        let layer = base_layer(b"x").unwrap();
        let paths: Vec<_> = layer.entries().map(|(path, _)| path).collect();
        assert!(paths.contains(&"init") && paths.contains(&"dev/console"), "{paths:?}");
    }

    #[test]
    fn a_changed_program_is_another_image() {
        let dir = tempfile::tempdir().unwrap();
        let host = dir.path().join("p");
        let key_now = || {
            let programs = Files::from([(PathBuf::from("/usr/bin/p"), host.clone())]);
            let summary = String::new();
            key(&Plan { name: "agent", summary, init: b"".as_slice().into(), programs }).unwrap()
        };
        std::fs::write(&host, "1").unwrap();
        let before = key_now();
        assert_eq!(key_now(), before);
        std::fs::write(&host, "22").unwrap();
        assert_ne!(key_now(), before);
    }
}
