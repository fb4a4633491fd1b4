//! Holds `lab/docs/events.md` to the types.

use std::collections::{BTreeMap, BTreeSet};

use super::{events, samples, wire};

const DOC: &str = include_str!("../../docs/events.md");

type Members = BTreeMap<String, BTreeSet<String>>;

/// Members by event, as the document lists them.
fn documented() -> Members {
    let mut members = Members::new();
    let mut event = None;
    for line in DOC.lines() {
        if let Some(name) = line.strip_prefix("### ") {
            members.entry(name.into()).or_default();
            event = Some(name);
        } else if let (Some(name), Some(row)) = (event, line.strip_prefix("| `")) {
            let member = row.split('`').next().unwrap();
            assert!(members.get_mut(name).unwrap().insert(member.into()), "{name}.{member} twice");
        }
    }
    members
}

/// Members by event, as the types write them.
fn written() -> Members {
    let mut members = Members::new();
    for record in samples::one_of_each() {
        let line = record.to_line().unwrap();
        let value: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&line).unwrap();
        let event = value["event"].as_str().unwrap().to_string();
        let keys = value.keys().filter(|k| *k != "time" && *k != "event").cloned();
        members.insert(event, keys.collect());
    }
    members
}

#[test]
fn the_document_lists_what_is_written() {
    assert_eq!(documented(), written());
}

#[test]
fn every_event_has_a_sample() {
    // The error of an unknown kind names all kinds that there are.
    let error = wire::WireError::from(
        serde_json::from_str::<events::Event>(r#"{"event":"?"}"#).unwrap_err(),
    );
    let text = error.to_string();
    let kinds = text.split_once("expected one of").unwrap().1;
    let kinds: BTreeSet<String> = kinds.split('`').skip(1).step_by(2).map(String::from).collect();
    assert_eq!(kinds, written().into_keys().collect());
}

#[test]
fn numbers_in_the_document_are_true() {
    assert!(DOC.contains(&format!("The schema described here is {}.", events::SCHEMA)));
    assert!(DOC.contains(&format!("at most {} MiB", wire::MAX_LINE >> 20)));
}
