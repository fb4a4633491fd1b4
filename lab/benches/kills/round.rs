//! One run, killed, and what became of it.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::place::Place;
use super::random::Random;
use super::record::Record;
use super::table::Table;

/// Longest time of one `lab`, killed or not: it may wait for the slots of others.
const LIMIT: Duration = Duration::from_secs(900);

/// Longest time until a killed `lab` must have left nothing.
const GONE_LIMIT: Duration = Duration::from_secs(5);

/// Most kills of one run.
const MAX_KILLS: usize = 4;

const TEST: [&str; 5] = ["test", "--topology", "1x2", "--jobs", "2"];

/// When a kill comes.
enum Moment {
    /// This long after the start.
    After(Duration),
    /// As soon as the record has so many lines.
    Lines(usize),
}

/// Runs twice without a kill; how long the second took. The first fetches and caches.
pub(crate) fn undisturbed(place: &Place) -> Duration {
    let once = || {
        let begin = Instant::now();
        let status = place.start(&TEST).wait().unwrap();
        assert!(status.success(), "{}", place.output());
        begin.elapsed()
    };
    once();
    once()
}

pub(crate) fn round(place: &Place, random: &mut Random, whole: Duration, table: &mut Table) {
    let _ = std::fs::remove_dir_all(place.runs());
    if random.chance(30) {
        vm_round(place, random, whole, table);
    } else {
        lab_round(place, random, whole, table);
    }
}

fn moment(random: &mut Random, whole: Duration) -> Moment {
    match random.below(4) {
        0 => Moment::After(random.time(Duration::from_millis(300))),
        1 => Moment::Lines(random.below(24) as usize),
        _ => Moment::After(random.time(whole)),
    }
}

/// Waits for the moment; whether the process still runs.
fn await_moment(place: &Place, child: &mut Child, moment: &Moment, known: usize) -> bool {
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        let now = match moment {
            Moment::After(time) => begin.elapsed() >= *time,
            Moment::Lines(lines) => {
                let record = Record::newest(&place.runs(), &[]);
                record.is_some_and(|record| record.len() >= known + lines)
            }
        };
        if now {
            return true;
        }
        assert!(begin.elapsed() < LIMIT, "too long: {}", place.output());
        std::thread::sleep(Duration::from_micros(500));
    }
    false
}

fn lab_round(place: &Place, random: &mut Random, whole: Duration, table: &mut Table) {
    let mut child = place.start(&TEST);
    let mut before = Record::default();
    for nth in 0..MAX_KILLS {
        let moment = moment(random, whole);
        let last = nth + 1 == MAX_KILLS || (nth > 0 && !random.chance(30));
        let killed = !last && await_moment(place, &mut child, &moment, before.len());
        if killed {
            child.kill().unwrap();
            *(if nth == 0 { &mut table.lab } else { &mut table.resumed }) += 1;
        }
        let status = bounded(place, &mut child);
        let (took, left) = place.gone(GONE_LIMIT);
        table.orphans += left;
        if killed {
            table.gone.push(took);
        }
        let Some(record) = Record::newest(&place.runs(), &[]) else {
            table.before_plan += 1;
            return;
        };
        table.lost += record.lost(&before);
        if !killed {
            return finished(place, &record, status, table);
        }
        table.kept += record.finished().len();
        readable(place, &record, table);
        if record.planned().is_none() {
            table.before_plan += 1;
            return;
        }
        table.after_all += u32::from(record.end().is_some());
        let name = record.name.clone();
        before = record;
        child = place.start(&["rerun", "--resume", &name]);
    }
}

/// A run that came to its end: everything finished once, and passed.
fn finished(place: &Place, record: &Record, status: ExitStatus, table: &mut Table) {
    let planned = record.planned().unwrap_or_default();
    let whole = record.end() == Some([planned as u64, 0, 0, 0]) && status.success();
    table.twice += record.twice();
    table.wrong += record.wrong() + planned.saturating_sub(record.passed());
    if !whole || record.finished().len() != planned {
        table.incomplete += 1;
        println!("incomplete, {status}: {}", place.output());
    }
}

/// `lab report` can show what is there.
fn readable(place: &Place, record: &Record, table: &mut Table) {
    let status = place.start(&["report", &record.name]).wait().unwrap();
    // A record without a whole plan may be refused, with words.
    let code = status.code();
    if !(code == Some(0) || record.planned().is_none() && code == Some(2)) {
        table.incomplete += 1;
        println!("not readable, {status}: {}", place.output());
    }
}

fn vm_round(place: &Place, random: &mut Random, whole: Duration, table: &mut Table) {
    let mut child = place.start(&TEST);
    if await_moment(place, &mut child, &Moment::After(random.time(whole)), 0)
        && let Some(vm) = some_vm(place, random, &mut child)
        && kill_process(vm, Signal::KILL).is_ok()
    {
        table.vm += 1;
    }
    let status = bounded(place, &mut child);
    table.orphans += place.gone(GONE_LIMIT).1;
    let Some(record) = Record::newest(&place.runs(), &[]) else {
        // It was the QEMU that is asked what it can do, before there is a record.
        table.before_plan += 1;
        table.wrong += usize::from(status.code() != Some(3));
        return;
    };
    let planned = record.planned().unwrap_or_default();
    let failed = planned - record.passed();
    table.hit += u32::from(failed > 0);
    table.twice += record.twice();
    table.wrong += record.wrong();
    let code = if failed > 0 { 3 } else { 0 };
    let end = [record.passed() as u64, failed as u64, 0, code];
    let right = record.end() == Some(end) && status.code() == i32::try_from(code).ok();
    if !right || record.finished().len() != planned {
        table.incomplete += 1;
        println!("incomplete, {status}: {}", place.output());
    }
}

/// A VM that runs, as soon as there is one.
fn some_vm(place: &Place, random: &mut Random, child: &mut Child) -> Option<Pid> {
    while child.try_wait().unwrap().is_none() {
        let vms = place.vms();
        if let Some(vm) = vms.get(random.below(vms.len() as u64) as usize) {
            return Pid::from_raw(*vm);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}

fn bounded(place: &Place, child: &mut Child) -> ExitStatus {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(begin.elapsed() < LIMIT, "too long: {}", place.output());
        std::thread::sleep(Duration::from_millis(2));
    }
}
