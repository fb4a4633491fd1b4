//! What `lab kernel` does: entries and their stored builds, without any run.

use std::sync::Arc;
use std::time::SystemTime;

use tokio_util::sync::CancellationToken;

use super::launch::{Host, RunError};
use super::signals;
use crate::config::kernel::{KernelEntry, KernelSource};
use crate::config::load::Project;
use crate::host::setup;
use crate::kernel::build::{Builder, Built, Kept};
use crate::kernel::{Fetch, KernelError, Resolver, assemble, resolve};
use crate::plan;

/// What is asked about kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelTask {
    /// The entries, and what is stored.
    List,
    /// Fetch or build.
    Build {
        /// Entries or paths.
        names: Vec<String>,
        /// Install what building needs.
        setup: bool,
    },
    /// A path of a kernel that is stored.
    Show(String, Part),
    /// Make room.
    Clean {
        /// Keep nothing, not even what was used today.
        all: bool,
        /// Sources, too.
        sources: bool,
        /// Most bytes that stay.
        limit_bytes: u64,
    },
}

/// A part of a stored kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Path of the image.
    Image,
    /// What the build said.
    Log,
    /// The configuration.
    Config,
}

/// Does it; the lines are the answer.
///
/// # Errors
///
/// [`RunError`].
pub fn kernels(
    host: &Host<'_>,
    project: &Project,
    task: &KernelTask,
) -> Result<Vec<String>, RunError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(async {
        let cancel = CancellationToken::new();
        signals::watch(cancel.clone())?;
        let work = Work { host, project, cancel: &cancel };
        tokio::select! {
            done = work.run(task) => done,
            () = cancel.cancelled() => Err(RunError::Interrupted),
        }
    });
    runtime.shutdown_background();
    done
}

struct Work<'a> {
    host: &'a Host<'a>,
    project: &'a Project,
    cancel: &'a CancellationToken,
}

impl Work<'_> {
    async fn run(&self, task: &KernelTask) -> Result<Vec<String>, RunError> {
        match task {
            KernelTask::List => self.list().await,
            KernelTask::Build { names, setup } => {
                if *setup {
                    let needs = &setup::BUILD_NEEDS;
                    setup::run(needs, self.host.paths, self.host.tell, self.cancel).await?;
                }
                let mut lines = Vec::new();
                for name in names {
                    lines.push(self.build(name).await?);
                }
                Ok(lines)
            }
            KernelTask::Show(name, part) => self.show(name, *part).await,
            KernelTask::Clean { all, sources, limit_bytes } => {
                let builder = self.builder(Fetch::CacheOnly);
                let gone = builder.clean(*limit_bytes, *all, *sources, self.cancel).await;
                let gone = gone.map_err(|e| KernelError::Build(Box::new(e)))?;
                let total: u64 = gone.iter().map(|kept| kept.bytes).sum();
                let mut lines: Vec<String> =
                    gone.iter().map(|kept| kept.dir.display().to_string()).collect();
                lines.push(format!("removed {} of {}", gone.len(), size(total)));
                Ok(lines)
            }
        }
    }

    fn builder(&self, mode: Fetch) -> Builder<'_> {
        Builder::new(&self.host.paths.cache, mode, self.host.tell)
    }

    fn entry(&self, name: &str) -> Result<Arc<KernelEntry>, RunError> {
        plan::kernel(self.project, name).map_err(RunError::Rerun)
    }

    async fn build(&self, name: &str) -> Result<String, RunError> {
        let entry = self.entry(name)?;
        let entries = [(*entry).clone()];
        let resolver = Resolver {
            entries: &entries,
            paths: self.host.paths,
            mode: Fetch::Auto,
            tell: self.host.tell,
        };
        let kernel = resolve(&entry.name, &resolver, self.cancel).await?;
        Ok(format!("{}  {}  {}", kernel.name, kernel.release, kernel.image.display()))
    }

    /// The stored build of an entry that is built.
    async fn stored(&self, entry: &KernelEntry) -> Result<Option<Built>, RunError> {
        let KernelSource::Built(spec) = &entry.source else { return Ok(None) };
        let recipe = assemble::recipe(&entry.name, spec, self.cancel).await;
        let recipe = recipe.map_err(KernelError::from)?;
        let found = self.builder(Fetch::CacheOnly).find(&recipe, self.cancel).await;
        Ok(found.map_err(|e| KernelError::Build(Box::new(e)))?)
    }

    async fn show(&self, name: &str, part: Part) -> Result<Vec<String>, RunError> {
        let entry = self.entry(name)?;
        if part == Part::Image && !matches!(entry.source, KernelSource::Built(_)) {
            let entries = [(*entry).clone()];
            let (paths, tell) = (self.host.paths, self.host.tell);
            let resolver = Resolver { entries: &entries, paths, mode: Fetch::CacheOnly, tell };
            let kernel = resolve(&entry.name, &resolver, self.cancel).await?;
            return Ok(vec![kernel.image.display().to_string()]);
        }
        if !matches!(entry.source, KernelSource::Built(_)) {
            return Err(RunError::Rerun(format!("kernel `{name}` is not built by the lab")));
        }
        let Some(built) = self.stored(&entry).await? else {
            let why = format!("kernel `{name}` is not built yet: lab kernel build {name}");
            return Err(RunError::Rerun(why));
        };
        let path = match part {
            Part::Image => return Ok(vec![built.image().display().to_string()]),
            Part::Log => built.log(),
            Part::Config => built.config(),
        };
        let bytes = crate::host::files::read_bounded(&path, 8 << 20);
        let bytes = bytes.map_err(|source| KernelError::Read { path, source })?;
        Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
    }

    async fn list(&self) -> Result<Vec<String>, RunError> {
        let mut lines = Vec::new();
        for entry in self.project.kernels.values() {
            let state = match &entry.source {
                KernelSource::Built(_) => match self.stored(entry).await {
                    Ok(Some(built)) => format!("built {}", built.release),
                    Ok(None) => "not built".to_owned(),
                    Err(error) => format!("cannot be built: {}", first_line(&error.to_string())),
                },
                KernelSource::Debian { .. } => "prebuilt".to_owned(),
                KernelSource::Path(path) => format!("path {}", path.display()),
            };
            lines.push(format!("{:<18} {state:<14} {}", entry.name, entry.summary));
        }
        lines.extend(self.sizes());
        Ok(lines)
    }

    /// What the store holds, with sizes.
    fn sizes(&self) -> Vec<String> {
        let builder = self.builder(Fetch::CacheOnly);
        let [kernels, trees, sources] = builder.kept();
        let mut lines = Vec::new();
        for kept in &kernels {
            let what = match builder.stored(kept) {
                Ok(built) => format!("{} ({} patches)", built.name, built.patches.len()),
                Err(why) => format!("damaged: {why}"),
            };
            lines.push(line(kept, &what));
        }
        let total = |all: &[Kept]| size(all.iter().map(|kept| kept.bytes).sum());
        lines.push(format!(
            "{} kernels {}, {} trees {}, {} sources {}",
            kernels.len(),
            total(&kernels),
            trees.len(),
            total(&trees),
            sources.len(),
            total(&sources)
        ));
        lines
    }
}

fn line(kept: &Kept, what: &str) -> String {
    let hours = SystemTime::now().duration_since(kept.used).unwrap_or_default().as_secs() / 3600;
    let key = kept.dir.file_name().unwrap_or_default().to_string_lossy();
    format!("{key}  {:>9}  used {hours:>3} h ago  {what}", size(kept.bytes))
}

fn size(bytes: u64) -> String {
    bytesize::ByteSize(bytes).to_string()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
