//! A scenario as it was run, for the record of a case.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::config::scenario::{Allow, Expectation, NamedStep, Rule, Scenario};
use crate::plan::{Case, Plan, describe_topology};

/// The scenario after every default was filled in, as pretty JSON with a newline.
///
/// Limits are those of the file in milliseconds; `slowdown` is the factor that was put on them.
pub fn scenario_json(scenario: &Scenario, seed: u64, slowdown: u32) -> String {
    let ms = |d: std::time::Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
    let value = json!({
        "scenario": scenario.name,
        "summary": scenario.summary,
        "seed": seed,
        "slowdown": slowdown,
        "kernel_args": scenario.kernel_args,
        "requires": {
            "config": scenario.requires.config,
            "min_cpus": scenario.requires.min_cpus,
            "min_nodes": scenario.requires.min_nodes,
        },
        "step_limit_ms": ms(scenario.step_limit),
        "case_limit_ms": ms(scenario.case_limit),
        "call_limit_ms": ms(scenario.call_limit),
        "silence_limit_ms": ms(scenario.silence_limit),
        "steps": scenario.steps.iter().map(step).collect::<Vec<_>>(),
        "allow": scenario.allow.iter().map(allow).collect::<Vec<_>>(),
        "expect": scenario.expect.iter().map(expectation).collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}

/// SHA-256 of all that decides what a case of a plan does on a given kernel, hexadecimal.
pub(super) fn digest(plan: &Plan, case: &Case) -> String {
    let kernel_args = plan.kernels.get(&case.kernel).map_or(&[][..], |kernel| &kernel.cmdline);
    let mut hasher = Sha256::new();
    hasher.update(scenario_json(&case.scenario, case.seed, 1));
    hasher.update(describe_topology(&case.topology));
    for arg in kernel_args {
        hasher.update([0]);
        hasher.update(arg);
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn step(named: &NamedStep) -> Value {
    json!({
        "name": named.name,
        "limit_ms": named.limit.map(|d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)),
        "step": named.step,
    })
}

fn allow(allow: &Allow) -> Value {
    json!({
        "title": allow.title,
        "reason": allow.reason,
        "link": allow.link,
        "until": allow.until.to_string(),
    })
}

fn expectation(expectation: &Expectation) -> Value {
    match expectation {
        Expectation::Snapshot { steps, per_topology, per_policy } => json!({
            "snapshot": steps, "per_topology": per_topology, "per_policy": per_policy,
        }),
        Expectation::Equal { steps } => json!({ "equal": steps }),
        Expectation::Rule { step, rule } => {
            let name = Rule::ALL.iter().find(|(_, r)| r == rule).map(|(name, _)| *name);
            json!({ "rule": name, "step": step })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::samples;

    #[test]
    fn what_was_run_is_told_whole() {
        let expect = vec![
            Expectation::Rule { step: "kill".into(), rule: Rule::WaitingZero },
            Expectation::Equal { steps: vec!["a".into()] },
        ];
        let scenario = samples::scenario(vec![("kill", samples::teardown_step())], expect);
        let value: Value = serde_json::from_str(&scenario_json(&scenario, u64::MAX, 4)).unwrap();
        assert_eq!(value["seed"], u64::MAX);
        assert_eq!(value["step_limit_ms"], 10_000);
        assert_eq!(value["steps"][0]["step"]["do"], "teardown");
        assert_eq!(value["steps"][0]["step"]["ending"], "kill-server");
        assert_eq!(value["expect"][0]["rule"], "waiting-zero");
        assert_eq!(value["expect"][1]["equal"][0], "a");
    }
}
