//! What a rule is. The rules are in `rules`, how they are looked for is in `scan`.

/// What a fault is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The kernel gave up.
    Panic,
    /// A bad access or a failed assertion killed the task.
    Oops,
    /// A BUG message that the kernel survived, sanitizers included.
    Bug,
    /// WARN, UBSAN and what else is reported in passing.
    Warning,
    /// A violation of locking rules.
    Lockdep,
    /// A task that slept too long.
    HungTask,
    /// A CPU that did not schedule.
    SoftLockup,
    /// A CPU that took no interrupts.
    HardLockup,
    /// A grace period that did not end.
    RcuStall,
    /// A workqueue that made no progress.
    WorkqueueStall,
    /// Memory that could not be had.
    OutOfMemory,
    /// Memory that nothing points to.
    Leak,
    /// Something other than a fault made the kernel untrustworthy.
    Taint,
}

impl Kind {
    /// Taint bits that a fault of this kind sets by itself.
    pub fn taint_bits(self) -> u64 {
        const BAD_PAGE: u64 = 1 << 5;
        const DIE: u64 = 1 << 7;
        const WARN: u64 = 1 << 9;
        const SOFT_LOCKUP: u64 = 1 << 14;
        match self {
            Kind::Oops | Kind::Panic => DIE | WARN,
            Kind::Bug => BAD_PAGE | WARN,
            Kind::Warning | Kind::Lockdep => WARN,
            Kind::SoftLockup => SOFT_LOCKUP,
            _ => 0,
        }
    }
}

/// Which part of a report a message is. One report may print several, each of a later stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The line that comes before any report.
    Cut,
    /// A text that says what is wrong, before a head that does not.
    Text,
    /// The head of a report that says only where.
    Plain,
    /// The head of a report.
    Head,
    /// A line after the head that counts only when the head was lost.
    Tail,
}

/// One rule: a message that begins with one of `starts`, or any when there are none, and holds
/// `has` is part of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Unique name.
    pub name: &'static str,
    /// What it finds.
    pub kind: Kind,
    /// How the message begins, after the prefixes of printk.
    pub starts: &'static [&'static str],
    /// What it holds as well; empty for nothing.
    pub has: &'static str,
    /// Which part of a report it is.
    pub stage: Stage,
    /// Title: `{f}` is the function, `{rest}` what follows the start, `{what}` the rest up to
    /// its first punctuation, `{access}` Read or Write, `{pair}` both functions of a race.
    pub title: &'static str,
}

impl Rule {
    /// A head; the other stages are made from it.
    pub(super) const fn head(
        name: &'static str,
        kind: Kind,
        starts: &'static [&'static str],
        title: &'static str,
    ) -> Rule {
        Rule { name, kind, starts, has: "", stage: Stage::Head, title }
    }

    /// The same rule for messages that also hold `has`.
    pub(super) const fn with(mut self, has: &'static str) -> Rule {
        self.has = has;
        self
    }

    /// The same rule for another part of a report.
    pub(super) const fn at(mut self, stage: Stage) -> Rule {
        self.stage = stage;
        self
    }

    /// What follows the start of the message when the rule fits it.
    pub(super) fn rest<'m>(&self, message: &'m str) -> Option<&'m str> {
        // The start first: it is what most messages lack, and is quickly seen.
        let rest = match self.starts {
            [] => message,
            starts => starts.iter().find_map(|start| message.strip_prefix(start))?,
        };
        message.contains(self.has).then_some(rest)
    }
}
