//! A file or source tree to a kernel: what it is, its release, its configuration.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use super::config::{self, KernelConfig};
use super::error::KernelError;
use super::{bzimage, vmlinux};
use crate::host::files;

/// Where a build leaves the image.
const TREE_IMAGE: &str = "arch/x86/boot/bzImage";

/// A kernel image with what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// bzImage or vmlinux.
    pub image: PathBuf,
    /// Release, e.g. `7.3.4-lab`.
    pub release: String,
    /// Its configuration, if found.
    pub config: Option<KernelConfig>,
}

/// Finds out what the image, or the built source tree, at `path` is.
///
/// # Errors
///
/// Those of [`KernelError`] that speak of a path.
pub fn identify(path: &Path) -> Result<Identity, KernelError> {
    let read = |source| KernelError::Read { path: path.to_path_buf(), source };
    let meta = std::fs::metadata(path).map_err(read)?;
    if meta.is_dir() {
        return tree(path);
    }
    // Opening a pipe would wait for somebody to write into it.
    if !meta.is_file() {
        return Err(KernelError::NotAKernel { path: path.to_path_buf() });
    }
    let (release, embedded) = image(path)?;
    let config = match embedded.as_deref().map(KernelConfig::parse) {
        Some(Ok(config)) => Some(config),
        _ => beside(path, &release),
    };
    Ok(Identity { image: path.to_path_buf(), release, config })
}

/// The uncompressed kernel that belongs to an image: itself, or what the build that made it left
/// at the top of its tree.
pub fn debug_info(image: &Path) -> Option<PathBuf> {
    let top = image.to_str()?.strip_suffix(TREE_IMAGE);
    let beside = match top {
        Some(top) => Path::new(top).join("vmlinux"),
        None => image.to_path_buf(),
    };
    let mut head = [0; 4];
    File::open(&beside).ok()?.read_exact(&mut head).ok()?;
    vmlinux::recognise(&head).then_some(beside)
}

fn tree(path: &Path) -> Result<Identity, KernelError> {
    let image_path = path.join(TREE_IMAGE);
    if !image_path.is_file() {
        let is_tree = path.join("Kbuild").is_file() && path.join("Makefile").is_file();
        let is_output = path.join(".config").is_file();
        let path = path.to_path_buf();
        return Err(if is_tree || is_output {
            KernelError::NotBuilt { path }
        } else {
            KernelError::NotATree { path }
        });
    }
    let (release, _) = image(&image_path)?;
    let config_path = path.join(".config");
    let config = config_path.is_file().then(|| read_config(&config_path)).transpose()?;
    Ok(Identity { image: image_path, release, config })
}

/// Release and embedded configuration of an image file.
fn image(path: &Path) -> Result<(String, Option<String>), KernelError> {
    let read = |source| KernelError::Read { path: path.to_path_buf(), source };
    let mut file = File::open(path).map_err(read)?;
    let mut head = Vec::new();
    file.by_ref().take(bzimage::HEAD_BYTES as u64).read_to_end(&mut head).map_err(read)?;
    if bzimage::recognise(&head) {
        let bytes = file.metadata().map_err(read)?.len();
        let release = bzimage::release(&head)
            .and_then(|release| bzimage::check_size(&head, bytes).map(|()| release))
            .map_err(|source| KernelError::BzImage { path: path.to_path_buf(), source })?;
        return Ok((release, None));
    }
    if vmlinux::recognise(&head) {
        let found = vmlinux::inspect(BufReader::new(file))
            .map_err(|source| KernelError::Vmlinux { path: path.to_path_buf(), source })?;
        return Ok((found.release, found.config));
    }
    Err(KernelError::NotAKernel { path: path.to_path_buf() })
}

/// Reads a configuration that must be one.
///
/// # Errors
///
/// [`KernelError::Read`], [`KernelError::Config`].
pub fn read_config(path: &Path) -> Result<KernelConfig, KernelError> {
    let bytes = files::read_bounded(path, config::MAX_BYTES as u64)
        .map_err(|source| KernelError::Read { path: path.to_path_buf(), source })?;
    KernelConfig::parse(&String::from_utf8_lossy(&bytes))
        .map_err(|source| KernelError::Config { path: path.to_path_buf(), source })
}

/// The configuration among the image's neighbours. A neighbour that is something else, or of
/// another kernel, is passed over: cases are then not skipped before boot.
fn beside(image: &Path, release: &str) -> Option<KernelConfig> {
    let dir = image.parent()?;
    let names = [format!("config-{release}"), "config".into(), ".config".into()];
    let tree = dir.ends_with("arch/x86/boot").then(|| dir.join("../../../.config"));
    names
        .iter()
        .map(|name| dir.join(name))
        .chain(tree)
        .filter_map(|path| read_config(&path).ok())
        .find(|config| config.kernel_version().is_none_or(|v| is_of(release, v)))
}

/// Whether a kernel of this release can come from a configuration of this version: `7.3.4` of
/// `7.3.4-lab`, but not of `7.3.40`.
fn is_of(release: &str, version: &str) -> bool {
    release
        .strip_prefix(version)
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::bzimage::tests::sample as bzimage_sample;
    use crate::kernel::vmlinux::tests::{pvh_notes, sample as vmlinux_sample};

    fn config_text(version: &str) -> String {
        format!("#\n# Linux/x86 {version} Kernel Configuration\n#\nCONFIG_FUSE_FS=y\n")
    }

    #[test]
    fn a_bzimage_finds_the_configuration_of_its_release() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("vmlinuz");
        std::fs::write(&path, bzimage_sample("7.3.4-lab x")).unwrap();
        std::fs::write(dir.path().join("config"), config_text("7.3.40")).unwrap();
        let found = identify(&path).unwrap();
        assert_eq!((found.release.as_str(), found.config), ("7.3.4-lab", None));
        std::fs::write(dir.path().join("config-7.3.4-lab"), config_text("7.3.4")).unwrap();
        let config = identify(&path).unwrap().config.unwrap();
        assert_eq!(config.get("FUSE_FS"), Some("y"));
    }

    #[test]
    fn versions_are_told_apart_digit_by_digit() {
        assert!(is_of("7.3.4-lab", "7.3.4") && is_of("7.3.4", "7.3.4"));
        assert!(!is_of("7.3.40", "7.3.4") && !is_of("7.3.4", "7.3.40"));
    }

    #[test]
    fn a_vmlinux_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("vmlinux");
        std::fs::write(&path, vmlinux_sample(&pvh_notes(), b"Linux version 7.4.0-rc1 (a)\0"))
            .unwrap();
        assert_eq!(identify(&path).unwrap().release, "7.4.0-rc1");
    }

    #[test]
    fn a_tree_has_to_be_built() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        assert!(matches!(identify(root), Err(KernelError::NotATree { .. })));
        std::fs::write(root.join("Kbuild"), "").unwrap();
        std::fs::write(root.join("Makefile"), "").unwrap();
        assert!(matches!(identify(root), Err(KernelError::NotBuilt { .. })));
        std::fs::create_dir_all(root.join("arch/x86/boot")).unwrap();
        std::fs::write(root.join(TREE_IMAGE), bzimage_sample("7.3.4 x")).unwrap();
        assert_eq!(identify(root).unwrap().config, None);
        std::fs::write(root.join(".config"), config_text("7.3.4")).unwrap();
        let found = identify(root).unwrap();
        assert_eq!(found.image, root.join(TREE_IMAGE));
        assert!(found.config.is_some());
        assert!(identify(&root.join(TREE_IMAGE)).unwrap().config.is_some());
        std::fs::write(root.join(".config"), "broken\n").unwrap();
        assert!(matches!(identify(root), Err(KernelError::Config { .. })));
    }

    #[test]
    fn other_files_get_a_clear_error() {
        let dir = tempfile::tempdir().unwrap();
        let text = dir.path().join("text");
        std::fs::write(&text, "hello").unwrap();
        let not_a_kernel =
            |path: &Path| matches!(identify(path), Err(KernelError::NotAKernel { .. }));
        assert!(not_a_kernel(&text));
        assert!(not_a_kernel(Path::new("/dev/zero")));
        assert!(matches!(identify(Path::new("/nowhere/x")), Err(KernelError::Read { .. })));
        let program = std::env::current_exe().unwrap();
        assert!(matches!(identify(&program), Err(KernelError::Vmlinux { .. })));
    }
}
