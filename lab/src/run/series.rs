//! `lab series`: each patch must apply, build, boot and behave.
//!
//! The kernels are built first, patch by patch; what came of that are events of the run that
//! then tests them, so that one record holds all.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::events::Event;
use super::launch::{self, Host, Reporters, RunError};
use super::matrix;
use super::options::{Begin, TestOptions};
use super::signals;
use super::steps;
use crate::config::kernel::{KernelEntry, KernelSource, SeriesPlace};
use crate::config::load::Project;
use crate::config::nearest;
use crate::host::paths;
use crate::host::setup;
use crate::kernel::build::{BuildError, Builder, Built, Stage, Warning, files_of_patch};
use crate::kernel::recipe::{Patch, Source};
use crate::kernel::series::{self, Series};
use crate::kernel::{Fetch, KernelError, assemble};
use crate::plan::{self, Plan, PlanError, Selection};

/// Entries that a series is put onto where nothing else says so, best first.
const BASES: [&str; 1] = ["v7.3"];

/// Most lines of a build's errors in the record.
const MAX_DETAIL: usize = 40;

/// What `lab series` is asked to do.
#[derive(Debug, Clone)]
pub struct SeriesOptions {
    /// The series.
    pub input: String,
    /// Name of the entry it is put onto; none means to find it.
    pub onto: Option<String>,
    /// An earlier version of the series.
    pub against: Option<String>,
    /// Whether the tip is compared with the base.
    pub with_base: bool,
    /// Configurations that each patch must build in, too.
    pub matrix: bool,
    /// Selection of the kernels that are not the tip; its kernels are empty.
    pub each: Selection,
    /// Selection of the tip.
    pub tip: Selection,
    /// Everything else.
    pub test: TestOptions,
}

/// Why a series cannot be tested at all.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// What the user named is wrong.
    #[error("{0}")]
    Usage(String),
    /// The cases cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Nothing to do with the series.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Builds and tests a series to an exit code: 1 also where a patch does not apply, does not
/// build or brings a warning.
///
/// # Errors
///
/// [`PrepareError`].
pub fn series(
    host: &Host<'_>,
    project: &Project,
    options: &SeriesOptions,
    reporters: Reporters<'_>,
) -> Result<u8, PrepareError> {
    let temp = paths::private_temp().map_err(RunError::from)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(RunError::from)?;
    let prepared = runtime.block_on(async {
        let cancel = CancellationToken::new();
        signals::watch(cancel.clone()).map_err(RunError::from)?;
        let work = Work { host, options, temp: temp.path(), cancel: &cancel };
        tokio::select! {
            prepared = work.prepare(project) => prepared,
            () = cancel.cancelled() => Err(RunError::Interrupted.into()),
        }
    });
    runtime.shutdown_background();
    let (begin, plan) = prepared?;
    // What a rerun plans from: the kernels by name, which the record's patches stand behind.
    let mut kernels: Vec<String> = Vec::new();
    for case in plan.cases.iter().filter(|case| !case.base) {
        if kernels.last() != Some(&case.kernel) {
            kernels.push(case.kernel.clone());
        }
    }
    let base = plan.base.clone();
    let selection = Selection { kernels, base, ..options.tip.clone() };
    let test = TestOptions { begin, selection, ..options.test.clone() };
    Ok(launch::test(host, &test, &plan, reporters)?)
}

/// A series being built.
struct Work<'a> {
    host: &'a Host<'a>,
    options: &'a SeriesOptions,
    /// Holds the patches until the run has a directory.
    temp: &'a Path,
    cancel: &'a CancellationToken,
}

/// A series and what its kernels came to.
struct Done {
    events: Vec<Event>,
    kernels: Vec<KernelEntry>,
    /// Whether the last patch is among the kernels.
    has_tip: bool,
}

impl Work<'_> {
    async fn prepare(&self, project: &Project) -> Result<(Begin, Plan), PrepareError> {
        if self.options.test.setup {
            let needs: Vec<_> = setup::NEEDS.into_iter().chain(setup::BUILD_NEEDS).collect();
            let (paths, tell) = (self.host.paths, self.host.tell);
            setup::run(&needs, paths, tell, self.cancel).await.map_err(RunError::from)?;
        }
        let found = read(self.host, project, &self.options.input, self.cancel).await?;
        let onto = self.options.onto.as_deref();
        let (base, chosen) = base(self.host, project, &found, onto)?;
        let mut done = self.one(&found, &base, &chosen).await?;
        let mut begin = Begin::default();
        begin.patches.push((found.name.clone(), found.patches.clone()));
        let mut earlier = Vec::new();
        if let Some(against) = &self.options.against {
            let old = read(self.host, project, against, self.cancel).await?;
            if old.name == found.name {
                let text = format!("`{against}` and `{}` have one name", self.options.input);
                return Err(PrepareError::Usage(text));
            }
            let built = self.one(&old, &base, "that of the series").await?;
            begin.patches.push((old.name.clone(), old.patches.clone()));
            done.events.extend(built.events);
            // Of an earlier version only the whole counts.
            earlier = built.kernels.into_iter().rev().take(usize::from(built.has_tip)).collect();
            done.events.push(Event::SeriesCompared {
                series: found.name.clone(),
                against: old.name.clone(),
            });
        }
        let plan = self.plan(project, &base, &done, earlier)?;
        begin.events = done.events;
        Ok((begin, plan))
    }

    /// Builds every step of a series.
    async fn one(
        &self,
        found: &Series,
        base: &KernelEntry,
        chosen: &str,
    ) -> Result<Done, PrepareError> {
        let (name, of) = (&found.name, found.patches.len());
        let tell = self.host.tell;
        tell(&format!("series {name}: {of} patches onto {} ({chosen})", base.name));
        let dir = steps::kept(self.temp, name);
        super::log::keep_patches(&dir, &found.patches).map_err(RunError::from)?;
        let mut events = vec![Event::SeriesPlanned {
            series: name.clone(),
            onto: base.name.clone(),
            chosen: chosen.to_owned(),
            patches: found.patches.iter().map(series::title).collect(),
        }];
        let KernelSource::Built(spec) = &base.source else {
            let text = steps::entry(base, &dir, name, (1, of)).err().unwrap_or_default();
            return Err(PrepareError::Usage(text));
        };
        let before = assemble::recipe(&base.name, spec, self.cancel).await;
        let recipe = before.map_err(KernelError::from).map_err(RunError::from)?;
        // A base that cannot be built says nothing about the series.
        let built = self.builder().build(&recipe, self.cancel).await;
        let mut known = built.map_err(failure)?.warnings;
        let (mut kernels, mut stopped, mut has_tip) = (Vec::new(), false, false);
        for number in 1..=of {
            let patch = &found.patches[number - 1];
            let entry =
                steps::entry(base, &dir, name, (number, of)).map_err(PrepareError::Usage)?;
            let mut outcome = Outcome::default();
            if stopped {
                outcome.result = "not-reached";
            } else {
                let begin = Instant::now();
                let end = self.step(&entry, patch, &mut known, &mut outcome).await?;
                outcome.duration_ms = super::session::millis(begin.elapsed());
                stopped = outcome.result == "no-apply";
                has_tip = number == of && end;
                if end {
                    kernels.push(entry.clone());
                }
            }
            let event = outcome.event(name, (number, of), patch, &entry.name);
            tell(&line(&event));
            events.push(event);
        }
        Ok(Done { events, kernels, has_tip })
    }

    fn builder(&self) -> Builder<'_> {
        Builder::new(&self.host.paths.cache, Fetch::Auto, self.host.tell)
    }

    /// Builds one step; whether there is a kernel.
    async fn step(
        &self,
        entry: &KernelEntry,
        patch: &Patch,
        known: &mut Vec<Warning>,
        outcome: &mut Outcome,
    ) -> Result<bool, PrepareError> {
        let KernelSource::Built(spec) = &entry.source else { return Ok(false) };
        let recipe = assemble::recipe(&entry.name, spec, self.cancel).await;
        let recipe = recipe.map_err(KernelError::from).map_err(RunError::from)?;
        match self.builder().build(&recipe, self.cancel).await {
            Ok(built) => {
                outcome.result = "built";
                outcome.new_warnings = new_warnings(&built, patch, known);
                known.clone_from(&built.warnings);
                if self.options.matrix {
                    let missed = matrix::check(&self.builder(), &recipe, patch, self.cancel).await;
                    outcome.matrix = missed.map_err(failure)?;
                }
                Ok(true)
            }
            Err(error) if error.stage() != Stage::Host => {
                outcome.result = match error.stage() {
                    Stage::Apply => "no-apply",
                    Stage::Configure => "no-config",
                    _ => "no-build",
                };
                outcome.detail =
                    error.to_string().lines().take(MAX_DETAIL).map(Into::into).collect();
                Ok(false)
            }
            Err(error) => Err(failure(error)),
        }
    }

    /// Each kernel in its profile; the tip also on the base.
    fn plan(
        &self,
        project: &Project,
        base: &KernelEntry,
        done: &Done,
        earlier: Vec<KernelEntry>,
    ) -> Result<Plan, PrepareError> {
        let mut project = project.clone();
        let (tips, each) = match done.kernels.split_last() {
            Some((tip, each)) if done.has_tip => (vec![tip.clone()], each.to_vec()),
            _ => (Vec::new(), done.kernels.clone()),
        };
        let tips: Vec<KernelEntry> = earlier.into_iter().chain(tips).collect();
        let name = |kernels: &[KernelEntry]| kernels.iter().map(|k| k.name.clone()).collect();
        let names: (Vec<String>, Vec<String>) = (name(&each), name(&tips));
        for entry in each.into_iter().chain(tips) {
            project.kernels.insert(entry.name.clone(), Arc::new(entry));
        }
        let none = || Plan { kernels: Default::default(), base: None, cases: Vec::new() };
        let of = |kernels: Vec<String>, base: Option<String>, wide: &Selection| {
            if kernels.is_empty() {
                return Ok(none());
            }
            plan::plan(&project, &Selection { kernels, base, ..wide.clone() })
        };
        let with_base = self.options.with_base.then(|| base.name.clone());
        let mut plan = of(names.1, with_base, &self.options.tip)?;
        let each = of(names.0, None, &self.options.each)?;
        // Those of the base come first, then the series in its order, the tip last.
        let at = plan.cases.iter().filter(|case| case.base).count();
        plan.cases.splice(at..at, each.cases);
        plan.kernels.extend(each.kernels);
        Ok(plan)
    }
}

/// A series by a path, a range, a message-id, or the name of one.
pub(super) async fn read(
    host: &Host<'_>,
    project: &Project,
    input: &str,
    cancel: &CancellationToken,
) -> Result<Series, PrepareError> {
    let place = place(project, host.root, input)?;
    let found = series::read(&place, cancel).await.map_err(KernelError::from);
    let mut found = found.map_err(RunError::from)?;
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = found.name.chars().map(plain).take(40).collect();
    found.name = match name.trim_matches('-') {
        "" => "series".to_owned(),
        name => name.to_owned(),
    };
    if found.left_out > 0 {
        let (n, name) = (found.left_out, &found.name);
        (host.tell)(&format!("series {name}: {n} mails are no patches of it"));
    }
    Ok(found)
}

/// What the series is put onto, and who said so.
pub(super) fn base(
    host: &Host<'_>,
    project: &Project,
    found: &Series,
    onto: Option<&str>,
) -> Result<(Arc<KernelEntry>, String), PrepareError> {
    let usage = PrepareError::Usage;
    if let Some(name) = onto {
        return Ok((plan::kernel(project, name).map_err(usage)?, "--onto".into()));
    }
    if let Some(commit) = &found.base_commit {
        if let Some(entry) = project.kernels.values().find(|entry| is_commit(entry, commit)) {
            return Ok((Arc::clone(entry), format!("base-commit {commit}")));
        }
        let text = format!("series {}: no entry has its base-commit {commit}", found.name);
        (host.tell)(&text);
    }
    let entry = BASES.iter().find_map(|name| project.kernels.get(*name));
    let entry = entry.ok_or_else(|| {
        usage(format!("nothing says what {} is put onto: --onto KERNEL", found.name))
    })?;
    Ok((Arc::clone(entry), "the list of bases".into()))
}

/// Whether an entry is that commit of a git repository, unpatched.
fn is_commit(entry: &KernelEntry, commit: &str) -> bool {
    let KernelSource::Built(build) = &entry.source else { return false };
    let Source::Git { revision, .. } = &build.source else { return false };
    build.series.is_empty() && commit.starts_with(revision.as_str())
}

fn failure(error: BuildError) -> PrepareError {
    match error {
        BuildError::Interrupted => RunError::Interrupted.into(),
        error => RunError::from(KernelError::Build(Box::new(error))).into(),
    }
}

/// What `lab series` takes as a series.
pub(super) fn place(
    project: &Project,
    root: Option<&Path>,
    input: &str,
) -> Result<SeriesPlace, PrepareError> {
    if let Some(id) = input.strip_prefix("lore:") {
        return Ok(SeriesPlace::Lore(id.trim_matches(['<', '>']).into()));
    }
    let path = Path::new(input);
    if path.exists() {
        return Ok(SeriesPlace::Path(path.to_owned()));
    }
    if let Some((dir, range)) = range(input) {
        return Ok(SeriesPlace::Git { dir: dir.into(), range: range.into() });
    }
    let own = root.map(|root| root.join("kernels/series").join(input)).filter(|dir| dir.is_dir());
    if let Some(dir) = own.filter(|_| !input.contains('/')) {
        return Ok(SeriesPlace::Path(dir));
    }
    if !crate::config::shipped::series(input).is_empty() {
        return Ok(SeriesPlace::Shipped(input.to_owned()));
    }
    let spec = project.kernels.get(input).and_then(|entry| match &entry.source {
        KernelSource::Built(build) => build.series.last(),
        _ => None,
    });
    spec.map(|spec| spec.place.clone()).ok_or_else(|| {
        let known = ["v4", "v5", "knob", "rfc2"].into_iter();
        let known = known.chain(project.kernels.keys().map(String::as_str));
        PrepareError::Usage(format!(
            "`{input}` is no series: neither a directory or mbox, nor DIR:A..B, lore:ID, or a \
             known name; {}",
            nearest::suggestion(input, known)
        ))
    })
}

/// `DIR:A..B`, or `A..B` of the current directory.
pub(super) fn range(input: &str) -> Option<(&str, &str)> {
    let (dir, range) = input.rsplit_once(':').unwrap_or((".", input));
    (range.contains("..") && !range.contains('/') && !range.starts_with('-'))
        .then_some((dir, range))
}

/// Warnings in files that the patch touches and that were not there before it. Lines move.
fn new_warnings(built: &Built, patch: &Patch, before: &[Warning]) -> Vec<String> {
    let touched: BTreeSet<String> = files_of_patch(patch).unwrap_or_default();
    let object = |file: &str| file.strip_suffix(".o").map(|stem| format!("{stem}.c"));
    let is_touched = |w: &&Warning| {
        touched.contains(&w.file) || object(&w.file).is_some_and(|file| touched.contains(&file))
    };
    let is_old = |w: &Warning| before.iter().any(|b| b.file == w.file && b.text == w.text);
    let new = built.warnings.iter().filter(is_touched).filter(|w| !is_old(w));
    new.map(|w| format!("{}:{}: {}", w.file, w.line, w.text)).collect()
}

/// What came of one patch before it was booted.
#[derive(Debug, Default)]
struct Outcome {
    result: &'static str,
    new_warnings: Vec<String>,
    detail: Vec<String>,
    matrix: Vec<String>,
    duration_ms: u64,
}

impl Outcome {
    fn event(
        self,
        series: &str,
        (number, of): (usize, usize),
        patch: &Patch,
        kernel: &str,
    ) -> Event {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Event::PatchBuilt {
            series: series.to_owned(),
            number: count(number),
            of: count(of),
            title: series::title(patch),
            kernel: kernel.to_owned(),
            result: self.result.to_owned(),
            new_warnings: self.new_warnings,
            matrix: self.matrix,
            detail: self.detail,
            duration_ms: self.duration_ms,
        }
    }
}

/// Progress of one patch.
fn line(event: &Event) -> String {
    let Event::PatchBuilt { number, of, title, result, new_warnings, matrix, duration_ms, .. } =
        event
    else {
        return String::new();
    };
    let warnings = match new_warnings.len() {
        0 => String::new(),
        n => format!(", {n} new warnings"),
    };
    let matrix = match matrix.len() {
        0 => String::new(),
        n => format!(", {n} configurations fail"),
    };
    let seconds = duration_ms / 1000;
    format!("  {number}/{of} {result}{warnings}{matrix}, {seconds} s: {title}")
}

#[cfg(test)]
#[path = "series_tests.rs"]
mod tests;
