//! The progress line on a terminal: how far, and which cases run in which step.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::escape::clip;
use super::fold::RunFold;

/// Running cases that are named.
const MAX_NAMED: usize = 4;

/// A bar on standard error. Without a terminal it is not drawn.
pub(super) struct Bar {
    bar: ProgressBar,
}

impl Bar {
    pub(super) fn new(target: ProgressDrawTarget) -> Bar {
        let bar = ProgressBar::with_draw_target(None, target);
        // The template is a constant; were it wrong, indicatif's own style stays.
        if let Ok(style) = ProgressStyle::with_template("{elapsed} {pos}/{len} {wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(250));
        Bar { bar }
    }

    pub(super) fn show(&self, fold: &RunFold) {
        self.bar.set_length(u64::from(fold.planned));
        self.bar.set_position(fold.finished() as u64);
        self.bar.set_message(message(fold));
    }

    /// Writes while the bar is out of the way.
    pub(super) fn suspend(&self, write: impl FnOnce()) {
        self.bar.suspend(write);
    }

    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// `stock/2x2/correctness/tree: ring, ... (+2)`.
fn message(fold: &RunFold) -> String {
    let name = |c: &super::fold::CaseState| match &c.step {
        Some(step) => format!("{}: {}", clip(&c.case, 60), clip(step, 24)),
        None => clip(&c.case, 60),
    };
    let mut named: Vec<String> = fold.unfinished().take(MAX_NAMED).map(name).collect();
    let more = fold.unfinished().count().saturating_sub(MAX_NAMED);
    if more > 0 {
        named.push(format!("(+{more})"));
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::samples;

    #[test]
    fn running_cases_are_named_with_their_step_and_bounded() {
        let mut fold = RunFold::default();
        for case in ["a", "b", "c", "d", "e", "f\x1b"] {
            fold.on(&samples::case_started(case));
        }
        let step = crate::run::events::Event::StepStarted { case: "a".into(), step: "ring".into() };
        fold.on(&samples::at(step));
        assert_eq!(message(&fold), "a: ring, b, c, d, (+2)");
        let bar = Bar::new(ProgressDrawTarget::hidden());
        bar.show(&fold);
        bar.clear();
    }
}
