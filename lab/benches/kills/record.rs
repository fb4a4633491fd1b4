//! What the record of a run says.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// One record, read as it is at this moment.
#[derive(Default)]
pub(crate) struct Record {
    /// Name of the run.
    pub(crate) name: String,
    events: Vec<Value>,
}

impl Record {
    /// The newest record below `runs` other than those in `known`.
    pub(crate) fn newest(runs: &Path, known: &[String]) -> Option<Record> {
        let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let entries = fs::read_dir(runs).ok()?.flatten().map(|entry| entry.path());
        let mut dirs: Vec<PathBuf> =
            entries.filter(|path| !path.is_symlink() && !known.contains(&name(path))).collect();
        dirs.sort();
        Some(Record::read(&dirs.pop()?))
    }

    /// The record in this directory.
    pub(crate) fn read(dir: &Path) -> Record {
        let text = fs::read_to_string(dir.join("events.jsonl")).unwrap_or_default();
        let name = dir.file_name().unwrap().to_str().unwrap().to_owned();
        Record { name, events: text.lines().filter_map(|l| serde_json::from_str(l).ok()).collect() }
    }

    /// Lines so far.
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    fn kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.events.iter().filter(move |event| event["event"] == kind)
    }

    /// Whether the whole plan is in it.
    pub(crate) fn planned(&self) -> Option<usize> {
        let planned = self.kind("run_started").next()?["planned"].as_u64()?;
        (self.kind("case_planned").count() as u64 == planned).then_some(planned as usize)
    }

    /// The cases that finished, each with the line that says so.
    pub(crate) fn finished(&self) -> BTreeMap<String, Vec<&Value>> {
        let mut finished: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
        for event in self.kind("case_finished") {
            let case = event["case"].as_str().unwrap().to_owned();
            finished.entry(case).or_default().push(event);
        }
        finished
    }

    /// Cases of `before` that are not in this record as they were, or were started again.
    pub(crate) fn lost(&self, before: &Record) -> usize {
        let now = self.finished();
        let lost = |(case, lines): (String, Vec<&Value>)| {
            let kept = now.get(&case).is_some_and(|now| now.first() == lines.first());
            let starts = |record: &Record| {
                record.kind("case_started").filter(|event| event["case"] == *case).count()
            };
            usize::from(!kept || starts(self) != starts(before))
        };
        before.finished().into_iter().map(lost).sum()
    }

    /// Cases that finished more than once.
    pub(crate) fn twice(&self) -> usize {
        self.finished().values().filter(|lines| lines.len() > 1).count()
    }

    /// Finished cases that neither passed nor are INFRA and the host's.
    pub(crate) fn wrong(&self) -> usize {
        let wrong = |event: &&Value| {
            let (verdict, owner) = (&event["verdict"], &event["owner"]);
            !(verdict == "PASS" || verdict == "INFRA" && owner == "host")
        };
        self.kind("case_finished").filter(wrong).count()
    }

    /// Finished cases that passed.
    pub(crate) fn passed(&self) -> usize {
        self.kind("case_finished").filter(|event| event["verdict"] == "PASS").count()
    }

    /// Counts of the last line: passed, failed, skipped, exit code.
    pub(crate) fn end(&self) -> Option<[u64; 4]> {
        let end = self.events.last().filter(|event| event["event"] == "run_finished")?;
        Some(["passed", "failed", "skipped", "exit_code"].map(|name| end[name].as_u64().unwrap()))
    }
}
