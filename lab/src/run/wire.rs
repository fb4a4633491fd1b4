//! Records as lines of text and back. No files here: bytes in, records out.

use serde::{Deserialize, Serialize};

use super::events::{Event, Record};
use crate::report::escape;

/// Longest line of `events.jsonl`, bytes without its newline.
pub const MAX_LINE: usize = 4 << 20;

/// Most damaged lines that are described.
const MAX_DAMAGED: usize = 100;

/// Why a line is not a record, or a record not a line.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// Over [`MAX_LINE`].
    #[error("event of {0} bytes, the bound is {MAX_LINE}")]
    TooLong(usize),
    /// Not the JSON of a known event.
    #[error("not an event: {0}")]
    Json(#[from] serde_json::Error),
}

#[derive(Serialize, Deserialize)]
struct Stamp {
    time: String,
}

impl Record {
    /// The record as one flat JSON object, `time` first and `event` after it, without newline.
    pub fn to_line(&self) -> Result<String, WireError> {
        let stamp = serde_json::to_string(&Stamp { time: self.time.clone() })?;
        let event = serde_json::to_string(&self.event)?;
        // Both are objects with at least one member: join them into one.
        let line = format!("{},{}", &stamp[..stamp.len() - 1], &event[1..]);
        let line = escape::json(&line);
        if line.len() > MAX_LINE { Err(WireError::TooLong(line.len())) } else { Ok(line) }
    }

    /// Reads one line. Fields that are not known are passed over; those that are must be right.
    pub fn from_line(line: &[u8]) -> Result<Record, WireError> {
        if line.len() > MAX_LINE {
            return Err(WireError::TooLong(line.len()));
        }
        let stamp: Stamp = serde_json::from_slice(line)?;
        let event: Event = serde_json::from_slice(line)?;
        Ok(Record { time: stamp.time, event })
    }
}

/// What of a log could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Torn {
    /// The last line has no end, or is damaged: the writer was killed while it wrote it.
    pub cut_off: bool,
    /// Damaged lines before the last, the first hundred.
    pub damaged: Vec<Damage>,
}

/// One damaged line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Line number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// Reads a whole log. A torn last line is expected of a run that was killed; a damaged line
/// before it is not, and is told apart from it. Neither hides the records around it.
pub fn read(log: &[u8]) -> (Vec<Record>, Option<Torn>) {
    let body = log.strip_suffix(b"\n").unwrap_or(log);
    let lines: Vec<&[u8]> = body.split(|b| *b == b'\n').collect();
    let mut records = Vec::new();
    let mut torn = Torn::default();
    for (index, line) in lines.iter().enumerate() {
        match Record::from_line(line) {
            Ok(record) => records.push(record),
            Err(_) if line.is_empty() => {}
            Err(_) if index + 1 == lines.len() => torn.cut_off = true,
            Err(e) if torn.damaged.len() < MAX_DAMAGED => {
                torn.damaged.push(Damage { line: index + 1, reason: e.to_string() });
            }
            Err(_) => {}
        }
    }
    let torn = (torn != Torn::default()).then_some(torn);
    (records, torn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::verdict::{Owner, Verdict};
    use crate::run::samples;

    #[test]
    fn a_line_is_one_flat_object_with_its_kind_after_the_time() {
        let record = samples::finished("k/t/s", Verdict::Fail, Some(Owner::Server), "no reply");
        let line = record.to_line().unwrap();
        let head = format!(r#"{{"time":"{}","event":"case_finished","case":"k/t/s","#, record.time);
        assert!(line.starts_with(&head), "{line}");
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert!(value.as_object().unwrap().values().all(|v| !v.is_object()));
        assert_eq!(value["verdict"], "FAIL");
    }

    #[test]
    fn every_event_survives_the_wire() {
        for record in samples::one_of_each() {
            let line = record.to_line().unwrap();
            assert!(!line.contains('\n'));
            assert_eq!(Record::from_line(line.as_bytes()).unwrap(), record);
        }
    }

    #[test]
    fn unknown_fields_pass_and_missing_ones_do_not() {
        let line = br#"{"time":"t","event":"note","text":"x","later":{"a":[1]}}"#;
        assert_eq!(Record::from_line(line).unwrap().event, Event::Note { text: "x".into() });
        for bad in [
            r#"{"event":"note","text":"x"}"#,
            r#"{"time":"t","event":"note"}"#,
            r#"{"time":"t","event":"nothing_known"}"#,
            r#"{"time":"t","event":"note","text":7}"#,
            "[]",
        ] {
            assert!(Record::from_line(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_torn_end_is_no_damage_and_damage_is_no_torn_end() {
        let records = samples::one_of_each();
        let mut log = Vec::new();
        for record in &records {
            log.extend(record.to_line().unwrap().bytes());
            log.push(b'\n');
        }
        assert_eq!(read(&log), (records.clone(), None));
        for cut in 2..40 {
            let (got, torn) = read(&log[..log.len() - cut]);
            assert_eq!(got.len(), records.len() - 1);
            assert_eq!(torn, Some(Torn { cut_off: true, damaged: vec![] }));
        }
        let starts = log.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1);
        let starts: Vec<usize> = std::iter::once(0).chain(starts).collect();
        for line in [1, 2, records.len() - 1] {
            let mut damaged = log.clone();
            damaged[starts[line - 1] + 3] = 0xff;
            let (got, torn) = read(&damaged);
            assert_eq!(got.len(), records.len() - 1);
            let torn = torn.unwrap();
            assert!(!torn.cut_off);
            assert_eq!(torn.damaged[0].line, line);
        }
    }

    #[test]
    fn lines_are_bounded() {
        let record = samples::at(Event::Note { text: "x".repeat(MAX_LINE) });
        assert!(matches!(record.to_line(), Err(WireError::TooLong(_))));
        let long = vec![b' '; MAX_LINE + 1];
        assert!(matches!(Record::from_line(&long), Err(WireError::TooLong(_))));
    }
}
