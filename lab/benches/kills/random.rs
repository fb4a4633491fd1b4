//! Numbers that are the same for the same seed.

use std::time::Duration;

/// A xorshift generator; 0 is moved off, since it would stay there.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// From 0 to `below` - 1.
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        let mut x = self.0.max(1);
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0 = x;
        (x >> 16) % below.max(1)
    }

    /// A time up to `most`.
    pub(crate) fn time(&mut self, most: Duration) -> Duration {
        let most = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.below(most))
    }

    /// Whether something of this chance, in percent, happens.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
