//! What fits no topic, and what catches every report that no rule knows better.

use super::super::rule::Kind::{Bug, Taint, Warning};
use super::super::rule::{Rule, Stage};

pub(super) const RULES: &[Rule] = &[
    Rule::head(
        "unchecked-msr",
        Warning,
        &["unchecked MSR access error: "],
        "unchecked MSR access error in {f}",
    ),
    Rule::head("machine-check", Bug, &["mce: [Hardware Error]: "], "machine check"),
    Rule::head(
        "duplicate-name",
        Warning,
        &["sysfs: cannot create duplicate filename"],
        "sysfs: cannot create duplicate filename in {f}",
    ),
    Rule::head("irq-nobody", Warning, &["irq "], "irq nobody cared").with(": nobody cared"),
    Rule::head("taint", Taint, &[], "kernel taint: {rest}").with("taints kernel"),
    Rule::head("taint-module", Taint, &[], "kernel taint: {rest}").with("tainting kernel"),
    Rule::head("bug", Bug, &["BUG: "], "BUG: {what} in {f}"),
    Rule::head("warning", Warning, &["WARNING: "], "WARNING in {f}").at(Stage::Plain),
    Rule::head("cut-here", Warning, &["------------[ cut here ]"], "report without a head in {f}")
        .at(Stage::Cut),
];
