//! One check and what it found; judgements of figures, pure.

use std::fmt;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be.
    Ok,
    /// Works, but worse than it could.
    Warn,
    /// Tests will not run.
    Fail,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Level::Ok => "ok",
            Level::Warn => "warn",
            Level::Fail => "fail",
        })
    }
}

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What was looked at, e.g. `qemu`.
    pub name: String,
    /// How bad it is.
    pub level: Level,
    /// What was found, one line.
    pub found: String,
    /// Why the lab cares, one line.
    pub why: &'static str,
    /// The command that mends it; absent where all is well or no command would.
    pub fix: Option<String>,
}

impl Check {
    /// A check that found all well.
    pub fn ok(name: &str, found: impl Into<String>, why: &'static str) -> Check {
        Check { name: name.to_owned(), level: Level::Ok, found: found.into(), why, fix: None }
    }

    /// The same check with another result.
    pub fn with(self, level: Level, fix: Option<String>) -> Check {
        Check { level, fix, ..self }
    }
}

/// The level of an amount: below `need` tests fail, below `want` they suffer.
pub(super) fn level_of(amount: u64, need: u64, want: u64) -> Level {
    match amount {
        amount if amount < need => Level::Fail,
        amount if amount < want => Level::Warn,
        _ => Level::Ok,
    }
}

/// Available memory in the text of `/proc/meminfo`, bytes.
pub(super) fn available_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Major version in the first line of `qemu-system-x86_64 --version`.
pub(super) fn qemu_major(text: &str) -> Option<u32> {
    let version = text.lines().next()?.split("version ").nth(1)?;
    version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_two_bounds() {
        let levels: Vec<_> = [9, 10, 19, 20].map(|n| level_of(n, 10, 20)).into();
        assert_eq!(levels, [Level::Fail, Level::Warn, Level::Warn, Level::Ok]);
    }

    #[test]
    fn figures_are_read_from_what_programs_print() {
        let text = "MemTotal:  9 kB\nMemAvailable:   2048 kB\n";
        assert_eq!(available_bytes(text), Some(2 << 20));
        assert_eq!(available_bytes("MemAvailable: many kB\n"), None);
        assert_eq!(qemu_major("QEMU emulator version 10.0.2 (Debian 1:10)\nx"), Some(10));
        assert_eq!(qemu_major("no such thing"), None);
    }
}
