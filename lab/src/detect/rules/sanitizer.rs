//! KASAN and its kin.

use super::super::rule::Kind::{Bug, Warning};
use super::super::rule::{Rule, Stage};

pub(super) const RULES: &[Rule] = &[
    Rule::head("kasan", Bug, &["BUG: KASAN: "], "KASAN: {what} {access} in {f}"),
    Rule::head("kcsan", Bug, &["BUG: KCSAN: "], "KCSAN: {what} in {pair}"),
    Rule::head("kfence", Bug, &["BUG: KFENCE: "], "KFENCE: {what} in {f}"),
    Rule::head("kmsan", Bug, &["BUG: KMSAN: "], "KMSAN: {what} in {f}"),
    Rule::head("ubsan", Warning, &["UBSAN: "], "UBSAN: {what} in {f}"),
    Rule::head("debug-objects", Warning, &["ODEBUG: "], "WARNING: ODEBUG bug in {f}")
        .at(Stage::Text),
];
