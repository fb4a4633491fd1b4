//! What the user calls a kernel to the kernel.

use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use super::assemble;
use super::build::{Builder, Built};
use super::config::KernelConfig;
use super::error::KernelError;
use super::fetch::{Fetch, Fetcher, Wanted};
use super::identify::{self, Identity};
use super::in_place;
use crate::config::kernel::{BuildSpec, KernelEntry, KernelSource};
use crate::host::files;
use crate::host::paths::Paths;

/// Names suggested for an unknown one.
const MAX_NEAREST: usize = 3;

/// A kernel that can be booted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// As given.
    pub name: String,
    /// Release, e.g. `7.3.4+deb13-cloud-amd64`.
    pub release: String,
    /// bzImage, or vmlinux with a PVH entry.
    pub image: PathBuf,
    /// SHA-256 of the image, hex.
    pub sha256: String,
    /// Its vmlinux, where one is at hand; it may be of another build.
    pub vmlinux: Option<PathBuf>,
    /// Its configuration, where it is at hand.
    pub config: Option<KernelConfig>,
    /// Where it came from, for people.
    pub origin: String,
    /// Additions to the kernel command line.
    pub cmdline: Vec<String>,
    /// The queue policy that its entry claims.
    pub queue_policy: Option<String>,
}

/// What resolving needs beside the name.
pub struct Resolver<'a> {
    /// Entries of `kernels/`.
    pub entries: &'a [KernelEntry],
    /// Directories of the lab.
    pub paths: &'a Paths,
    /// Whether the network may be used.
    pub mode: Fetch,
    /// Takes lines about what takes long or was decided.
    pub tell: &'a (dyn Fn(&str) + Send + Sync),
}

/// Resolves the name of an entry, or the path of a bzImage, a vmlinux or a built source tree.
/// Entries come first; `./stock` is always a path.
///
/// # Errors
///
/// [`KernelError`].
pub async fn resolve(
    what: &str,
    resolver: &Resolver<'_>,
    cancel: &CancellationToken,
) -> Result<Kernel, KernelError> {
    if let Some(entry) = resolver.entries.iter().find(|entry| entry.name == what) {
        return from_entry(entry, resolver, cancel).await;
    }
    let path = Path::new(what);
    if !what.contains('/') && !path.exists() {
        let nearest = nearest(what, resolver.entries);
        return Err(KernelError::Unknown { name: what.to_owned(), nearest });
    }
    from_tree(what, path, resolver, cancel).await
}

/// A path, which is built first where it is a source tree.
async fn from_tree(
    name: &str,
    path: &Path,
    resolver: &Resolver<'_>,
    cancel: &CancellationToken,
) -> Result<Kernel, KernelError> {
    if in_place::is_tree(path) {
        let place = resolver.paths.cache.join("build/in-place");
        in_place::ensure(path, &place, resolver.mode, resolver.tell, cancel).await?;
    }
    from_path(name, path)
}

async fn from_build(
    name: &str,
    spec: &BuildSpec,
    resolver: &Resolver<'_>,
    cancel: &CancellationToken,
) -> Result<Kernel, KernelError> {
    let recipe = assemble::recipe(name, spec, cancel).await?;
    let builder = Builder::new(&resolver.paths.cache, resolver.mode, resolver.tell);
    let built = builder.build(&recipe, cancel).await.map_err(Box::new)?;
    of_built(name, &built)
}

/// A stored kernel as one that can be booted.
///
/// # Errors
///
/// A configuration that cannot be read.
pub fn of_built(name: &str, built: &Built) -> Result<Kernel, KernelError> {
    Ok(Kernel {
        name: name.to_owned(),
        release: built.release.clone(),
        image: built.image(),
        sha256: built.sha256.clone(),
        vmlinux: built.vmlinux.clone(),
        config: Some(identify::read_config(&built.config())?),
        origin: format!("built {} from {}", built.dir.display(), built.source),
        cmdline: Vec::new(),
        queue_policy: None,
    })
}

async fn from_entry(
    entry: &KernelEntry,
    resolver: &Resolver<'_>,
    cancel: &CancellationToken,
) -> Result<Kernel, KernelError> {
    let kernel = match &entry.source {
        KernelSource::Path(path) => from_tree(&entry.name, path, resolver, cancel).await?,
        KernelSource::Built(spec) => from_build(&entry.name, spec, resolver, cancel).await?,
        KernelSource::Debian { suites, flavour, requires } => {
            let wanted = Wanted { name: &entry.name, suites, flavour, requires };
            from_debian(wanted, resolver, cancel).await?
        }
    };
    let (cmdline, queue_policy) = (entry.cmdline.clone(), entry.queue_policy.clone());
    let vmlinux = entry.vmlinux.clone().or_else(|| kernel.vmlinux.clone());
    Ok(Kernel { vmlinux, cmdline, queue_policy, ..kernel })
}

async fn from_debian(
    wanted: Wanted<'_>,
    resolver: &Resolver<'_>,
    cancel: &CancellationToken,
) -> Result<Kernel, KernelError> {
    let fetcher = Fetcher {
        kernels: resolver.paths.kernels(),
        apt: resolver.paths.apt(),
        etc_apt: PathBuf::from("/etc/apt"),
        mode: resolver.mode,
        tell: resolver.tell,
    };
    let stored = fetcher.newest(wanted, cancel).await?;
    let config = identify::read_config(&stored.dir.join(&stored.meta.config))?;
    Ok(Kernel {
        name: wanted.name.to_owned(),
        release: stored.meta.release,
        image: stored.dir.join(&stored.meta.image),
        sha256: stored.meta.sha256,
        vmlinux: None,
        config: Some(config),
        origin: format!("debian {} {}", stored.meta.suite, stored.meta.version),
        cmdline: Vec::new(),
        queue_policy: None,
    })
}

fn from_path(name: &str, path: &Path) -> Result<Kernel, KernelError> {
    let read = |source| KernelError::Read { path: path.to_path_buf(), source };
    // QEMU and later runs may have another working directory.
    let path = std::path::absolute(path).map_err(read)?;
    let Identity { image, release, config } = identify::identify(&path)?;
    let sha256 = files::sha256(&image)
        .map_err(|source| KernelError::Read { path: image.clone(), source })?;
    Ok(Kernel {
        name: name.to_owned(),
        release,
        sha256,
        vmlinux: identify::debug_info(&image),
        config,
        origin: format!("path {}", image.display()),
        image,
        cmdline: Vec::new(),
        queue_policy: None,
    })
}

/// Whether a path is a kernel, or a source tree that one can be built in; nothing is built.
///
/// # Errors
///
/// [`KernelError`].
pub fn check_path(path: &Path) -> Result<(), KernelError> {
    match in_place::is_tree(path) {
        true => Ok(()),
        false => identify::identify(path).map(drop),
    }
}

/// Names that a typing error could have made of, best first.
fn nearest(name: &str, entries: &[KernelEntry]) -> Vec<String> {
    let mut near: Vec<(usize, &str)> = entries
        .iter()
        .map(|entry| (strsim::damerau_levenshtein(name, &entry.name), entry.name.as_str()))
        .filter(|(distance, known)| *distance <= known.chars().count().max(3) / 2)
        .collect();
    near.sort_unstable();
    near.into_iter().take(MAX_NEAREST).map(|(_, known)| known.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::bzimage::tests::sample;

    fn entry(name: &str, source: KernelSource) -> KernelEntry {
        KernelEntry {
            name: name.into(),
            summary: String::new(),
            source,
            vmlinux: None,
            cmdline: vec!["quiet".into()],
            queue_policy: Some("submitting-cpu".into()),
            offers: Vec::new(),
        }
    }

    async fn try_resolve(what: &str, entries: &[KernelEntry]) -> Result<Kernel, KernelError> {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths { cache: dir.path().into(), runs: dir.path().into() };
        let resolver = Resolver { entries, paths: &paths, mode: Fetch::CacheOnly, tell: &|_| () };
        resolve(what, &resolver, &CancellationToken::new()).await
    }

    #[tokio::test]
    async fn an_entry_adds_its_own_to_the_image() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image");
        std::fs::write(&path, sample("7.3.4-x y")).unwrap();
        let entries = [entry("mine", KernelSource::Path(path.clone()))];
        let kernel = try_resolve("mine", &entries).await.unwrap();
        assert_eq!((kernel.name.as_str(), kernel.release.as_str()), ("mine", "7.3.4-x"));
        assert_eq!(kernel.cmdline, ["quiet"]);
        let plain = try_resolve(path.to_str().unwrap(), &entries).await.unwrap();
        assert_eq!((plain.sha256, plain.queue_policy), (kernel.sha256, None));
    }

    #[tokio::test]
    async fn an_unknown_name_gets_the_nearest() {
        let entries =
            ["stock", "shock", "mainline"].map(|name| entry(name, KernelSource::Path("/x".into())));
        let error = try_resolve("stokc", &entries).await.unwrap_err();
        assert!(error.is_usage());
        assert_eq!(error.to_string(), "no kernel `stokc`, did you mean stock or shock?");
        let error = try_resolve("quite-different", &entries).await.unwrap_err();
        assert!(error.to_string().ends_with("no entry of kernels/ and no such file"));
        let error = try_resolve("./stock", &entries).await.unwrap_err();
        assert!(matches!(error, KernelError::Read { .. }), "{error}");
    }

    #[tokio::test]
    async fn the_cache_alone_does_not_fetch() {
        let debian = |flavour: &str, suite: &str| {
            let suites = vec![suite.to_owned()];
            let source = KernelSource::Debian { suites, flavour: flavour.into(), requires: vec![] };
            [entry("stock", source)]
        };
        let error = try_resolve("stock", &debian("cloud-amd64", "s")).await.unwrap_err();
        assert!(matches!(error, KernelError::NotFetched { .. }) && !error.is_usage());
        let error = try_resolve("stock", &debian("x.*", "s")).await.unwrap_err();
        assert!(matches!(error, KernelError::BadFlavour { .. }));
        let error = try_resolve("stock", &debian("x", "s\nTrusted: yes")).await.unwrap_err();
        assert!(matches!(error, KernelError::BadSuite { .. }));
    }
}
