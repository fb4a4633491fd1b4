//! The newest suitable kernel of a Debian archive, fetched by apt and unpacked into the store.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::catalogue::{self, Candidate};
use super::error::KernelError;
use super::identify;
use super::store::{Meta, Store, Stored};
use crate::host::apt::machine::{self, OsRelease};
use crate::host::apt::root::{AptRoot, Installed, unpack};
use crate::host::apt::sources::{self, Mirror};
use crate::host::{files, lock, paths};

/// How long an answer of the archive is good for.
const FRESH: Duration = Duration::from_secs(24 * 3600);
/// How long another process may take to fetch.
const LOCK_LIMIT: Duration = Duration::from_secs(1800);
/// Kernels looked at before giving up; each costs a download.
const MAX_TRIES: usize = 6;

/// Whether the network may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetch {
    /// When nothing suitable is cached, or the archive was last asked a day ago.
    Auto,
    /// Never.
    CacheOnly,
    /// Ask the archive now.
    Now,
}

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Name of the entry.
    pub name: &'a str,
    /// Suites looked at.
    pub suites: &'a [String],
    /// Flavour.
    pub flavour: &'a str,
    /// Options that must be built in, without `CONFIG_`.
    pub requires: &'a [String],
}

impl Wanted<'_> {
    fn check(&self) -> Result<(), KernelError> {
        if !catalogue::is_flavour(self.flavour) {
            return Err(KernelError::BadFlavour { flavour: self.flavour.to_owned() });
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        let bad = |suite: &&String| suite.is_empty() || !suite.chars().all(plain);
        match self.suites.iter().find(bad) {
            Some(suite) => Err(KernelError::BadSuite { suite: suite.clone() }),
            None => Ok(()),
        }
    }

    fn question(&self) -> String {
        format!("{}\n{}\n{}", self.suites.join(" "), self.flavour, self.requires.join(" "))
    }
}

/// Where to fetch to and from.
pub struct Fetcher<'a> {
    /// The store's directory.
    pub kernels: PathBuf,
    /// Directory of apt's private roots.
    pub apt: PathBuf,
    /// apt's directory of the machine, usually `/etc/apt`.
    pub etc_apt: PathBuf,
    /// Whether the network may be used.
    pub mode: Fetch,
    /// Takes lines about what takes long or was decided.
    pub tell: &'a (dyn Fn(&str) + Send + Sync),
}

impl Fetcher<'_> {
    /// The newest kernel that will do. A second process that wants one waits for the first.
    /// Where the archive cannot be asked, what is cached is used, and said so.
    ///
    /// # Errors
    ///
    /// Those of [`KernelError`] that speak of fetching.
    pub async fn newest(
        &self,
        wanted: Wanted<'_>,
        cancel: &CancellationToken,
    ) -> Result<Stored, KernelError> {
        wanted.check()?;
        let store = Store::new(self.kernels.clone());
        if self.mode != Fetch::Now
            && let Some((stored, age)) = store.answer(&wanted.question())
            && (age < FRESH || self.mode == Fetch::CacheOnly)
        {
            return Ok(stored);
        }
        if self.mode == Fetch::CacheOnly {
            return Err(KernelError::NotFetched { name: wanted.name.to_owned() });
        }
        paths::create_private(&self.kernels)?;
        let before = std::time::Instant::now();
        let _lock = lock::exclusive(&self.kernels.join("lock"), LOCK_LIMIT, cancel).await?;
        files::remove_leftovers(&self.kernels);
        let cached = store.answer(&wanted.question());
        // Answered by another process while this one waited for the lock?
        if let Some((stored, age)) = &cached
            && *age <= before.elapsed()
        {
            return Ok(stored.clone());
        }
        match (self.ask(&store, wanted, cancel).await, cached) {
            (Ok(stored), _) => {
                store.note_answer(&wanted.question(), &stored)?;
                Ok(stored)
            }
            (Err(error), Some((stored, _))) if !cancel.is_cancelled() => {
                let release = &stored.meta.release;
                (self.tell)(&format!("{error}; using {release} from the cache"));
                Ok(stored)
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Asks the archive, and fetches what is not in the store yet.
    async fn ask(
        &self,
        store: &Store,
        wanted: Wanted<'_>,
        cancel: &CancellationToken,
    ) -> Result<Stored, KernelError> {
        let suites = wanted.suites.join(", ");
        (self.tell)(&format!("asking the archive for {} in {suites}", wanted.flavour));
        let apt = archive(&self.apt.join("kernels"), &self.etc_apt, wanted.suites)?;
        apt.update(cancel).await?;
        let names = apt.search(&catalogue::pattern(wanted.flavour), cancel).await?;
        let rows =
            if names.is_empty() { String::new() } else { apt.madison(&names, cancel).await? };
        let mut reasons = Vec::new();
        for candidate in catalogue::candidates(&rows, wanted.flavour).iter().take(MAX_TRIES) {
            match self.try_one(store, &apt, candidate, wanted.requires, cancel).await? {
                Ok(stored) => return Ok(stored),
                Err(reason) => {
                    (self.tell)(&reason);
                    reasons.push(reason);
                }
            }
        }
        if reasons.is_empty() {
            reasons.push("there is none".to_owned());
        }
        let (flavour, reasons) = (wanted.flavour.to_owned(), reasons.join("; "));
        Err(KernelError::NoneSuitable { flavour, suites, reasons })
    }

    /// The inner error is a reason to look at the next one.
    async fn try_one(
        &self,
        store: &Store,
        apt: &AptRoot,
        candidate: &Candidate,
        requires: &[String],
        cancel: &CancellationToken,
    ) -> Result<Result<Stored, String>, KernelError> {
        let name = Store::dir_name(&candidate.release, &candidate.version);
        let stored = match store.load(&name) {
            Some(stored) => stored,
            None => match self.download(store, apt, candidate, cancel).await? {
                Ok(stored) => stored,
                Err(reason) => return Ok(Err(reason)),
            },
        };
        let config = identify::read_config(&stored.dir.join(&stored.meta.config))?;
        let missing = config.missing(requires);
        Ok(if missing.is_empty() {
            Ok(stored)
        } else {
            Err(format!("{} lacks CONFIG_{}", candidate.release, missing.join(", CONFIG_")))
        })
    }

    async fn download(
        &self,
        store: &Store,
        apt: &AptRoot,
        candidate: &Candidate,
        cancel: &CancellationToken,
    ) -> Result<Result<Stored, String>, KernelError> {
        (self.tell)(&format!("fetching {} {}", candidate.release, candidate.version));
        let cache = |source| KernelError::Cache { path: store.root().to_path_buf(), source };
        let temp = || tempfile::Builder::new().prefix(".tmp-").tempdir_in(store.root());
        let (debs, tree) = (temp().map_err(cache)?, temp().map_err(cache)?);
        apt.download(&candidate.packages, debs.path(), cancel).await?;
        for entry in std::fs::read_dir(debs.path()).map_err(cache)? {
            let path = entry.map_err(cache)?.path();
            if path.extension().is_some_and(|suffix| suffix == "deb") {
                unpack(&path, tree.path(), cancel).await?;
            }
        }
        match describe(tree.path(), candidate) {
            Ok(meta) => store.publish(tree.path(), meta).map(Ok),
            Err(reason) => Ok(Err(reason)),
        }
    }
}

/// A private root in `dir` for the Debian archive of this machine.
pub(super) fn archive(
    dir: &Path,
    etc_apt: &Path,
    suites: &[String],
) -> Result<AptRoot, KernelError> {
    let known = machine::read_sources(etc_apt);
    let codename = OsRelease::read();
    let codename = codename.codename.filter(|_| codename.id == "debian");
    let mirror =
        sources::debian_mirror(&known, codename.as_deref()).ok_or(KernelError::NoMirror)?;
    let text = source_text(&mirror, suites, machine::keyring().as_deref())
        .ok_or(KernelError::NoKeyring)?;
    let root = AptRoot::create(dir, Installed::Nothing, ("lab.sources", &text), None)?;
    Ok(root)
}

/// A deb822 source that holds the package lists of the suites and nothing else. Nothing when
/// there are no keys.
fn source_text(mirror: &Mirror, suites: &[String], keyring: Option<&Path>) -> Option<String> {
    let keys = match (&mirror.signed_by, keyring) {
        (Some(keys), _) => keys.clone(),
        (None, Some(path)) => path.to_str()?.to_owned(),
        (None, None) => return None,
    };
    Some(format!(
        "Types: deb\nURIs: {}\nSuites: {}\nComponents: main\nArchitectures: amd64\n\
         Targets: Packages\nSigned-By: {keys}\n",
        mirror.uri,
        suites.join(" ")
    ))
}

/// Finds image and configuration in an unpacked tree: in `/boot`, or, since the split, with
/// the modules.
fn describe(tree: &Path, candidate: &Candidate) -> Result<Meta, String> {
    let release = &candidate.release;
    let find = |what: &str| {
        [
            format!("boot/{what}-{release}"),
            format!("usr/lib/modules/{release}/{what}"),
            format!("lib/modules/{release}/{what}"),
        ]
        .into_iter()
        .map(PathBuf::from)
        .find(|path| tree.join(path).is_file())
        .ok_or_else(|| format!("the packages of {release} hold no {what}"))
    };
    let (image, config) = (find("vmlinuz")?, find("config")?);
    let identity = identify::identify(&tree.join(&image)).map_err(|error| error.to_string())?;
    if identity.release != *release {
        return Err(format!("the packages of {release} hold the kernel {}", identity.release));
    }
    identify::read_config(&tree.join(&config)).map_err(|error| error.to_string())?;
    let sha256 = files::sha256(&tree.join(&image)).map_err(|error| error.to_string())?;
    let (version, suite) = (candidate.version.clone(), candidate.suite.clone());
    Ok(Meta { release: release.clone(), version, suite, image, config, sha256 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::bzimage::tests::sample;

    const RELEASE: &str = "7.3.4-cloud-amd64";

    fn candidate() -> Candidate {
        Candidate {
            release: RELEASE.into(),
            version: "7.3.4-1".into(),
            suite: "s".into(),
            packages: vec![format!("linux-image-{RELEASE}=7.3.4-1")],
        }
    }

    fn put(tree: &Path, path: &str, bytes: &[u8]) {
        let path = tree.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    #[test]
    fn image_and_configuration_are_found_in_every_shape() {
        let shapes = [
            ("boot/vmlinuz-7.3.4-cloud-amd64", "boot/config-7.3.4-cloud-amd64"),
            ("boot/vmlinuz-7.3.4-cloud-amd64", "usr/lib/modules/7.3.4-cloud-amd64/config"),
            (
                "usr/lib/modules/7.3.4-cloud-amd64/vmlinuz",
                "usr/lib/modules/7.3.4-cloud-amd64/config",
            ),
        ];
        for (image, config) in shapes {
            let tree = tempfile::tempdir().unwrap();
            assert!(describe(tree.path(), &candidate()).unwrap_err().contains("no vmlinuz"));
            put(tree.path(), image, &sample("7.3.4-cloud-amd64 (x) #1"));
            assert!(describe(tree.path(), &candidate()).unwrap_err().contains("no config"));
            put(tree.path(), config, b"CONFIG_FUSE_FS=y\n");
            let meta = describe(tree.path(), &candidate()).unwrap();
            assert_eq!((meta.image, meta.config), (image.into(), config.into()));
        }
    }

    #[test]
    fn a_package_with_another_kernel_is_passed_over() {
        let tree = tempfile::tempdir().unwrap();
        put(tree.path(), "boot/vmlinuz-7.3.4-cloud-amd64", &sample("7.3.5 (x) #1"));
        put(tree.path(), "boot/config-7.3.4-cloud-amd64", b"CONFIG_FUSE_FS=y\n");
        let reason = describe(tree.path(), &candidate()).unwrap_err();
        assert!(reason.contains("hold the kernel 7.3.5"), "{reason}");
    }

    #[test]
    fn a_source_always_names_its_keys() {
        let mirror = |signed_by: Option<&str>| Mirror {
            uri: "http://m.example/debian".into(),
            signed_by: signed_by.map(str::to_owned),
        };
        let suites = ["a".to_owned(), "b".to_owned()];
        let text = source_text(&mirror(None), &suites, Some(Path::new("/k.gpg"))).unwrap();
        assert!(text.contains("Suites: a b\n") && text.ends_with("Signed-By: /k.gpg\n"), "{text}");
        let own = source_text(&mirror(Some("/own.gpg")), &suites, Some(Path::new("/k.gpg")));
        assert!(own.unwrap().ends_with("Signed-By: /own.gpg\n"));
        assert_eq!(source_text(&mirror(None), &suites, None), None);
    }

    /// An archive that nobody signed, with one suite and no package.
    fn unsigned_archive(dir: &Path) {
        put(dir, "archive/dists/trixie/main/binary-amd64/Packages", b"");
        let empty = files::sha256_bytes(b"");
        let release = format!(
            "Suite: trixie\nCodename: trixie\nComponents: main\nArchitectures: amd64\n\
             SHA256:\n {empty} 0 main/binary-amd64/Packages\n"
        );
        put(dir, "archive/dists/trixie/Release", release.as_bytes());
        let archive = dir.join("archive");
        let line = format!("deb [trusted=yes] file:{} trixie main\n", archive.display());
        put(dir, "etc/sources.list", line.as_bytes());
    }

    #[tokio::test]
    async fn an_unsigned_archive_is_refused_whatever_the_machine_trusts() {
        let dir = tempfile::tempdir().unwrap();
        unsigned_archive(dir.path());
        let fetcher = Fetcher {
            kernels: dir.path().join("kernels"),
            apt: dir.path().join("apt"),
            etc_apt: dir.path().join("etc"),
            mode: Fetch::Auto,
            tell: &|_| (),
        };
        let suites = ["trixie".to_owned()];
        let wanted =
            Wanted { name: "stock", suites: &suites, flavour: "cloud-amd64", requires: &[] };
        let error = fetcher.newest(wanted, &CancellationToken::new()).await.unwrap_err();
        // Where there is no apt or no keyring at all, that is the error.
        let text = error.to_string();
        let is_apt = crate::host::setup::find("apt-get").is_some() && machine::keyring().is_some();
        assert!(!is_apt || text.contains("is not signed"), "{text}");
        assert!(!error.is_usage());
    }
}
