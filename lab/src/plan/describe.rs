//! A case as text, with every default filled in: what `lab show` prints and a run records.

use std::fmt::Write;
use std::time::Duration;

use super::case::Case;
use crate::config::scenario::{Expectation, Kind, Rule, Scenario};
use crate::config::topology::Topology;

/// The resolved case. Limits are those before the slowdown factor of the accelerator.
pub fn describe(case: &Case) -> String {
    let scenario = &*case.scenario;
    let mut text = String::new();
    line(&mut text, "case", &case.id);
    line(&mut text, "seed", &case.seed.to_string());
    line(&mut text, "kernel", &case.kernel);
    text.push_str(&describe_topology(&case.topology));
    describe_scenario(&mut text, scenario);
    for step in &scenario.steps {
        let limit = span(step.limit.unwrap_or(scenario.step_limit));
        // A step is made of strings and numbers, which JSON can always hold.
        let json = serde_json::to_string(&step.step).unwrap_or_default();
        line(&mut text, "step", &format!("{} (limit {limit}) {json}", step.name));
    }
    for expectation in &scenario.expect {
        line(&mut text, "expect", &describe_expectation(expectation));
    }
    text
}

/// A topology.
pub fn describe_topology(topology: &Topology) -> String {
    let Topology { sockets, cores, threads, cpus, max_cpus, .. } = topology;
    let mut text = String::new();
    line(&mut text, "topology", &format!("{}: {}", topology.name, topology.summary));
    line(
        &mut text,
        "cpus",
        &format!(
            "{cpus} present, {max_cpus} possible: {sockets} sockets x {cores} cores x {threads} \
             threads"
        ),
    );
    for (number, node) in topology.nodes.iter().enumerate() {
        let cpus: Vec<String> = node.cpus.iter().map(u32::to_string).collect();
        let cpus = if cpus.is_empty() { "none".into() } else { cpus.join(",") };
        let memory = node.memory_bytes >> 20;
        let mut value = format!("{number}: CPUs {cpus}; {memory} MiB");
        if let Some(row) = topology.distances.as_ref().and_then(|rows| rows.get(number)) {
            let row: Vec<String> = row.iter().map(u8::to_string).collect();
            value.push_str(&format!("; distances {}", row.join(" ")));
        }
        line(&mut text, "node", &value);
    }
    text
}

fn describe_scenario(text: &mut String, scenario: &Scenario) {
    line(text, "scenario", &format!("{}: {}", scenario.name, scenario.summary));
    line(text, "kind", name_in(&Kind::ALL, scenario.kind));
    line(text, "profile", scenario.profile.name());
    line(text, "image", scenario.image.name());
    line(
        text,
        "limits",
        &format!(
            "call {}, step {}, case {}, silence {}",
            span(scenario.call_limit),
            span(scenario.step_limit),
            span(scenario.case_limit),
            span(scenario.silence_limit)
        ),
    );
    if !scenario.kernel_args.is_empty() {
        line(text, "kernel-args", &scenario.kernel_args.join(" "));
    }
    let requires = &scenario.requires;
    if !requires.config.is_empty() {
        line(text, "requires", &requires.config.join(" "));
    }
    if requires.min_cpus > 0 || requires.min_nodes > 0 {
        let least = format!("{} CPUs, {} nodes", requires.min_cpus, requires.min_nodes);
        line(text, "at least", &least);
    }
}

fn describe_expectation(expectation: &Expectation) -> String {
    match expectation {
        Expectation::Snapshot { steps, per_topology, per_policy } => {
            let mut text = format!("snapshot of {}", steps.join(", "));
            if *per_topology {
                text.push_str(", per topology");
            }
            if *per_policy {
                text.push_str(", per queue policy");
            }
            text
        }
        Expectation::Equal { steps } => format!("equal: {}", steps.join(", ")),
        Expectation::Rule { step, rule } => format!("{} of {step}", name_in(&Rule::ALL, *rule)),
    }
}

fn name_in<T: PartialEq>(names: &[(&'static str, T)], value: T) -> &'static str {
    names.iter().find(|(_, v)| *v == value).map_or("?", |(name, _)| name)
}

fn span(duration: Duration) -> String {
    humantime::format_duration(duration).to_string()
}

fn line(text: &mut String, key: &str, value: &str) {
    // Writing to a String does not fail.
    let _ = writeln!(text, "{key:<12}{value}");
}

#[cfg(test)]
#[path = "describe_tests.rs"]
mod tests;
