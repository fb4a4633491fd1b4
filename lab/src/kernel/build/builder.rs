//! The way from a recipe to a stored kernel.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tokio_util::sync::CancellationToken;

use super::error::BuildError;
use super::kconfig::Wanted;
use super::make::{self, Make};
use super::output::{self, Warning};
use super::sandbox::Sandbox;
use super::source::{SourceTree, Sources};
use super::store::{self, Built, Kept, Look, Meta, Store};
use super::tree::Tree;
use crate::host::files;
use crate::host::process::Output;
use crate::kernel::config::KernelConfig;
use crate::kernel::fetch::Fetch;
use crate::kernel::identify;
use crate::kernel::recipe::Recipe;

const DAY: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

/// Builds kernels and keeps them.
pub struct Builder<'a> {
    /// The lab's cache.
    pub cache: &'a Path,
    /// Whether sources may be fetched and kernels built.
    pub mode: Fetch,
    /// How many compilers at once.
    pub jobs: usize,
    /// Bytes that kernels and trees may take; beyond it the longest unused go, once a day.
    pub keep_bytes: u64,
    /// Whether builds are shut in where bubblewrap works. What counts the CPU time of its children
    /// does without: that of a namespace is lost.
    pub shut_in: bool,
    /// Takes lines about what takes long or was decided.
    pub tell: &'a (dyn Fn(&str) + Send + Sync),
}

/// Everything that is known before a tree is taken.
struct Plan {
    source: SourceTree,
    wanted: Wanted,
    toolchain: String,
    /// Of the stored kernel.
    key: String,
    /// Directory of the tree it is built in.
    tree: PathBuf,
}

impl<'a> Builder<'a> {
    /// A builder that uses every CPU.
    pub fn new(
        cache: &'a Path,
        mode: Fetch,
        tell: &'a (dyn Fn(&str) + Send + Sync),
    ) -> Builder<'a> {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        Builder { cache, mode, jobs, keep_bytes: store::KEEP_BYTES, shut_in: true, tell }
    }

    fn place(&self, part: &str) -> PathBuf {
        self.cache.join("build").join(part)
    }

    fn store(&self) -> Store {
        Store::new(self.place("kernels"))
    }

    /// The stored kernel of a recipe, built if it is not there or damaged.
    ///
    /// # Errors
    ///
    /// [`BuildError`]; with [`Fetch::CacheOnly`] also for one that is not built yet.
    pub async fn build(
        &self,
        recipe: &Recipe,
        cancel: &CancellationToken,
    ) -> Result<Built, BuildError> {
        make::check_tools()?;
        let plan = self.plan(recipe, cancel).await?;
        match self.store().look(&plan.key) {
            Look::Whole(built) => return Ok(built),
            Look::Damaged(why) => {
                (self.tell)(&format!("the stored kernel {} is damaged ({why})", recipe.name));
            }
            Look::Absent => {}
        }
        if self.mode == Fetch::CacheOnly {
            return Err(BuildError::NotBuilt(recipe.name.clone()));
        }
        let mut tree = Tree::take(plan.tree.clone(), &plan.source, self.tell, cancel).await?;
        // Built by another process while this one waited?
        if let Look::Whole(built) = self.store().look(&plan.key) {
            return Ok(built);
        }
        let sandbox = self.ready(recipe, &plan, &mut tree, cancel).await?;
        let (src, obj) = (tree.src(), tree.obj());
        let make =
            Make { sandbox: &sandbox, src: &src, obj: &obj, jobs: self.jobs, name: &recipe.name };
        let begin = std::time::Instant::now();
        (self.tell)(&format!("building {} ({})", recipe.name, plan.source.label));
        tree.begin_build()?;
        // A configuration with modules has what is built as one compiled, too.
        let mut targets = vec!["bzImage".to_owned()];
        if plan.wanted.has_modules() {
            targets.push("modules".into());
        }
        let output = make.run(&targets, cancel).await?;
        let warnings = tree.end_build(&output.stdout)?;
        if !output.status.success() {
            return Err(failed(recipe, &tree, &output)?);
        }
        let built = self.keep(recipe, &plan, &tree, (&output, warnings), cancel).await?;
        drop(tree);
        (self.tell)(&format!("built {} in {:.0} s", recipe.name, begin.elapsed().as_secs_f64()));
        self.keep_within(cancel).await;
        Ok(built)
    }

    /// Once a day, as the sizes of all trees take seconds to find out; a look that failed is
    /// repeated by the next build. What is in use is never removed.
    async fn keep_within(&self, cancel: &CancellationToken) {
        let mark = self.place("").join("looked-through");
        let looked = std::fs::metadata(&mark).and_then(|meta| meta.modified());
        let age = looked.map(|time| time.elapsed().unwrap_or_default());
        if age.is_ok_and(|age| age < DAY) {
            return;
        }
        let Ok(gone) = self.clean(self.keep_bytes, false, false, cancel).await else { return };
        let _ = files::replace(&mark, b""); // without it the next build looks again
        if !gone.is_empty() {
            let mib = gone.iter().map(|kept| kept.bytes).sum::<u64>() >> 20;
            (self.tell)(&format!("removed {} unused kernels and trees, {mib} MiB", gone.len()));
        }
    }

    /// Brings a tree to a recipe, patched and configured; how its programs are to be run.
    async fn ready(
        &self,
        recipe: &Recipe,
        plan: &Plan,
        tree: &mut Tree,
        cancel: &CancellationToken,
    ) -> Result<Sandbox, BuildError> {
        tree.move_to(&plan.source, &recipe.patches, cancel).await?;
        let sandbox = match self.shut_in {
            true => Sandbox::find(cancel).await,
            false => Sandbox::None("it was asked for".into()),
        };
        if let Sandbox::None(why) = &sandbox {
            (self.tell)(&format!("{why}: the build of {} is not shut in", recipe.name));
        }
        if !tree.is_configured() {
            let (src, obj) = (tree.src(), tree.obj());
            let (jobs, name) = (self.jobs, recipe.name.as_str());
            let make = Make { sandbox: &sandbox, src: &src, obj: &obj, jobs, name };
            configure(&make, &plan.wanted, tree.dir(), cancel).await?;
            tree.set_configured()?;
        }
        Ok(sandbox)
    }

    /// Runs make on directories of the tree of a recipe that is built, with arguments such as
    /// `W=1` or `C=2`; the new warnings of those directories, a line each.
    ///
    /// # Errors
    ///
    /// As [`Builder::build`].
    pub async fn check(
        &self,
        recipe: &Recipe,
        args: &[&str],
        directories: &[String],
        cancel: &CancellationToken,
    ) -> Result<Vec<String>, BuildError> {
        if directories.is_empty() {
            return Ok(Vec::new());
        }
        let plan = self.plan(recipe, cancel).await?;
        let mut tree = Tree::take(plan.tree.clone(), &plan.source, self.tell, cancel).await?;
        let sandbox = self.ready(recipe, &plan, &mut tree, cancel).await?;
        let (src, obj) = (tree.src(), tree.obj());
        let make =
            Make { sandbox: &sandbox, src: &src, obj: &obj, jobs: self.jobs, name: &recipe.name };
        let args = args.iter().map(|arg| (*arg).to_owned()).chain(directories.iter().cloned());
        let output = make.run(&args.collect::<Vec<_>>(), cancel).await?;
        if !output.status.success() {
            return Err(failed(recipe, &tree, &output)?);
        }
        let inside = |file: &str| directories.iter().any(|dir| file.starts_with(dir.as_str()));
        let said = output::warnings(&output.stdout, &src.display().to_string());
        let said = said.into_iter().filter(|warning| inside(&warning.file));
        Ok(said.map(|w| format!("{}:{}: {}", w.file, w.line, w.text)).collect())
    }

    /// The stored kernel of a recipe, if it is there.
    ///
    /// # Errors
    ///
    /// Those of reading the source.
    pub async fn find(
        &self,
        recipe: &Recipe,
        cancel: &CancellationToken,
    ) -> Result<Option<Built>, BuildError> {
        match self.plan(recipe, cancel).await {
            Ok(plan) => match self.store().look(&plan.key) {
                Look::Whole(built) => Ok(Some(built)),
                _ => Ok(None),
            },
            Err(BuildError::Source { .. }) if self.mode == Fetch::CacheOnly => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn plan(&self, recipe: &Recipe, cancel: &CancellationToken) -> Result<Plan, BuildError> {
        let wanted = Wanted::merge(&recipe.fragments)?;
        for patch in &recipe.patches {
            super::patch::files(patch)?; // before anything is fetched or run
        }
        let sources = Sources {
            dir: self.place("sources"),
            apt: self.cache.join("apt"),
            mode: self.mode,
            tell: self.tell,
        };
        let source = sources.find(&recipe.source, cancel).await?;
        let toolchain = make::toolchain(cancel).await?;
        let config = wanted.text();
        let home = digest(&[&source.home, &config, &toolchain]);
        let patches: Vec<String> =
            recipe.patches.iter().map(|patch| files::sha256_bytes(&patch.text)).collect();
        let key = digest(&[&source.key, &config, &toolchain, &patches.join(" ")]);
        let tree = self.place("trees").join(&home[..16]);
        Ok(Plan { source, wanted, toolchain, key: key[..24].to_owned(), tree })
    }

    async fn keep(
        &self,
        recipe: &Recipe,
        plan: &Plan,
        tree: &Tree,
        (output, warnings): (&Output, Vec<Warning>),
        cancel: &CancellationToken,
    ) -> Result<Built, BuildError> {
        let obj = tree.obj();
        let log = make::write_log(&tree.dir().join("build.log"), output)?;
        let image = obj.join("arch/x86/boot/bzImage");
        let identity = identify::identify(&image).map_err(Box::new)?;
        let config = identify::read_config(&obj.join(".config")).map_err(Box::new)?;
        let has_debug = config.get("DEBUG_INFO") == Some("y");
        let mut stored = vec![
            ("bzImage", image.clone()),
            ("config", obj.join(".config")),
            ("System.map", obj.join("System.map")),
            ("build.log", log),
        ];
        if has_debug {
            stored.push(("vmlinux", obj.join("vmlinux")));
        }
        let meta = Meta {
            name: recipe.name.clone(),
            release: identity.release,
            source: plan.source.label.clone(),
            patches: recipe.patches.iter().map(|patch| patch.name.clone()).collect(),
            fragments: recipe.fragments.iter().map(|fragment| fragment.name.clone()).collect(),
            toolchain: plan.toolchain.clone(),
            warnings,
            vmlinux: has_debug,
            sha256: files::sha256(&image).map_err(BuildError::io(&image))?,
        };
        self.store().publish(&plan.key, &stored, meta, cancel).await
    }

    /// Everything in the store, newest use first: kernels, then trees, then sources.
    pub fn kept(&self) -> [Vec<Kept>; 3] {
        let kinds = [("kernels", "built.json"), ("trees", "state.json"), ("sources", "Makefile")];
        kinds.map(|(kind, mark)| {
            let mut all = store::kept(&self.place(kind), mark);
            all.sort_by_key(|kept| std::cmp::Reverse(kept.used));
            all
        })
    }

    /// What is stored in a directory of [`Builder::kept`].
    pub fn stored(&self, kept: &Kept) -> Result<Built, String> {
        let key = kept.dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match self.store().look(&key) {
            Look::Whole(built) => Ok(built),
            Look::Damaged(why) => Err(why),
            Look::Absent => Err("gone".into()),
        }
    }

    /// Removes kernels and trees, longest unused first, until all fits into `limit` bytes; with
    /// `all` also what was used today, and with `sources` what they are built from. Tells what
    /// went.
    ///
    /// # Errors
    ///
    /// [`BuildError::Io`].
    pub async fn clean(
        &self,
        limit: u64,
        all: bool,
        sources: bool,
        cancel: &CancellationToken,
    ) -> Result<Vec<Kept>, BuildError> {
        let [kernels, trees, unpacked] = self.kept();
        let mut candidates = kernels;
        candidates.extend(trees);
        if sources {
            candidates.extend(unpacked);
        }
        let surplus =
            if all { candidates } else { store::surplus(candidates, limit, SystemTime::now()) };
        let mut gone = Vec::new();
        for kept in surplus {
            // A tree that is being built in is held by its lock, and stays.
            let lock = kept.dir.join("lock");
            let short = std::time::Duration::from_millis(100);
            let _held = match lock.exists() {
                true => match crate::host::lock::exclusive(&lock, short, cancel).await {
                    Ok(held) => Some(held),
                    Err(_) => continue,
                },
                false => None,
            };
            std::fs::remove_dir_all(&kept.dir).map_err(BuildError::io(&kept.dir))?;
            gone.push(kept);
        }
        if sources {
            self.forget_answers();
        }
        Ok(gone)
    }

    /// The archive is asked again for the newest version.
    fn forget_answers(&self) {
        let entries = std::fs::read_dir(self.place("sources")).into_iter().flatten().flatten();
        for entry in entries.filter(|e| e.path().extension().is_some_and(|e| e == "json")) {
            let _ = std::fs::remove_file(entry.path()); // one that stays costs an old version
        }
    }
}

fn digest(parts: &[&str]) -> String {
    files::sha256_bytes(parts.join("\0").as_bytes())
}

/// allnoconfig with the fragments' lines, each of them verified.
async fn configure(
    make: &Make<'_>,
    wanted: &Wanted,
    dir: &Path,
    cancel: &CancellationToken,
) -> Result<(), BuildError> {
    let lines = make.obj.join("fragments.config");
    files::replace(&lines, wanted.text().as_bytes()).map_err(BuildError::io(&lines))?;
    let all = format!("KCONFIG_ALLCONFIG={}", lines.display());
    let output = make.run(&[all, "allnoconfig".into()], cancel).await?;
    if !output.status.success() {
        let src = make.src.display().to_string();
        return Err(BuildError::Configure(output::errors(&output.stdout, &src)));
    }
    let path = make.obj.join(".config");
    let bytes = files::read_bounded(&path, 4 << 20).map_err(BuildError::io(&path))?;
    let config = KernelConfig::parse(&String::from_utf8_lossy(&bytes))
        .map_err(|error| BuildError::Configure(format!("{}: {error}", dir.display())))?;
    let checked = wanted.check(&config, |name| is_known(make.src, name));
    if checked.is_err() {
        // What looks configured must be right.
        std::fs::remove_file(&path).map_err(BuildError::io(&path))?;
    }
    checked
}

/// Whether any Kconfig file of the tree defines an option.
fn is_known(src: &Path, name: &str) -> bool {
    let files = walkdir::WalkDir::new(src).into_iter().flatten().filter(|entry| {
        entry.file_type().is_file() && entry.file_name().to_string_lossy().starts_with("Kconfig")
    });
    let defines = |line: &str| {
        let mut words = line.split_whitespace();
        matches!(words.next(), Some("config" | "menuconfig")) && words.next() == Some(name)
    };
    files
        .filter_map(|entry| std::fs::read_to_string(entry.path()).ok())
        .any(|text| text.lines().any(defines))
}

/// A build that failed: its log stays beside the tree.
fn failed(recipe: &Recipe, tree: &Tree, output: &Output) -> Result<BuildError, BuildError> {
    let log = make::write_log(&tree.dir().join("failed.log"), output)?;
    let errors = output::errors(&output.stdout, &tree.src().display().to_string());
    Ok(BuildError::Compile { name: recipe.name.clone(), errors, log })
}
