//! What the cases on the base came to, for those that are held against them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::events::{Event, Record};
use crate::judge::BaseCase;
use crate::judge::verdict::Verdict;

/// Cases on the base by topology, scenario and repeat. Filled by events, so that a run that was
/// cut off and goes on knows the same as one that was not.
#[derive(Debug, Default)]
pub(super) struct Bases {
    /// Name of the base kernel; none when nothing is compared.
    pub(super) name: Option<String>,
    cases: Mutex<BTreeMap<String, BaseCase>>,
}

impl Bases {
    /// Those of a run, as far as its record goes.
    pub(super) fn of(name: Option<String>, records: &[Record]) -> Bases {
        let bases = Bases { name, ..Bases::default() };
        records.iter().for_each(|record| bases.on(&record.event));
        bases
    }

    /// Takes an event; those of other kernels are passed over.
    pub(super) fn on(&self, event: &Event) {
        match event {
            Event::CaseFaults { case, faults, ending, .. } => self.change(case, |base| {
                base.faults.extend(faults.iter().cloned());
                base.endings.push(ending.clone());
            }),
            Event::CaseFinished { case, verdict, .. } => {
                self.change(case, |base| base.verdict = Some(verdict.clone()));
            }
            _ => {}
        }
    }

    fn change(&self, case: &str, change: impl FnOnce(&mut BaseCase)) {
        let Some(name) = &self.name else { return };
        let Some(place) = case.strip_prefix(name.as_str()).and_then(|c| c.strip_prefix('/')) else {
            return;
        };
        let mut cases = self.cases.lock().unwrap_or_else(PoisonError::into_inner);
        change(cases.entry(place.to_owned()).or_default());
    }

    /// The case on the base; none when nothing is compared.
    pub(super) fn get(&self, place: &str) -> Option<BaseCase> {
        self.name.as_ref()?;
        let cases = self.cases.lock().unwrap_or_else(PoisonError::into_inner);
        Some(cases.get(place).cloned().unwrap_or_default())
    }

    /// Why a skip is a failure: the case ran on the base.
    pub(super) fn lost(&self, place: &str, reason: &str) -> Option<(Verdict, String)> {
        let base = self.get(place)?;
        crate::judge::ran_on_base(&base)
            .then(|| (Verdict::Fail, format!("ran on the base, but is skipped here: {reason}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::samples;

    #[test]
    fn a_record_tells_what_the_run_knew() {
        let records = [
            samples::faults("old/t/a", "x"),
            samples::finished("old/t/a", Verdict::Kernel, None, ""),
            samples::finished("older/t/a", Verdict::Pass, None, ""),
            samples::faults("old/t/b", "x"),
        ];
        let bases = Bases::of(Some("old".into()), &records);
        let a = bases.get("t/a").unwrap();
        assert_eq!((a.verdict, a.faults.len()), (Some(Verdict::Kernel), 1));
        assert_eq!(bases.get("t/b").unwrap().verdict, None);
        assert!(bases.lost("t/a", "x").is_some() && bases.lost("t/b", "x").is_none());
        assert_eq!(Bases::of(None, &records).get("t/a"), None);
    }
}
