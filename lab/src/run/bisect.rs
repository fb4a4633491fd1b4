//! `lab bisect`: the patch of a series, or the commit of a range, that brought a failure.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;

use super::events::{Event, Record};
use super::launch::{self, Host, RunError};
use super::options::{Begin, TestOptions};
use super::record::RunDir;
use super::series::{self, PrepareError};
use super::{signals, steps};
use crate::bisect::{Answer, Judged, Search, Signature, State, hunted, judge};
use crate::config::kernel::KernelEntry;
use crate::config::load::Project;
use crate::host::paths;
use crate::judge::exit::INTERRUPTED;
use crate::kernel::KernelError;
use crate::kernel::build::Stage;
use crate::kernel::series::{self as patches, Series};
use crate::plan::{self, Plan, Selection};

/// Exit code where the first bad step is known.
const FOUND: u8 = 0;
/// Exit code where several steps are left.
const SEVERAL: u8 = 1;

/// What `lab bisect` is asked to do.
#[derive(Debug, Clone)]
pub struct BisectOptions {
    /// The series.
    pub input: String,
    /// Name of the entry it is put onto; none means to find it.
    pub onto: Option<String>,
    /// A step that is good; 0 is the base.
    pub good: usize,
    /// A step that is bad; none means the last.
    pub bad: Option<usize>,
    /// Runs that a step has to pass to be good.
    pub runs: u32,
    /// Cases that can show the failure; its kernels are empty.
    pub selection: Selection,
    /// Everything else.
    pub test: TestOptions,
}

/// Finds the first bad step; the lines are the answer, with the exit code: 0 for one step, 1
/// for several that could not be told apart, 130 for an interrupt.
///
/// # Errors
///
/// [`PrepareError`], also where the good end is bad or the bad end good.
pub fn bisect(
    host: &Host<'_>,
    project: &Project,
    options: &BisectOptions,
) -> Result<(Vec<String>, u8), PrepareError> {
    let temp = paths::private_temp().map_err(RunError::from)?;
    let (found, base) = read(host, project, options)?;
    let dir = steps::kept(temp.path(), &found.name);
    super::log::keep_patches(&dir, &found.patches).map_err(RunError::from)?;
    // Every step would say the same of accelerator and cache.
    let (said, tell) = (Mutex::new(BTreeSet::new()), host.tell);
    let once = |line: &str| {
        if said.lock().is_ok_and(|mut said| said.insert(line.to_owned())) {
            tell(line);
        }
    };
    let (qemu, guest, vng) = (host.qemu.clone(), host.guest.clone(), host.vng.clone());
    let host = &Host { paths: host.paths, root: host.root, qemu, guest, vng, tell: &once, ..*host };
    let work = Work { host, project, options, found: &found, base: &base, dir: &dir };
    work.run()
}

/// The series and its base.
fn read(
    host: &Host<'_>,
    project: &Project,
    options: &BisectOptions,
) -> Result<(Series, Arc<KernelEntry>), PrepareError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(RunError::from)?;
    runtime.block_on(async {
        let cancel = CancellationToken::new();
        signals::watch(cancel.clone()).map_err(RunError::from)?;
        let found = series::read(host, project, &options.input, &cancel).await?;
        let (base, chosen) = series::base(host, project, &found, options.onto.as_deref())?;
        let (name, n) = (&found.name, found.patches.len());
        (host.tell)(&format!("series {name}: {n} patches onto {} ({chosen})", base.name));
        Ok((found, base))
    })
}

struct Work<'a> {
    host: &'a Host<'a>,
    project: &'a Project,
    options: &'a BisectOptions,
    found: &'a Series,
    base: &'a KernelEntry,
    dir: &'a Path,
}

/// What a test of one step left.
enum Tested {
    /// It ran.
    Ran(PathBuf, Vec<Record>),
    /// There is no kernel: why.
    NotBuilt(String),
    Interrupted,
}

impl Work<'_> {
    fn run(&self) -> Result<(Vec<String>, u8), PrepareError> {
        let of = self.found.patches.len();
        let (good, bad) = (self.options.good, self.options.bad.unwrap_or(of));
        if bad > of {
            let text = format!("--bad {bad}: the series has {of} patches");
            return Err(PrepareError::Usage(text));
        }
        let mut search = Search::new(good, bad).ok_or_else(|| {
            PrepareError::Usage(format!("--good {good} is not before --bad {bad}"))
        })?;
        let (signature, shown, mut last) = match self.bad_end(bad)? {
            Some(end) => end,
            None => return Ok((Vec::new(), INTERRUPTED)),
        };
        self.say(bad, &format!("bad: {} {}", signature.verdict, signature.cause));
        match self.step(good, &signature)? {
            None => return Ok((Vec::new(), INTERRUPTED)),
            Some((Judged::Good, _)) => self.say(good, "good"),
            Some((judged, _)) => {
                let what = match judged {
                    Judged::Bad => "has the failure, too".to_owned(),
                    Judged::Good => String::new(),
                    Judged::Other(why) | Judged::Infra(why) => format!("cannot be told: {why}"),
                };
                let step = self.title(good);
                return Err(PrepareError::Usage(format!("the good end, {step}, {what}")));
            }
        }
        let mut skipped = BTreeMap::new();
        while let Some(step) = search.next() {
            let Some((judged, run)) = self.step(step, &signature)? else {
                return Ok((Vec::new(), INTERRUPTED));
            };
            let (state, told) = match &judged {
                Judged::Good => (State::Good, "good".to_owned()),
                Judged::Bad => (State::Bad, "bad".to_owned()),
                Judged::Other(why) | Judged::Infra(why) => {
                    skipped.insert(step, why.clone());
                    (State::Skip, format!("skipped: {why}"))
                }
            };
            if judged == Judged::Bad {
                last = run.unwrap_or(last);
            }
            search.tell(step, state);
            self.say(step, &format!("{told} (about {} left)", search.left()));
        }
        Ok(self.answer(&search, &skipped, (&signature, shown), &last))
    }

    fn say(&self, step: usize, text: &str) {
        (self.host.tell)(&format!("step {}: {text}", self.title(step)));
    }

    /// `6/8 fuse: title`, or the name of the base.
    fn title(&self, step: usize) -> String {
        match step {
            0 => format!("0, {}", self.base.name),
            _ => {
                let title = patches::title(&self.found.patches[step - 1]);
                format!("{step}/{} {title}", self.found.patches.len())
            }
        }
    }

    /// The failure of the bad end, in how many of the runs it showed, and their record.
    #[allow(clippy::type_complexity)] // three things of one run, taken apart at once
    fn bad_end(
        &self,
        step: usize,
    ) -> Result<Option<(Signature, (u32, u32), PathBuf)>, PrepareError> {
        match self.test(step, None)? {
            Tested::Interrupted => Ok(None),
            Tested::NotBuilt(why) => {
                let text = format!("the bad end, {}, has no kernel: {why}", self.title(step));
                Err(PrepareError::Usage(text))
            }
            Tested::Ran(run, records) => {
                let signature = hunted(&records).ok_or_else(|| {
                    let step = self.title(step);
                    PrepareError::Usage(format!("the bad end, {step}, shows no failure"))
                })?;
                let of_case = |r: &&Record| match &r.event {
                    Event::CaseFinished { case, .. } => {
                        case.split('#').next().is_some_and(|c| c.ends_with(&signature.place))
                    }
                    _ => false,
                };
                let own: Vec<&Record> = records.iter().filter(of_case).collect();
                let failed = |r: &&&Record| {
                    matches!(&r.event, Event::CaseFinished { verdict, .. }
                    if verdict.word() == signature.verdict)
                };
                let shown = own.iter().filter(failed).count();
                let shown = (count(shown), count(own.len()));
                Ok(Some((signature, shown, run)))
            }
        }
    }

    /// A step held against the failure; one that the host or a slow boot spoilt is tried twice.
    fn step(
        &self,
        step: usize,
        wanted: &Signature,
    ) -> Result<Option<(Judged, Option<PathBuf>)>, PrepareError> {
        let mut again = true;
        loop {
            let (judged, run) = match self.test(step, Some(wanted))? {
                Tested::Interrupted => return Ok(None),
                Tested::NotBuilt(why) => return Ok(Some((Judged::Other(why), None))),
                Tested::Ran(run, records) => (judge(&records, wanted), run),
            };
            match &judged {
                Judged::Infra(why) | Judged::Other(why) if again => {
                    self.say(step, &format!("once more: {why}"));
                    again = false;
                }
                Judged::Infra(why) => {
                    let text = format!("step {}: {why}; see {}", self.title(step), run.display());
                    return Err(RunError::Host(text).into());
                }
                _ => return Ok(Some((judged, Some(run)))),
            }
        }
    }

    /// Builds and runs one step: all that was selected, or the one case that shows the failure.
    fn test(&self, step: usize, only: Option<&Signature>) -> Result<Tested, PrepareError> {
        let plan = self.plan(step, only)?;
        let of = self.found.patches.len();
        let begin = Begin {
            events: vec![Event::SeriesPlanned {
                series: self.found.name.clone(),
                onto: self.base.name.clone(),
                chosen: "bisection".into(),
                patches: self.found.patches.iter().map(patches::title).collect(),
            }],
            patches: vec![(self.found.name.clone(), self.found.patches.clone())],
        };
        let kernels = vec![self.entry(step, of)?.name];
        let selection = Selection { kernels, ..self.options.selection.clone() };
        let mut test = TestOptions { begin, selection, ..self.options.test.clone() };
        // The first failure tells a step; how often the bad end fails is counted to the end.
        test.manner.fail_fast = only.is_some();
        let run = Mutex::new(PathBuf::new());
        let reporters = |dir: &Path| {
            if let Ok(mut run) = run.lock() {
                dir.clone_into(&mut run);
            }
            Ok(Vec::new())
        };
        match launch::test(self.host, &test, &plan, &reporters) {
            Ok(INTERRUPTED) | Err(RunError::Interrupted) => return Ok(Tested::Interrupted),
            Ok(_) => {}
            Err(RunError::Kernel(KernelError::Build(error))) if error.stage() != Stage::Host => {
                let text = error.to_string();
                let line = text.lines().find(|l| l.contains("error")).or(text.lines().next());
                return Ok(Tested::NotBuilt(format!("no kernel: {}", line.unwrap_or_default())));
            }
            Err(error) => return Err(error.into()),
        }
        let run = run.into_inner().unwrap_or_default();
        let (records, _) = RunDir::open(&run).read().map_err(RunError::from)?;
        Ok(Tested::Ran(run, records))
    }

    fn entry(&self, step: usize, of: usize) -> Result<KernelEntry, PrepareError> {
        match step {
            0 => Ok(self.base.clone()),
            _ => steps::entry(self.base, self.dir, &self.found.name, (step, of))
                .map_err(PrepareError::Usage),
        }
    }

    fn plan(&self, step: usize, only: Option<&Signature>) -> Result<Plan, PrepareError> {
        let entry = self.entry(step, self.found.patches.len())?;
        let mut project = self.project.clone();
        let kernels = vec![entry.name.clone()];
        project.kernels.insert(entry.name.clone(), Arc::new(entry));
        let repeat = self.options.runs;
        let selection = Selection { kernels, repeat, ..self.options.selection.clone() };
        let mut plan = plan::plan(&project, &selection)?;
        if let Some(wanted) = only {
            plan.cases.retain(|case| case.place().split('#').next() == Some(&wanted.place));
        }
        Ok(plan)
    }

    fn answer(
        &self,
        search: &Search,
        skipped: &BTreeMap<usize, String>,
        (signature, (failed, of)): (&Signature, (u32, u32)),
        run: &Path,
    ) -> (Vec<String>, u8) {
        let Some(answer) = search.answer() else { return (Vec::new(), SEVERAL) };
        let mut lines = Vec::new();
        let code = match &answer {
            Answer::First(step) => {
                lines.push(format!("first bad: patch {}", self.title(*step)));
                FOUND
            }
            Answer::OneOf(steps) => {
                lines.push("first bad is one of these:".into());
                for step in steps {
                    let why = skipped.get(step).map(|why| format!(" (skipped: {why})"));
                    let title = self.title(*step);
                    lines.push(format!("  patch {title}{}", why.unwrap_or_default()));
                }
                SEVERAL
            }
        };
        let (verdict, place) = (&signature.verdict, &signature.place);
        lines.push(format!("failure: {verdict} {place}: {}", signature.cause));
        lines.push(confidence(failed, of, self.options.runs, search.good()));
        lines.push(format!("see: lab report {}", run.display()));
        (lines, code)
    }
}

/// How sure the last good step is: that a failure of the rate seen at the bad end was missed.
fn confidence(failed: u32, of: u32, runs: u32, good: usize) -> String {
    let shown = format!("the bad end failed in {failed} of {of} runs");
    if failed == of && of == 1 {
        return format!(
            "confidence: {shown}, step {good} passed once; --runs N tells how sure that is"
        );
    }
    let rate = f64::from(failed) / f64::from(of.max(1));
    let missed = (1.0 - rate).powi(i32::try_from(runs).unwrap_or(i32::MAX));
    format!(
        "confidence: {shown}; that step {good} fails as often and passed {runs} of {runs} by luck \
         has a chance of {:.2} %",
        missed * 100.0
    )
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_is_the_chance_of_a_lucky_pass() {
        let text = confidence(3, 6, 6, 4);
        assert!(text.ends_with("by luck has a chance of 1.56 %"), "{text}");
        assert!(confidence(1, 1, 1, 0).contains("--runs N"));
        assert!(confidence(5, 5, 5, 0).ends_with("0.00 %"));
    }
}
