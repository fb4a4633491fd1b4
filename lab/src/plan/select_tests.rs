//! Selections: order, globs, repeats, shards, bounds.

use std::collections::BTreeSet;

use super::*;
use crate::config::load::load;
use crate::config::problem::SourceFile;
use crate::config::shipped;

fn project() -> Project {
    load(&shipped::files()).unwrap()
}

fn selection() -> Selection {
    Selection {
        base: None,
        kernels: Vec::new(),
        topologies: Vec::new(),
        scenarios: Vec::new(),
        profile: Profile::Quick,
        repeat: 1,
        seed: 7,
        shard: None,
    }
}

fn ids(selection: &Selection) -> Vec<String> {
    plan(&project(), selection).unwrap().cases.into_iter().map(|case| case.id).collect()
}

fn problems(selection: &Selection) -> String {
    plan(&project(), selection).unwrap_err().to_string()
}

#[test]
fn the_quick_plan_is_stable() {
    insta::assert_snapshot!(ids(&selection()).join("\n"), @r"
stock/1x2/correctness/tree
stock/1x2/placement/background
stock/1x2/placement/each-cpu
stock/1x2/teardown/abort
stock/1x2/teardown/forced-umount
stock/1x2/teardown/server-killed
stock/1x2/perf/randread
stock/2x2/correctness/tree
stock/2x2/placement/background
stock/2x2/placement/each-cpu
stock/2x2/teardown/abort
stock/2x2/teardown/forced-umount
stock/2x2/teardown/server-killed
stock/2x2/perf/randread
");
}

#[test]
fn other_profiles_take_every_topology() {
    let all = ids(&Selection { profile: Profile::Ci, ..selection() });
    let topologies: BTreeSet<&str> = all.iter().filter_map(|id| id.split('/').nth(1)).collect();
    assert_eq!(topologies.len(), 9);
}

#[test]
fn the_same_seed_gives_the_same_sequence() {
    let seeds = |seed| -> Vec<u64> {
        let chosen = Selection { seed, repeat: 3, ..selection() };
        plan(&project(), &chosen).unwrap().cases.iter().map(|case| case.seed).collect()
    };
    assert_eq!(seeds(7), seeds(7));
    let distinct: BTreeSet<u64> = seeds(7).into_iter().chain(seeds(8)).collect();
    assert_eq!(distinct.len(), 2 * seeds(7).len());
    // Held forever: a seed in an old record must mean the same case today.
    assert_eq!(case_seed(7, "stock/2x2/correctness/tree"), 18437845680646947405);
}

#[test]
fn shards_are_a_partition() {
    let whole = Selection { profile: Profile::Full, repeat: 2, ..selection() };
    let mut joined: Vec<String> = Vec::new();
    for index in 1..=5 {
        let part = ids(&Selection { shard: Some(Shard { index, of: 5 }), ..whole.clone() });
        assert!(!part.is_empty(), "shard {index} is empty");
        joined.extend(part);
    }
    let mut expected = ids(&whole);
    joined.sort();
    expected.sort();
    assert_eq!(joined, expected);
}

#[test]
fn shards_are_parsed_strictly() {
    assert_eq!("2/3".parse(), Ok(Shard { index: 2, of: 3 }));
    for bad in ["0/3", "4/3", "1", "1/0", "a/b", "1/2/3", ""] {
        assert!(bad.parse::<Shard>().is_err(), "{bad}");
    }
}

#[test]
fn repeats_are_told_apart() {
    let chosen = Selection {
        repeat: 3,
        topologies: vec!["spare".into()],
        scenarios: vec!["*tree".into()],
        ..selection()
    };
    let base = "stock/spare/correctness/tree";
    assert_eq!(ids(&chosen), [base.to_string(), format!("{base}#2"), format!("{base}#3")]);
    assert_eq!(plan(&project(), &chosen).unwrap().cases[2].base_id(), base);
}

#[test]
fn everything_that_matches_nothing_is_named_at_once() {
    let chosen = Selection {
        base: None,
        kernels: vec!["stok".into()],
        topologies: vec!["2x3".into(), "[".into()],
        scenarios: vec!["teardown/abrt".into(), "teardown/*".into()],
        repeat: 0,
        ..selection()
    };
    insta::assert_snapshot!(problems(&chosen), @r"
no kernel is named `stok`; did you mean `stock`? (a path has a `/`)
no topology matches `2x3`; did you mean `2x4`?
topology glob `[`: unclosed character class; missing ']'
no scenario matches `teardown/abrt`; did you mean `teardown/abort`?
repeat must be 1 to 10000, not 0
");
}

#[test]
fn a_full_name_lifts_the_profile_and_a_pattern_does_not() {
    let text = "summary = 's'\nprofile = 'soak'\n[[step]]\ndo = 'tmpfs'\nmount-point = '/mnt/a'\n";
    let files = ["scenarios/perf/long.toml", "scenarios/perf/longer.toml"]
        .map(|path| SourceFile { path: path.into(), text: text.into() });
    let mut project = project();
    project.scenarios = load(&files).unwrap().scenarios;
    let with = |glob: &str| Selection { scenarios: vec![glob.into()], ..selection() };
    let cases = plan(&project, &with("perf/long")).unwrap().cases;
    assert_eq!(cases.len(), 2);
    let problem = plan(&project, &with("perf/*")).unwrap_err().to_string();
    assert!(problem.contains("the profile quick has none of perf/long, perf/longer"), "{problem}");
}

#[test]
fn a_plan_has_a_bound() {
    let chosen = Selection { profile: Profile::Soak, repeat: MAX_REPEAT, ..selection() };
    assert!(problems(&chosen).contains(" cases are more than the bound of 100000"));
}

#[test]
fn what_is_missing_is_the_reason_of_a_skip() {
    use crate::plan::skip_reason;
    let chosen = Selection { scenarios: vec!["*/tree".into()], ..selection() };
    let mut case = plan(&project(), &chosen).unwrap().cases.remove(0);
    assert_eq!(skip_reason(&case, None), None);
    assert_eq!(skip_reason(&case, Some(&|_| true)), None);
    let reason = skip_reason(&case, Some(&|option| option != "FUSE_IO_URING" && option != "TMPFS"));
    assert_eq!(reason.as_deref(), Some("the kernel lacks CONFIG_FUSE_IO_URING, CONFIG_TMPFS"));
    let mut scenario = (*case.scenario).clone();
    scenario.requires.min_cpus = 3;
    case.scenario = scenario.clone().into();
    assert_eq!(skip_reason(&case, None).as_deref(), Some("needs 3 CPUs, the topology has 2"));
    scenario.requires.min_cpus = 2;
    scenario.requires.min_nodes = 2;
    case.scenario = scenario.into();
    assert_eq!(skip_reason(&case, None).as_deref(), Some("needs 2 NUMA nodes, the topology has 1"));
}
