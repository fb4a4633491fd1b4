//! What is counted.

use std::fmt::Write;
use std::time::Duration;

#[derive(Default)]
pub(crate) struct Table {
    /// Kills of `lab` in a first run, and in a run that was resumed.
    pub(crate) lab: u32,
    pub(crate) resumed: u32,
    /// Kills of a VM.
    pub(crate) vm: u32,
    /// Kills before the record had its plan: nothing is left to resume.
    pub(crate) before_plan: u32,
    /// Kills of `lab` with all cases finished.
    pub(crate) after_all: u32,
    /// VMs whose kill made a case INFRA.
    pub(crate) hit: u32,
    /// Cases that had finished when a kill came.
    pub(crate) kept: usize,
    /// Processes left.
    pub(crate) orphans: usize,
    /// Finished cases that were lost or ran again.
    pub(crate) lost: usize,
    /// Cases that finished twice.
    pub(crate) twice: usize,
    /// Planned cases without an end, counts that are not those of the cases, records that
    /// cannot be reported.
    pub(crate) incomplete: usize,
    /// Cases with another verdict than a pass or the host's INFRA.
    pub(crate) wrong: usize,
    /// Temporary directories that were not swept.
    pub(crate) left_over: usize,
    /// From the kill of `lab` until nothing of it is left.
    pub(crate) gone: Vec<Duration>,
}

impl Table {
    pub(crate) fn kills(&self) -> u32 {
        self.lab + self.resumed + self.vm
    }

    pub(crate) fn clean(&self) -> bool {
        let bad = [self.orphans, self.lost, self.twice, self.incomplete, self.wrong];
        bad.iter().sum::<usize>() + self.left_over == 0
    }

    /// One line on the way.
    pub(crate) fn line(&self) -> String {
        format!(
            "{} kills: {} orphans, {} lost, {} twice, {} incomplete, {} wrong owners",
            self.kills(),
            self.orphans,
            self.lost,
            self.twice,
            self.incomplete,
            self.wrong
        )
    }

    /// The whole of it.
    pub(crate) fn markdown(&self, seed: u64, whole: Duration) -> String {
        let mut gone = self.gone.clone();
        gone.sort();
        let ms = |time: Option<&Duration>| time.map_or(0, Duration::as_millis);
        let rows = [
            ("kills", self.kills().to_string()),
            ("of `lab` in a first run", self.lab.to_string()),
            ("of `lab` in a resumed run", self.resumed.to_string()),
            ("of a QEMU", self.vm.to_string()),
            (
                "kills before the record had its plan (nothing to resume)",
                self.before_plan.to_string(),
            ),
            ("kills of `lab` after the last case", self.after_all.to_string()),
            ("kills of a QEMU that made a case INFRA", self.hit.to_string()),
            ("cases that had finished when a kill came", self.kept.to_string()),
            ("processes left", self.orphans.to_string()),
            ("finished cases lost or run again", self.lost.to_string()),
            ("cases counted twice", self.twice.to_string()),
            ("records incomplete or not readable", self.incomplete.to_string()),
            ("wrong verdicts or owners", self.wrong.to_string()),
            ("temporary directories not swept", self.left_over.to_string()),
            ("until nothing of a killed `lab` is left, median ms", {
                ms(gone.get(gone.len() / 2)).to_string()
            }),
            ("the same, longest ms", ms(gone.last()).to_string()),
        ];
        let mut text = format!(
            "Seed {seed}; an undisturbed run of 4 cases took {} ms.\n\n| what | count |\n| --- | ---: |\n",
            whole.as_millis()
        );
        for (what, count) in rows {
            let _ = writeln!(text, "| {what} | {count} |");
        }
        text
    }
}
