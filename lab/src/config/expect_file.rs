//! One `[[expect]]` of a scenario: exactly one of
//!
//! - `snapshot`: names of steps; with `per-topology` and `per-policy`
//! - `equal`: names of two or more steps
//! - `rule`: a rule, with the `step` that it is held against

use super::nearest::suggestion;
use super::reader::Table;
use super::scenario::{Expectation, NamedStep, Rule};
use super::value::{At, Name};

/// An expectation as it stands in the file, its step names with their places.
pub(super) struct Placed {
    expectation: Expectation,
    names: Vec<At<String>>,
}

/// Reads one expectation.
pub(super) fn read(table: &Table<'_>) -> Option<Placed> {
    let snapshot = step_names(table, "snapshot");
    let equal = step_names(table, "equal");
    let rule = table.choice("rule", &Rule::ALL);
    let given: Vec<&str> =
        ["snapshot", "equal", "rule"].into_iter().filter(|key| table.has(key)).collect();
    if given.len() != 1 {
        table.sink().add(
            table.span(),
            format!(
                "an expectation has one of `snapshot`, `equal` and `rule`, this one has {}",
                if given.is_empty() { "none".into() } else { given.join(" and ") }
            ),
        );
        return None;
    }
    let placed = match given[0] {
        "snapshot" => snapshot.map(|names| Placed {
            expectation: Expectation::Snapshot {
                steps: values(&names),
                per_topology: table.optional("per-topology").unwrap_or(false),
                per_policy: table.optional("per-policy").unwrap_or(false),
            },
            names,
        }),
        "equal" => equal.map(|names| Placed {
            expectation: Expectation::Equal { steps: values(&names) },
            names,
        }),
        _ => rule_of(table, rule),
    };
    table.finish();
    placed
}

fn rule_of(table: &Table<'_>, rule: Option<Rule>) -> Option<Placed> {
    let step: At<Name> = table.required("step")?;
    let step = At { value: step.value.0, span: step.span };
    let expectation = Expectation::Rule { step: step.value.clone(), rule: rule? };
    Some(Placed { expectation, names: vec![step] })
}

fn step_names(table: &Table<'_>, key: &'static str) -> Option<Vec<At<String>>> {
    let names: Vec<At<Name>> = table.optional(key)?;
    Some(names.into_iter().map(|name| At { value: name.value.0, span: name.span }).collect())
}

fn values(names: &[At<String>]) -> Vec<String> {
    names.iter().map(|name| name.value.clone()).collect()
}

/// Checks that the steps are there and yield what the expectation looks at.
pub(super) fn check(table: &Table<'_>, placed: &Placed, steps: &[&NamedStep]) {
    let least = if matches!(placed.expectation, Expectation::Equal { .. }) { 2 } else { 1 };
    if placed.names.len() < least {
        table.sink().add(table.span(), format!("needs at least {least} step names"));
    }
    let kinds = kinds(&placed.expectation);
    let mut first: Option<&str> = None;
    for (i, name) in placed.names.iter().enumerate() {
        if placed.names[..i].iter().any(|earlier| earlier.value == name.value) {
            table.sink().add(name.span.clone(), format!("`{}` is named twice", name.value));
            continue;
        }
        let Some(step) = steps.iter().find(|step| step.name == name.value) else {
            table.sink().hint(
                name.span.clone(),
                format!("no step is named `{}`", name.value),
                suggestion(&name.value, steps.iter().map(|step| step.name.as_str())),
            );
            continue;
        };
        let kind = step.step.kind();
        let alike = first.get_or_insert(kind);
        if !kinds.contains(&kind) {
            table.sink().hint(
                name.span.clone(),
                format!("step `{}` is a `{kind}`, which this does not look at", name.value),
                format!("for steps that do: {}", kinds.join(", ")),
            );
        } else if matches!(placed.expectation, Expectation::Equal { .. }) && *alike != kind {
            table.sink().add(
                name.span.clone(),
                format!("step `{}` is a `{kind}` and cannot equal a `{alike}`", name.value),
            );
        }
    }
}

/// Kinds of steps whose observation an expectation can be held against.
fn kinds(expectation: &Expectation) -> &'static [&'static str] {
    match expectation {
        Expectation::Snapshot { .. } | Expectation::Equal { .. } => &["tree", "place"],
        Expectation::Rule { rule, .. } => match rule {
            Rule::QueueIsSubmittingCpu
            | Rule::BackgroundFollowsPolicy
            | Rule::QueueIsNear
            | Rule::NothingLost => &["place"],
            Rule::EveryCallReturned
            | Rule::LoadWasReal
            | Rule::NoTaskInD
            | Rule::WaitingZero
            | Rule::ConnectionGone => &["teardown"],
            Rule::FioSane => &["fio"],
        },
    }
}

impl From<Placed> for Expectation {
    fn from(placed: Placed) -> Expectation {
        placed.expectation
    }
}
