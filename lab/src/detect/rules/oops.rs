//! Panics, bad accesses and failed assertions.

use super::super::rule::Kind::{Oops, Panic};
use super::super::rule::{Rule, Stage};

pub(super) const RULES: &[Rule] = &[
    Rule::head(
        "panic-stack-protector",
        Panic,
        &["Kernel panic - not syncing: stack-protector: "],
        "kernel panic: stack is corrupted in {f}",
    ),
    Rule::head(
        "panic-stack-end",
        Panic,
        &["Kernel panic - not syncing: corrupted stack end"],
        "kernel panic: corrupted stack end in {f}",
    ),
    Rule::head(
        "panic",
        Panic,
        &["Kernel panic - not syncing: ", "Kernel panic - not syncing"],
        "kernel panic: {rest}",
    ),
    Rule::head(
        "null-dereference",
        Oops,
        &[
            "BUG: kernel NULL pointer dereference",
            "BUG: unable to handle kernel NULL pointer dereference",
            "Unable to handle kernel NULL pointer dereference",
        ],
        "BUG: unable to handle kernel NULL pointer dereference in {f}",
    ),
    Rule::head(
        "page-fault",
        Oops,
        &["BUG: unable to handle ", "Unable to handle kernel "],
        "BUG: unable to handle kernel paging request in {f}",
    ),
    Rule::head("stack-guard", Oops, &["BUG: "], "BUG: stack guard page was hit in {f}")
        .with("stack guard page was hit"),
    Rule::head(
        "double-fault",
        Oops,
        &["PANIC: double fault", "traps: PANIC: double fault"],
        "double fault in {f}",
    ),
    Rule::head(
        "general-protection",
        Oops,
        &["general protection fault", "Oops: general protection fault"],
        "general protection fault in {f}",
    ),
    Rule::head(
        "divide-error",
        Oops,
        &["divide error: ", "Oops: divide error: "],
        "divide error in {f}",
    ),
    Rule::head("kernel-bug", Oops, &["kernel BUG at "], "kernel BUG in {f}").at(Stage::Plain),
    Rule::head(
        "invalid-opcode",
        Oops,
        &["Oops: invalid opcode: ", "invalid opcode: "],
        "invalid opcode in {f}",
    )
    .at(Stage::Tail),
    Rule::head("oops-alone", Oops, &["Oops: ", "Internal error: Oops"], "Oops in {f}")
        .at(Stage::Tail),
];
