//! A run that is over, told again.

use super::reporter::Reporter;
use crate::run::events::{Event, Record};
use crate::run::wire::Torn;

/// Feeds a whole record to a reporter. An end after which the run was resumed is none. What of the log could not be read becomes a note; a run
/// that was cut off needs none, as its unfinished cases tell of it.
pub fn replay(records: &[Record], torn: Option<&Torn>, reporter: &mut dyn Reporter) {
    let last = records.len().saturating_sub(1);
    for (index, record) in records.iter().enumerate() {
        if index == last || !matches!(record.event, Event::RunFinished { .. }) {
            reporter.on(record);
        }
    }
    let time = records.last().map(|r| r.time.clone()).unwrap_or_default();
    for damage in torn.iter().flat_map(|t| &t.damaged) {
        let text = format!("line {} of the record is damaged: {}", damage.line, damage.reason);
        reporter.on(&Record { time: time.clone(), event: Event::Note { text } });
    }
    reporter.finish();
}
