//! Observations that must be equal to each other.

use similar::TextDiff;

use super::evidence::Evidence;
use super::finding::Finding;
use super::render;
use super::verdict::{Owner, Verdict};

/// Lines of a difference that are kept.
const MAX_LINES: usize = 50;

/// Compares the first step with each other one.
pub(super) fn check(evidence: &Evidence<'_>, steps: &[String]) -> Vec<Finding> {
    let Some((first, others)) = steps.split_first() else { return Vec::new() };
    let text = |step: &str| render::step(evidence, step, false);
    let Some(want) = text(first) else { return Vec::new() };
    let differs = |step: &String| {
        let got = text(step)?;
        (got != want).then(|| {
            let (lines, count) = diff(first, &want, step, &got);
            let cause = format!("step `{step}` differs from step `{first}` in {count} lines");
            Finding::new(Verdict::Fail, Owner::Kernel, cause).because(lines)
        })
    };
    others.iter().filter_map(differs).collect()
}

/// A unified difference, bounded, and the number of lines that changed on either side.
pub(super) fn diff(old: &str, want: &str, new: &str, got: &str) -> (Vec<String>, usize) {
    let diff = TextDiff::from_lines(want, got);
    let changed = diff.iter_all_changes().filter(|c| c.tag() != similar::ChangeTag::Equal).count();
    let text = diff.unified_diff().context_radius(2).header(old, new).to_string();
    let mut lines: Vec<String> = text.lines().take(MAX_LINES).map(String::from).collect();
    if text.lines().nth(MAX_LINES).is_some() {
        lines.push("(more differs)".into());
    }
    (lines, changed)
}
