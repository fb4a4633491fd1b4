//! What a kernel in trouble prints. Data only: how it is looked for is `scan`.

/// What a fault is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The kernel gave up.
    Panic,
    /// A bad access or a failed assertion killed the task.
    Oops,
    /// A BUG message that the kernel survived, sanitizers included.
    Bug,
    /// WARN, lockdep and UBSAN.
    Warning,
    /// A task that slept too long.
    HungTask,
    /// A CPU that did not schedule.
    SoftLockup,
    /// A CPU that took no interrupts.
    HardLockup,
    /// A grace period that did not end.
    RcuStall,
    /// Memory that nothing points to.
    Leak,
}

/// One rule: a message that begins with one of `starts` and holds `has` is a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Unique name, also that of its sample log.
    pub name: &'static str,
    /// What it finds.
    pub kind: Kind,
    /// How the message begins, after the prefixes of printk.
    pub starts: &'static [&'static str],
    /// What it holds as well; empty for nothing.
    pub has: &'static str,
}

const fn rule(name: &'static str, kind: Kind, starts: &'static [&'static str]) -> Rule {
    Rule { name, kind, starts, has: "" }
}

/// Every rule, the more special first: the first that fits a line decides its kind.
pub const RULES: &[Rule] = &[
    rule("panic", Kind::Panic, &["Kernel panic - not syncing"]),
    rule("oops", Kind::Oops, &["BUG: kernel NULL pointer dereference"]),
    rule("page-fault", Kind::Oops, &["BUG: unable to handle"]),
    rule("general-protection", Kind::Oops, &["general protection fault"]),
    rule("oops-alone", Kind::Oops, &["Oops: "]),
    rule("kernel-bug", Kind::Oops, &["kernel BUG at "]),
    rule("kasan", Kind::Bug, &["BUG: KASAN: "]),
    rule("kcsan", Kind::Bug, &["BUG: KCSAN: "]),
    rule("ubsan", Kind::Warning, &["UBSAN: "]),
    rule("soft-lockup", Kind::SoftLockup, &["watchdog: BUG: soft lockup", "BUG: soft lockup"]),
    Rule {
        name: "hard-lockup",
        kind: Kind::HardLockup,
        starts: &["watchdog: ", "NMI watchdog: "],
        has: "hard LOCKUP",
    },
    Rule {
        name: "rcu-stall",
        kind: Kind::RcuStall,
        starts: &["rcu: INFO: ", "INFO: rcu_"],
        has: "stall",
    },
    Rule { name: "hung-task", kind: Kind::HungTask, starts: &["INFO: task "], has: " blocked " },
    rule("lockdep", Kind::Warning, &["INFO: trying to register non-static key"]),
    rule("bug", Kind::Bug, &["BUG: "]),
    rule("warning", Kind::Warning, &["WARNING: "]),
    Rule {
        name: "kmemleak",
        kind: Kind::Leak,
        starts: &["kmemleak: "],
        has: " new suspected memory leak",
    },
];
