//! Memory of the host, and how much of it guests may have.

use std::io;

/// Of all memory, three of four parts are for guests.
const GUESTS: (u64, u64) = (3, 4);

/// Stays available to everything else, bytes.
const RESERVE: u64 = 512 << 20;

/// What the host has, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// MemTotal.
    pub total: u64,
    /// MemAvailable.
    pub available: u64,
}

impl Memory {
    /// What one more guest may have of a budget in bytes (three quarters of all, where none is
    /// given), beside guests that were promised `promised` bytes. They need not have touched
    /// them yet, so that what is available alone does not tell.
    pub fn left(&self, budget: Option<u64>, promised: u64) -> u64 {
        let budget = budget.unwrap_or(self.total / GUESTS.1 * GUESTS.0);
        let unpromised = budget.saturating_sub(promised);
        unpromised.min(self.available.saturating_sub(RESERVE))
    }

    fn parse(text: &str) -> Option<Memory> {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            let kib: u64 = line.trim_start_matches(':').split_whitespace().next()?.parse().ok()?;
            kib.checked_mul(1024)
        };
        Some(Memory { total: field("MemTotal")?, available: field("MemAvailable")? })
    }
}

/// The memory of this host now. Errors: /proc does not tell.
pub fn of_host() -> io::Result<Memory> {
    let text = std::fs::read_to_string("/proc/meminfo")?;
    Memory::parse(&text).ok_or_else(|| io::Error::other("/proc/meminfo does not tell of memory"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_count_though_they_are_not_touched() {
        let host = Memory { total: 8 << 30, available: 7 << 30 };
        assert_eq!(host.left(None, 0), 6 << 30);
        assert_eq!(host.left(None, 5 << 30), 1 << 30);
        assert_eq!(host.left(None, 100 << 30), 0);
        assert_eq!(host.left(Some(2 << 30), 1 << 30), 1 << 30);
        let busy = Memory { available: 1 << 30, ..host };
        assert_eq!(busy.left(None, 0), 512 << 20);
        assert_eq!(Memory { available: 0, ..host }.left(None, 0), 0);
    }

    #[test]
    fn meminfo_is_read() {
        let text = "MemTotal:       24576 kB\nMemFree:  1 kB\nMemAvailable:   1024 kB\n";
        let memory = Memory { total: 24 << 20, available: 1 << 20 };
        assert_eq!(Memory::parse(text), Some(memory));
        for odd in
            ["", "MemTotal: 1 kB", "MemTotal: x\nMemAvailable: 1", "MemTotal:\nMemAvailable:"]
        {
            assert_eq!(Memory::parse(odd), None, "{odd}");
        }
        let host = of_host().unwrap();
        assert!(host.available <= host.total && host.total > 1 << 20);
    }
}
