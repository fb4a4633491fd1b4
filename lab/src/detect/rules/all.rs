//! The order of the topics.

use super::super::rule::Rule;
use super::{locking, memory, oops, other, sanitizer, stall};

/// Every rule, the more special first: the first that fits a message decides.
pub fn rules() -> Vec<Rule> {
    [
        oops::RULES,
        sanitizer::RULES,
        memory::RULES,
        locking::RULES,
        stall::RULES,
        // Holds the rules for any BUG and any WARNING, so it is the last.
        other::RULES,
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_rule_looks_for_something() {
        let rules = rules();
        for (i, rule) in rules.iter().enumerate() {
            assert!(rules[..i].iter().all(|r| r.name != rule.name), "{}", rule.name);
            assert!(!rule.has.is_empty() || rule.starts.iter().all(|s| s.len() >= 4));
            assert!(!rule.has.is_empty() || !rule.starts.is_empty(), "{}", rule.name);
        }
    }

    #[test]
    fn no_wording_is_hidden_by_an_earlier_rule() {
        let rules = rules();
        for rule in &rules {
            let starts = if rule.starts.is_empty() { &["x"][..] } else { rule.starts };
            for start in starts {
                let message = format!("{start}y{} z", rule.has);
                let first = rules.iter().find(|r| r.rest(&message).is_some());
                assert_eq!(first.map(|r| r.name), Some(rule.name), "{message}");
            }
        }
    }
}
