//! One attempt of a case, from its directory to its judgement.

use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::context::Context;
use super::events::Event;
use super::heard::Heard;
use super::lines;
use super::record::CaseDir;
use super::resolved::scenario_json;
use super::session::{Seen, Session, millis};
use super::source::{self, Source};
use crate::detect::Fault;
use crate::host::slots::SlotError;
use crate::judge::verdict::{Owner, Tally, Verdict};
use crate::judge::{CaseEnd, Evidence, Judgement, Said, against, ran_on_base, snapshot, store};

use crate::kernel::Kernel;
use crate::plan::Case;
use crate::report::escape;
use crate::vm::End;
use crate::vm::argv::argv;
use crate::vm::spec::VmSpec;

/// How long a guest that lost its agent may take to end by itself, so that a panic wins over
/// the lost connection.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Characters of the cause of a judgement that broke off.
const MAX_CAUSE: usize = 300;

/// Bytes of a console in which the kernel's first message must be.
const MAX_HEAD: u64 = 64 << 10;

/// What an attempt needs beside the context.
pub(super) struct Attempt<'a> {
    pub(super) context: &'a Arc<Context>,
    pub(super) case: &'a Case,
    pub(super) kernel: &'a Kernel,
    pub(super) image: &'a Path,
    pub(super) source: &'a Source,
    pub(super) number: u32,
}

/// What came of it.
pub(super) struct Done {
    pub(super) judgement: Judgement,
    pub(super) duration: Duration,
    pub(super) dir: String,
}

impl Attempt<'_> {
    /// Runs the attempt; none when it was interrupted. Errors: the record cannot be written,
    /// which ends the run.
    pub(super) async fn run(self) -> io::Result<Option<Done>> {
        let context = self.context;
        let slot = context.slot(&self.case.topology).await;
        if matches!(slot, Err(SlotError::Cancelled)) {
            return Ok(None);
        }
        let begin = Instant::now();
        let dir = context.run_dir.create_case(&self.case.id, self.number)?;
        let sockets = context.socket_dir();
        let spec = source::spec(context, self.kernel, self.image, self.case, sockets);
        let factor = context.limits(self.kernel).slowdown.factor();
        write_inputs(&dir, self.case, &spec, factor)?;
        context.log.emit(Event::CaseStarted {
            case: self.case.id.clone(),
            attempt: self.number,
            dir: dir.relative.clone(),
        })?;
        let (seen, heard) = match &slot {
            Ok(_) => self.in_vm(&spec, &dir).await,
            Err(e) => (Seen::only(CaseEnd::VmFailed { text: e.to_string() }), Heard::default()),
        };
        let _ = std::fs::remove_dir_all(&spec.dir);
        drop(slot);
        if seen.end == CaseEnd::Cancelled || context.cancel.is_cancelled() {
            return Ok(None);
        }
        let (faults, no_lines) = self.located(&dir, &heard).await;
        let judgement = unless_broken(|| self.judge(&dir, &seen, &faults, no_lines))?;
        Ok(Some(Done { judgement, duration: begin.elapsed(), dir: dir.relative }))
    }

    /// The VM part: what was seen, and what the console of this VM said.
    async fn in_vm(&self, spec: &VmSpec, dir: &CaseDir) -> (Seen, Heard) {
        if let Source::Broken(broken) = self.source {
            let _ = std::fs::write(dir.console(), &broken.console);
            return (broken.seen(), broken.heard());
        }
        let context = self.context;
        let limits = context.limits(self.kernel);
        let machine = match self.source.machine(context, spec, &limits, &dir.path).await {
            Ok(machine) => machine,
            Err(broken) => return (broken.seen(), broken.heard()),
        };
        let session = Session {
            case: self.case,
            machine: &machine,
            limits,
            log: &context.log,
            cancel: &context.cancel,
            vmcore: context.vmcore.then(|| dir.vmcore()),
        };
        let seen = session.run().await;
        if matches!(seen.end, CaseEnd::AgentLost { .. }) {
            let _ = tokio::time::timeout(LAST_WORDS, machine.gone()).await;
        }
        let console = Arc::clone(machine.console());
        machine.end(End::Quit).await;
        let faults = console.faults();
        let heard = match &seen.escalation {
            Some(escalation) => Heard::escalated(escalation, faults),
            None => Heard::unasked(faults),
        };
        (seen, heard)
    }

    /// The faults, with files and lines where debug info is at hand; or why there are none.
    async fn located(&self, dir: &CaseDir, heard: &Heard) -> (Vec<Fault>, Option<String>) {
        let faults = heard.faults();
        let first_words = match self.source {
            Source::Template(template) => template.boot_text(),
            Source::Cold | Source::Broken(_) => head_of(&dir.console()),
        };
        lines::add(faults, self.kernel, &first_words, &self.context.cancel).await
    }

    fn judge(
        &self,
        dir: &CaseDir,
        seen: &Seen,
        faults: &[Fault],
        no_lines: Option<String>,
    ) -> io::Result<Judgement> {
        let (scenario, topology) = (&self.case.scenario, &self.case.topology);
        let wanted = snapshot::wanted(scenario, topology, self.policy());
        let snapshots = store::load(&self.context.snapshots, &wanted);
        write_json(&dir.observations(), &seen.observations)?;
        if let Some(escalation) = &seen.escalation {
            write_json(&dir.escalation(), &escalation.asked)?;
        }
        if let CaseEnd::StepTimeout { diagnosis: Some(diagnosis), .. }
        | CaseEnd::BootTimeout { diagnosis: Some(diagnosis), .. } = &seen.end
        {
            write_json(&dir.diagnosis(), diagnosis)?;
        }
        let evidence = Evidence {
            scenario: &self.case.scenario,
            queue_policy: self.policy(),
            topology: &self.case.topology,
            facts: seen.facts.as_ref(),
            observations: &seen.observations,
            artifacts: &seen.artifacts,
            final_stats: &seen.final_stats,
            end: &seen.end,
            faults,
            today: jiff::tz::TimeZone::UTC.to_datetime(jiff::Timestamp::now()).date(),
            taint_before: seen.facts.as_ref().map(|f| f.tainted),
            taint_after: seen.taint_after,
            topology_mismatch: seen.topology_mismatch.as_deref(),
            snapshots: &snapshots,
            strict: self.context.strict,
        };
        let judgement =
            self.compare(crate::judge::judge(&evidence), &crate::judge::said(&evidence))?;
        let mut judgement = judgement;
        // First: only the beginning is shown on a terminal.
        judgement.evidence.splice(0..0, no_lines);
        if !self.context.strict {
            let mut pending = judgement.snapshot_new.iter();
            pending.try_for_each(|new| store::write_pending(&self.context.snapshots, new))?;
        }
        Ok(judgement)
    }

    /// Records what the kernel said, and holds the attempt against the base where there is one.
    fn compare(&self, judgement: Judgement, said: &Said) -> io::Result<Judgement> {
        let context = self.context;
        if !said.faults.is_empty() {
            context.tell(Event::CaseFaults {
                case: self.case.id.clone(),
                attempt: self.number,
                faults: said.faults.clone(),
                ending: said.ending.clone(),
            })?;
        }
        let (Some(name), Some(base)) = (&context.bases.name, context.bases.get(self.case.place()))
        else {
            return Ok(judgement);
        };
        if self.case.base {
            return Ok(judgement);
        }
        let (judgement, compared) = against(judgement, said, &base);
        context.log.emit(Event::CaseCompared {
            case: self.case.id.clone(),
            attempt: self.number,
            base: format!("{name}/{}", self.case.place()),
            base_verdict: base.verdict.as_ref().map(ToString::to_string),
            comparable: ran_on_base(&base),
            known: compared.known,
            new: compared.new,
            gone: compared.gone,
            excused: compared.excused,
        })?;
        Ok(judgement)
    }

    fn policy(&self) -> Option<&str> {
        self.kernel.queue_policy.as_deref()
    }

    /// The last event of a case.
    pub(super) fn finished(&self, done: &Done, judgement: &Judgement) -> Event {
        let mut evidence = judgement.evidence.clone();
        let own: Vec<&str> = self
            .kernel
            .cmdline
            .iter()
            .chain(&self.case.scenario.kernel_args)
            .map(|a| &**a)
            .collect();
        if judgement.verdict.tally(true) == Tally::Failed && !own.is_empty() {
            evidence.push(format!("kernel arguments beside the lab's own: {}", own.join(" ")));
        }
        Event::CaseFinished {
            case: self.case.id.clone(),
            kernel: self.case.kernel.clone(),
            topology: self.case.topology.name.clone(),
            scenario: self.case.scenario.name.clone(),
            verdict: judgement.verdict.clone(),
            owner: judgement.owner,
            cause: judgement.cause.clone(),
            evidence,
            duration_ms: millis(done.duration),
            attempts: self.number,
            isolation: self.source.isolation().into(),
            accel: self.context.accel.name().into(),
            dir: done.dir.clone(),
            seed: self.case.seed,
        }
    }
}

/// What is known before the VM is started: enough to run the case again by hand.
fn write_inputs(dir: &CaseDir, case: &Case, spec: &VmSpec, slowdown: u32) -> io::Result<()> {
    let mut words = vec![spec.qemu.display().to_string()];
    words.extend(argv(spec));
    std::fs::write(dir.qemu_cmd(), shell_words::join(&words) + "\n")?;
    let json = scenario_json(&case.scenario, case.seed, slowdown);
    std::fs::write(dir.scenario(), json)
}

/// What a guest sends is judged by much code; where that breaks off, the case has no result and
/// the others go on.
fn unless_broken(judge: impl FnOnce() -> io::Result<Judgement>) -> io::Result<Judgement> {
    // What it borrows is the case's own and is not looked at again, but for the lists of the
    // base, which are locked and changed as a whole.
    catch_unwind(AssertUnwindSafe(judge)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        Ok(Judgement {
            verdict: Verdict::Infra,
            owner: Some(Owner::Lab),
            cause: escape::clip(&format!("the lab broke off while it judged: {text}"), MAX_CAUSE),
            evidence: Vec::new(),
            snapshot_new: Vec::new(),
        })
    })
}

/// The beginning of a file; nothing where there is none.
fn head_of(path: &Path) -> String {
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).map(|file| file.take(MAX_HEAD).read_to_end(&mut bytes));
    drop(read);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn write_json<T: serde::Serialize>(path: &Path, value: &T) -> io::Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(io::Error::other)?;
    std::fs::write(path, escape::json(&text) + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_judgement_that_breaks_off_is_no_result_and_no_end_of_the_run() {
        let no_numbers: &[u64] = &[];
        let broken = unless_broken(|| Err(io::Error::other(format!("{}", no_numbers[1])))).unwrap();
        assert_eq!((broken.verdict, broken.owner), (Verdict::Infra, Some(Owner::Lab)));
        assert!(broken.cause.contains("index out of bounds"), "{}", broken.cause);
        assert!(unless_broken(|| Err(io::Error::other("full"))).is_err());
    }
}
