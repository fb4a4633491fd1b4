//! Records for the tests of everything that reads them.

use super::events::{Event, Record, SCHEMA};
use super::options::Manner;
use crate::detect::Mark;
use crate::judge::verdict::{Owner, Verdict};

/// A record at a fixed time.
pub(crate) fn at(event: Event) -> Record {
    Record { time: "2026-01-02T03:04:05.678Z".into(), event }
}

/// The start of a run.
pub(crate) fn started(planned: u32) -> Record {
    at(Event::RunStarted {
        schema: SCHEMA,
        lab: "0.1.0".into(),
        argv: vec!["lab".into(), "test".into()],
        kernels: vec!["stock".into()],
        base: None,
        seed: 7,
        planned,
        profile: "quick".into(),
        strict: false,
        host: "6.1.0, 2 CPUs, 8192 MiB".into(),
        manner: Manner::default(),
    })
}

/// Kernel, topology and scenario of a case id.
fn parts(case: &str) -> (String, String, String) {
    let mut parts = case.splitn(3, '/').map(String::from);
    let mut next = || parts.next().unwrap_or_default();
    (next(), next(), next())
}

/// A planned case.
pub(crate) fn planned(case: &str) -> Record {
    let (kernel, topology, scenario) = parts(case);
    at(Event::CasePlanned {
        case: case.into(),
        kernel,
        topology,
        scenario,
        seed: 42,
        base: false,
        digest: None,
    })
}

/// A case that began.
pub(crate) fn case_started(case: &str) -> Record {
    at(Event::CaseStarted { case: case.into(), attempt: 1, dir: format!("cases/{case}") })
}

/// What a kernel said in a case.
pub(crate) fn faults(case: &str, function: &str) -> Record {
    let mark = Mark {
        title: format!("WARNING in {function}"),
        fingerprint: format!("warning: {function}"),
        follows: false,
    };
    let (case, ending) = (case.into(), "PASS".into());
    at(Event::CaseFaults { case, attempt: 1, faults: vec![mark], ending })
}

/// A case that ended.
pub(crate) fn finished(case: &str, verdict: Verdict, owner: Option<Owner>, cause: &str) -> Record {
    let (kernel, topology, scenario) = parts(case);
    at(Event::CaseFinished {
        case: case.into(),
        kernel,
        topology,
        scenario,
        verdict,
        owner,
        cause: cause.into(),
        evidence: vec!["[    1.000000] first".into(), "[    1.000001] second".into()],
        duration_ms: 1234,
        attempts: 1,
        isolation: "clone".into(),
        accel: "tcg".into(),
        dir: format!("cases/{case}"),
        seed: 42,
    })
}

/// The end of a run.
pub(crate) fn run_finished(passed: u32, failed: u32, skipped: u32, exit_code: u8) -> Record {
    at(Event::RunFinished {
        passed,
        failed,
        skipped,
        unfinished: 0,
        exit_code,
        duration_ms: 65_000,
    })
}

/// One record of each kind, in the order in which a run has them.
pub(crate) fn one_of_each() -> Vec<Record> {
    vec![
        started(1),
        planned("stock/2x2/correctness/tree"),
        at(Event::KernelReady {
            kernel: "stock".into(),
            release: "7.3.4".into(),
            sha256: "ab".repeat(32),
            origin: "trixie-backports".into(),
        }),
        at(Event::VmReady {
            kernel: "stock".into(),
            topology: "2x2".into(),
            isolation: "boot".into(),
            reason: Some("no memfd".into()),
            accel: "tcg".into(),
            qemu: "10.0.2".into(),
            boot_ms: 4300,
        }),
        case_started("stock/2x2/correctness/tree"),
        at(Event::StepStarted { case: "stock/2x2/correctness/tree".into(), step: "ring".into() }),
        faults("stock/2x2/correctness/tree", "a"),
        at(Event::CaseCompared {
            case: "stock/2x2/correctness/tree".into(),
            attempt: 1,
            base: "old/2x2/correctness/tree".into(),
            base_verdict: Some("PASS".into()),
            comparable: true,
            known: Vec::new(),
            new: vec!["WARNING in a".into()],
            gone: Vec::new(),
            excused: false,
        }),
        finished("stock/2x2/correctness/tree", Verdict::Fail, Some(Owner::Kernel), "differs"),
        at(Event::SeriesPlanned {
            series: "v4".into(),
            onto: "v7.3".into(),
            chosen: "--onto".into(),
            patches: vec!["fuse: a".into()],
        }),
        at(Event::PatchBuilt {
            series: "v4".into(),
            number: 1,
            of: 1,
            title: "fuse: a".into(),
            kernel: "v4-1of1".into(),
            result: "built".into(),
            new_warnings: vec![],
            matrix: vec![],
            detail: vec![],
            duration_ms: 10,
        }),
        at(Event::SeriesCompared { series: "v5".into(), against: "v4".into() }),
        at(Event::Note { text: "accelerator: tcg".into() }),
        at(Event::RunResumed { finished: 1, left: 2 }),
        run_finished(0, 1, 0, 1),
    ]
}
