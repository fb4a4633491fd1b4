//! The search itself. Steps are 0 to n; once bad, a step stays bad.

/// What is known of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The failure is not there.
    Good,
    /// The failure is there.
    Bad,
    /// It cannot be told.
    Skip,
}

/// What the search came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The first bad step.
    First(usize),
    /// One of these; what lies between cannot be told.
    OneOf(Vec<usize>),
}

/// A search between a good step and a bad one.
#[derive(Debug, Clone)]
pub struct Search {
    good: usize,
    bad: usize,
    states: Vec<Option<State>>,
}

impl Search {
    /// Between `good` and `bad`, which are known and in this order.
    pub fn new(good: usize, bad: usize) -> Option<Search> {
        let mut states = vec![None; bad + 1];
        (good < bad).then(|| {
            (states[good], states[bad]) = (Some(State::Good), Some(State::Bad));
            Search { good, bad, states }
        })
    }

    /// The step to test next: of those that can tell anything, the nearest to the middle.
    pub fn next(&self) -> Option<usize> {
        let middle = self.good + (self.bad - self.good) / 2;
        let open = (self.good + 1..self.bad).filter(|step| self.states[*step].is_none());
        open.min_by_key(|step| step.abs_diff(middle))
    }

    /// Takes what a test of a step said.
    pub fn tell(&mut self, step: usize, state: State) {
        if step <= self.good || step >= self.bad {
            return;
        }
        self.states[step] = Some(state);
        match state {
            State::Good => self.good = step,
            State::Bad => self.bad = step,
            State::Skip => {}
        }
    }

    /// How many tests are left, at most so many where none is skipped.
    pub fn left(&self) -> u32 {
        usize::BITS - (self.bad - self.good - 1).leading_zeros()
    }

    /// The last step that is known to be good.
    pub fn good(&self) -> usize {
        self.good
    }

    /// The answer, when no step is left to test.
    pub fn answer(&self) -> Option<Answer> {
        if self.next().is_some() {
            return None;
        }
        Some(match self.bad - self.good {
            1 => Answer::First(self.bad),
            _ => Answer::OneOf((self.good + 1..=self.bad).collect()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a search over steps 0 to n; `first` is the first bad one, bits of `skips` cannot be
    /// told. The answer and the number of tests.
    fn search(n: usize, first: usize, skips: u32) -> (Answer, u32) {
        let mut search = Search::new(0, n).unwrap();
        let mut tests = 0;
        while let Some(step) = search.next() {
            tests += 1;
            assert!(tests <= n as u32, "{n} {first} {skips:b}");
            search.tell(
                step,
                match skips.checked_shr(step as u32).unwrap_or(0) & 1 {
                    1 => State::Skip,
                    _ if step >= first => State::Bad,
                    _ => State::Good,
                },
            );
        }
        (search.answer().unwrap(), tests)
    }

    #[test]
    fn every_history_of_ten_steps_is_answered_right() {
        for n in 1..=10 {
            for first in 1..=n {
                for skips in 0..1_u32 << n {
                    let skips = skips & !1; // the good end can be told
                    let (answer, _) = search(n, first, skips);
                    let told = |step: usize| step == 0 || step == n || skips >> step & 1 == 0;
                    // The closest steps around the change that can be told.
                    let good = (0..first).rev().find(|step| told(*step)).unwrap();
                    let bad = (first..=n).find(|step| told(*step)).unwrap();
                    let wanted = match bad - good {
                        1 => Answer::First(bad),
                        _ => Answer::OneOf((good + 1..=bad).collect()),
                    };
                    assert_eq!(answer, wanted, "n {n} first {first} skips {skips:b}");
                }
            }
        }
    }

    #[test]
    fn without_skips_it_takes_the_logarithm() {
        for n in 1..=100_usize {
            let bound = usize::BITS - (n - 1).leading_zeros();
            for first in 1..=n {
                assert!(search(n, first, 0).1 <= bound, "n {n} first {first}");
            }
        }
        assert!(Search::new(3, 3).is_none());
    }
}
