//! What was asked for to cases, in a stable order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};

use super::case::{Case, case_seed, shard_of};
use super::error::PlanError;
use super::kernels;
use crate::config::kernel::KernelEntry;
use crate::config::load::Project;
use crate::config::nearest::suggestion;
use crate::config::scenario::{Profile, Scenario};
use crate::config::topology::Topology;

/// Most cases of a run.
pub const MAX_CASES: usize = 100_000;

/// Most repeats of a case.
pub const MAX_REPEAT: u32 = 10_000;

/// Topologies of the quick profile where none is asked for.
const QUICK_TOPOLOGIES: [&str; 2] = ["1x2", "2x2"];

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Names of `kernels/` or paths; none means `stock`.
    pub kernels: Vec<String>,
    /// Name or path of the kernel to compare with.
    pub base: Option<String>,
    /// Globs over topology names; none means `1x2` and `2x2` in the quick profile, else all.
    pub topologies: Vec<String>,
    /// Globs over scenario names; none means all of the profile. A name without wildcards is
    /// taken whatever its profile.
    pub scenarios: Vec<String>,
    /// Profile.
    pub profile: Profile,
    /// Times that each case runs, 1 to [`MAX_REPEAT`].
    pub repeat: u32,
    /// Seed of the run.
    pub seed: u64,
    /// Part of the cases to run.
    pub shard: Option<Shard>,
}

/// One of several equal parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Which, from 1.
    pub index: u32,
    /// Of how many.
    pub of: u32,
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let shard = text.split_once('/').and_then(|(index, of)| {
            let shard = Shard { index: index.parse().ok()?, of: of.parse().ok()? };
            (1..=shard.of).contains(&shard.index).then_some(shard)
        });
        shard.ok_or_else(|| "a shard is I/N with I from 1 to N, such as 2/3".into())
    }
}

/// What will run.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Kernels by the name in [`Case::kernel`].
    pub kernels: BTreeMap<String, Arc<KernelEntry>>,
    /// Name of the base kernel, which is one of them.
    pub base: Option<String>,
    /// Cases in the order in which they run.
    pub cases: Vec<Case>,
}

/// Makes the plan. Cases are ordered by kernel as given, topology name, image and kernel
/// arguments (cases that can share a template VM follow each other), scenario name, repeat.
/// Those of the base come first: what they said must be known when the others are judged.
///
/// # Errors
///
/// Names and globs that match nothing, all of them at once; a plan beyond [`MAX_CASES`].
pub fn plan(project: &Project, selection: &Selection) -> Result<Plan, PlanError> {
    let mut problems = Vec::new();
    let kernels = kernels::resolve(project, &selection.kernels, &mut problems);
    let base = kernels::base(project, selection, &kernels, &mut problems);
    let topologies = topologies(project, selection, &mut problems);
    let scenarios = scenarios(project, selection, &mut problems);
    if !(1..=MAX_REPEAT).contains(&selection.repeat) {
        problems.push(format!("repeat must be 1 to {MAX_REPEAT}, not {}", selection.repeat));
    }
    let count = [topologies.len(), scenarios.len(), selection.repeat as usize]
        .iter()
        .fold(kernels.len() + usize::from(base.is_some()), |product, n| product.saturating_mul(*n));
    if count > MAX_CASES {
        problems.push(format!("{count} cases are more than the bound of {MAX_CASES}"));
    }
    if !problems.is_empty() {
        return Err(PlanError { problems });
    }
    let mut cases = Vec::with_capacity(count);
    for kernel in &kernels {
        for topology in &topologies {
            for scenario in &scenarios {
                push_repeats(&mut cases, selection, kernel, topology, scenario);
            }
        }
    }
    let base_name = base.as_ref().map(|b| b.name.clone());
    if let Some(base) = &base {
        let mut on_base = Vec::new();
        // A shard has the base case of each of its cases, whatever shard its own name is in.
        let whole = Selection { shard: None, ..selection.clone() };
        for topology in &topologies {
            for scenario in &scenarios {
                push_repeats(&mut on_base, &whole, base, topology, scenario);
            }
        }
        let places: BTreeSet<&str> = cases.iter().map(Case::place).collect();
        on_base.retain(|case| places.contains(case.place()));
        on_base.iter_mut().for_each(|case| case.base = true);
        on_base.append(&mut cases);
        cases = on_base;
    }
    let kernels = kernels.into_iter().chain(base).map(|k| (k.name.clone(), k)).collect();
    Ok(Plan { kernels, base: base_name, cases })
}

fn push_repeats(
    cases: &mut Vec<Case>,
    selection: &Selection,
    kernel: &KernelEntry,
    topology: &Arc<Topology>,
    scenario: &Arc<Scenario>,
) {
    for repeat in 1..=selection.repeat {
        let mut place = format!("{}/{}", topology.name, scenario.name);
        if repeat > 1 {
            place.push_str(&format!("#{repeat}"));
        }
        if selection.shard.is_none_or(|shard| shard_of(&place, shard.of) + 1 == shard.index) {
            cases.push(Case {
                kernel: kernel.name.clone(),
                topology: Arc::clone(topology),
                scenario: Arc::clone(scenario),
                seed: case_seed(selection.seed, &place),
                id: format!("{}/{place}", kernel.name),
                base: false,
                lacking: lacking(kernel, scenario),
            });
        }
    }
}

fn lacking(kernel: &KernelEntry, scenario: &Scenario) -> Vec<String> {
    let wanted = scenario.requires.offers.iter();
    wanted.filter(|offer| !kernel.offers.contains(offer)).cloned().collect()
}

fn topologies(
    project: &Project,
    selection: &Selection,
    problems: &mut Vec<String>,
) -> Vec<Arc<Topology>> {
    let all = &project.topologies;
    if !selection.topologies.is_empty() {
        let names = all.keys().map(String::as_str).collect::<Vec<_>>();
        let chosen = matching("topology", &selection.topologies, &names, problems);
        return chosen.into_iter().filter_map(|name| all.get(name).cloned()).collect();
    }
    let quick = selection.profile == Profile::Quick
        && QUICK_TOPOLOGIES.iter().any(|name| all.contains_key(*name));
    all.values()
        .filter(|topology| !quick || QUICK_TOPOLOGIES.contains(&topology.name.as_str()))
        .cloned()
        .collect()
}

fn scenarios(
    project: &Project,
    selection: &Selection,
    problems: &mut Vec<String>,
) -> Vec<Arc<Scenario>> {
    let all = &project.scenarios;
    let in_profile = |scenario: &Scenario| scenario.profile <= selection.profile;
    let mut chosen: Vec<Arc<Scenario>> = if selection.scenarios.is_empty() {
        all.values().filter(|scenario| in_profile(scenario)).cloned().collect()
    } else {
        let names = all.keys().map(String::as_str).collect::<Vec<_>>();
        let found = matching("scenario", &selection.scenarios, &names, problems);
        let taken: Vec<_> = found
            .iter()
            .filter_map(|name| all.get(*name))
            .filter(|s| in_profile(s) || selection.scenarios.contains(&s.name))
            .cloned()
            .collect();
        if taken.is_empty() && !found.is_empty() {
            problems.push(format!(
                "the profile {} has none of {}; choose a larger profile or name one in full",
                selection.profile.name(),
                found.join(", ")
            ));
        }
        taken
    };
    chosen.sort_by(|a, b| {
        (a.image, &a.kernel_args, &a.name).cmp(&(b.image, &b.kernel_args, &b.name))
    });
    chosen
}

/// Names that any glob matches, in the order of `names`; a glob without a match is a problem.
fn matching<'a>(
    what: &str,
    globs: &[String],
    names: &[&'a str],
    problems: &mut Vec<String>,
) -> Vec<&'a str> {
    let mut matchers: Vec<GlobMatcher> = Vec::new();
    for glob in globs {
        match GlobBuilder::new(glob).build() {
            Err(e) => problems.push(format!("{what} glob `{glob}`: {}", e.kind())),
            Ok(built) => {
                let matcher = built.compile_matcher();
                if !names.iter().any(|name| matcher.is_match(name)) {
                    let hint = suggestion(glob, names.iter().copied());
                    problems.push(format!("no {what} matches `{glob}`; {hint}"));
                }
                matchers.push(matcher);
            }
        }
    }
    names.iter().copied().filter(|name| matchers.iter().any(|m| m.is_match(name))).collect()
}

#[cfg(test)]
#[path = "select_tests.rs"]
mod tests;
