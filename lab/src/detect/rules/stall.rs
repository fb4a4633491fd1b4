//! CPUs, tasks and workers that make no progress.

use super::super::rule::Kind::{HardLockup, HungTask, RcuStall, SoftLockup, WorkqueueStall};
use super::super::rule::Rule;

pub(super) const RULES: &[Rule] = &[
    Rule::head(
        "soft-lockup",
        SoftLockup,
        &["watchdog: BUG: soft lockup", "BUG: soft lockup"],
        "BUG: soft lockup in {f}",
    ),
    Rule::head(
        "hard-lockup",
        HardLockup,
        &["watchdog: ", "NMI watchdog: "],
        "BUG: hard lockup in {f}",
    )
    .with("hard LOCKUP"),
    Rule::head(
        "rcu-stall",
        RcuStall,
        &["rcu: INFO: ", "INFO: rcu_"],
        "INFO: rcu detected stall in {f}",
    )
    .with("stall"),
    Rule::head("rcu-starved", RcuStall, &["rcu: rcu_"], "INFO: rcu kthread starved")
        .with(" kthread starved for "),
    Rule::head("hung-task", HungTask, &["INFO: task "], "INFO: task hung in {f}")
        .with("more than "),
    Rule::head(
        "workqueue-stall",
        WorkqueueStall,
        &["BUG: workqueue lockup"],
        "BUG: workqueue lockup",
    ),
];
