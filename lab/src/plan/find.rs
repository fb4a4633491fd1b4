//! One case by its id.

use super::case::Case;
use super::error::PlanError;
use super::flavour::canonical;
use super::select::{MAX_REPEAT, Plan, Selection, plan};
use crate::config::load::Project;
use crate::config::scenario::Profile;

/// The case with this id, whatever its profile, in a plan of its own. `kernel` is what stands
/// behind the first part of the id where that is not an entry of the project (a path).
///
/// # Errors
///
/// An id that is not `KERNEL/TOPOLOGY/SCENARIO`, perhaps with `#N`, or whose parts are unknown.
pub fn find_case(
    project: &Project,
    id: &str,
    kernel: Option<&str>,
    run_seed: u64,
) -> Result<Plan, PlanError> {
    let selection = selection(id, kernel, run_seed).ok_or_else(|| unknown(id))?;
    let (name, rest) = id.split_once('/').ok_or_else(|| unknown(id))?;
    let own = format!("{}/{rest}", canonical(name));
    let mut plan = plan(project, &selection)?;
    let case: Option<Case> = plan.cases.into_iter().find(|case| case.id == own);
    plan.cases = vec![case.ok_or_else(|| unknown(id))?];
    Ok(plan)
}

fn selection(id: &str, kernel: Option<&str>, seed: u64) -> Option<Selection> {
    let (base, repeat) = match id.split_once('#') {
        Some((base, number)) => (base, number.parse().ok()?),
        None => (id, 1),
    };
    let mut parts = base.splitn(3, '/');
    let (name, topology, scenario) = (parts.next()?, parts.next()?, parts.next()?);
    (1..=MAX_REPEAT).contains(&repeat).then(|| Selection {
        base: None,
        kernels: vec![kernel.unwrap_or(name).into()],
        topologies: vec![topology.into()],
        scenarios: vec![scenario.into()],
        profile: Profile::Soak,
        repeat,
        seed,
        shard: None,
    })
}

fn unknown(id: &str) -> PlanError {
    let text = format!(
        "no case is named `{}`; a case is KERNEL/TOPOLOGY/SCENARIO, see `lab list`",
        id.escape_debug()
    );
    PlanError { problems: vec![text] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::load;
    use crate::config::shipped;
    use crate::plan::case_seed;

    #[test]
    fn a_case_is_found_with_its_repeat_and_seed() {
        let project = load(&shipped::files()).unwrap();
        let found = find_case(&project, "stock/smt/perf/randread#3", None, 5).unwrap();
        assert_eq!(found.cases.len(), 1);
        assert_eq!(found.cases[0].seed, case_seed(5, "smt/perf/randread#3"));
        let path = find_case(&project, "linux/smt/perf/randread", Some("/src/linux"), 5).unwrap();
        assert!(path.kernels.contains_key("linux"));
        let flavours = find_case(&project, "v7.3+kasan+debug/smt/perf/randread", None, 5).unwrap();
        assert_eq!(flavours.cases[0].id, "v7.3+debug+kasan/smt/perf/randread");
        for bad in [
            "stock",
            "stock/smt",
            "stock/smt/perf/randread#0",
            "stock/smt/perf/randread#x",
            "stock/*/perf/randread",
            "stock/smt/perf/randread#1",
            "other/smt/perf/randread",
            "",
        ] {
            assert!(find_case(&project, bad, None, 5).is_err(), "{bad}");
        }
    }
}
