//! Lock order, contexts and preemption.

use super::super::rule::Kind::{Bug, Lockdep};
use super::super::rule::Rule;

pub(super) const RULES: &[Rule] = &[
    Rule::head(
        "sleeping",
        Bug,
        &["BUG: sleeping function called from invalid context"],
        "BUG: sleeping function called from invalid context in {f}",
    ),
    Rule::head(
        "scheduling-while-atomic",
        Bug,
        &["BUG: scheduling while atomic"],
        "BUG: scheduling while atomic in {f}",
    ),
    Rule::head(
        "workqueue-leak",
        Bug,
        &["BUG: workqueue leaked "],
        "BUG: workqueue leaked {what} in {f}",
    ),
    Rule::head(
        "smp-processor-id",
        Bug,
        &["BUG: using "],
        "BUG: using {what} in preemptible code in {f}",
    )
    .with("in preemptible"),
    Rule::head("spinlock", Bug, &["BUG: spinlock ", "BUG: rwlock "], "BUG: bad lock in {f}"),
    Rule::head(
        "deadlock",
        Lockdep,
        &[
            "WARNING: possible circular locking",
            "WARNING: possible recursive locking",
            "WARNING: possible irq lock inversion",
            "INFO: possible circular locking",
            "INFO: possible recursive locking",
        ],
        "possible deadlock in {f}",
    ),
    Rule::head("lock-order", Lockdep, &["WARNING: "], "possible deadlock in {f}")
        .with("-unsafe lock order detected"),
    Rule::head(
        "lock-state",
        Lockdep,
        &["WARNING: inconsistent lock state"],
        "inconsistent lock state in {f}",
    ),
    Rule::head(
        "suspicious-rcu",
        Lockdep,
        &["WARNING: suspicious RCU usage"],
        "suspicious RCU usage in {f}",
    ),
    Rule::head(
        "unlock-balance",
        Lockdep,
        &["WARNING: bad unlock balance"],
        "bad unlock balance in {f}",
    ),
    Rule::head("lock-held", Lockdep, &["WARNING: "], "{what} in {f}").with("lock held "),
    Rule::head("held-lock-freed", Lockdep, &["WARNING: held lock freed"], "held lock freed in {f}"),
    Rule::head(
        "wait-context",
        Lockdep,
        &["[ BUG: Invalid wait context ]"],
        "invalid wait context in {f}",
    ),
    Rule::head(
        "non-static-key",
        Lockdep,
        &["INFO: trying to register non-static key"],
        "non-static lock key in {f}",
    ),
    Rule::head(
        "lockdep-full",
        Lockdep,
        &["BUG: MAX_LOCK", "BUG: MAX_STACK"],
        "lockdep ran out of space",
    ),
];
