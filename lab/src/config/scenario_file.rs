//! Files of `scenarios/`: read and checked.
//!
//! Keys: `summary`; `kind` (default: the first directory); `profile` (the smallest one that runs
//! it, default `quick`); `image` (`agent` or `fio`, default by the steps); `kernel-args`;
//! `[limits]` with `step`, `case`, `call` and `silence`; `[requires]` with `config`, `min-cpus`
//! and `min-nodes`; `[[step]]`, `[[expect]]` and `[[allow]]`, each described where it is read.

use std::time::Duration;

use super::allow_file;
use super::expect_file;
use super::flow;
use super::kernel_file::{config_options, kernel_args, names};
use super::problem::{FileProblems, SourceFile};
use super::reader::{Table, read_file};
use super::scenario::{ImageKind, Kind, NamedStep, Profile, Requires, Scenario};
use super::step_file;
use super::value::MAX_CPUS;

/// Most steps of a scenario.
const MAX_STEPS: usize = 64;

/// Most expectations of a scenario.
const MAX_EXPECT: usize = 64;

/// Most allowed splats of a scenario.
const MAX_ALLOW: usize = 16;

/// Reads a scenario called `name`, its path below `scenarios/` without suffix.
pub fn read(name: &str, file: &SourceFile) -> Result<Scenario, FileProblems> {
    read_file(file, |root| scenario(name, root))
}

/// Limits before the slowdown factor.
struct Limits {
    step: Duration,
    case: Duration,
    call: Duration,
    silence: Duration,
}

fn scenario(name: &str, root: &Table<'_>) -> Option<Scenario> {
    let summary = root.required("summary");
    let kind = kind(name, root);
    let profile = root.choice("profile", &Profile::ALL).unwrap_or(Profile::Quick);
    let image = root.choice("image", &ImageKind::ALL);
    let kernel_args = kernel_args(root);
    let requires = root.table("requires").map(|table| requires(&table)).unwrap_or_default();
    let limits = limits(root);
    let tables = root.tables("step", MAX_STEPS);
    let steps: Vec<Option<NamedStep>> = tables.iter().map(step_file::read).collect();
    let expect_tables = root.tables("expect", MAX_EXPECT);
    let expect: Vec<_> = expect_tables.iter().map(expect_file::read).collect();
    let allow: Vec<_> = root.tables("allow", MAX_ALLOW).iter().map(allow_file::read).collect();
    if tables.is_empty() {
        root.sink().hint(root.span(), "missing [[step]]", "a scenario has at least one step");
    }
    let placed: Vec<_> = tables.iter().zip(&steps).collect();
    flow::check(&placed, limits.case);
    // With a step that could not be read, references to its name would all be called wrong.
    if steps.iter().all(Option::is_some) {
        let steps: Vec<&NamedStep> = steps.iter().flatten().collect();
        for (table, expectation) in expect_tables.iter().zip(&expect) {
            if let Some(expectation) = expectation {
                expect_file::check(table, expectation, &steps);
            }
        }
    }
    let steps: Vec<NamedStep> = steps.into_iter().collect::<Option<_>>()?;
    let image = image_for(root, image, &steps);
    Some(Scenario {
        name: name.into(),
        summary: summary?,
        kind: kind?,
        profile,
        image,
        requires,
        kernel_args,
        step_limit: limits.step,
        case_limit: limits.case,
        call_limit: limits.call,
        silence_limit: limits.silence,
        steps,
        allow: allow.into_iter().collect::<Option<_>>()?,
        expect: expect.into_iter().map(|placed| placed.map(Into::into)).collect::<Option<_>>()?,
    })
}

fn kind(name: &str, root: &Table<'_>) -> Option<Kind> {
    if root.has("kind") {
        return root.choice("kind", &Kind::ALL);
    }
    let directory = name.split('/').next().unwrap_or(name);
    let kind = Kind::ALL.iter().find(|(kind, _)| *kind == directory).map(|(_, kind)| *kind);
    if kind.is_none() {
        let kinds: Vec<&str> = Kind::ALL.iter().map(|(name, _)| *name).collect();
        root.sink().hint(
            root.span(),
            format!("the directory `{directory}` does not tell what kind of scenario this is"),
            format!("add `kind = \"...\"`: {}", kinds.join(", ")),
        );
    }
    kind
}

fn requires(table: &Table<'_>) -> Requires {
    let requires = Requires {
        config: config_options(table, "config"),
        offers: names(table, "offers"),
        min_cpus: table.number("min-cpus", 1..=MAX_CPUS, 0),
        min_nodes: table.number("min-nodes", 1..=64, 0),
    };
    table.finish();
    requires
}

fn limits(root: &Table<'_>) -> Limits {
    let table = root.table("limits");
    let limit = |key, default| {
        let given: Option<Duration> = table.as_ref().and_then(|table| table.optional(key));
        given.unwrap_or(Duration::from_secs(default))
    };
    let limits = Limits {
        call: limit("call", 5),
        step: limit("step", 30),
        case: limit("case", 90),
        silence: limit("silence", 10),
    };
    if let Some(table) = table {
        let zero =
            [limits.call, limits.step, limits.case, limits.silence].contains(&Duration::ZERO);
        if zero || limits.call > limits.step || limits.step > limits.case {
            table.sink().add(
                table.span(),
                format!(
                    "limits must be above zero and rise from call ({}) over step ({}) to case ({})",
                    humantime::format_duration(limits.call),
                    humantime::format_duration(limits.step),
                    humantime::format_duration(limits.case),
                ),
            );
        }
        table.finish();
    }
    limits
}

/// The image given, or the smallest one that has what the steps use.
fn image_for(root: &Table<'_>, given: Option<ImageKind>, steps: &[NamedStep]) -> ImageKind {
    let fio = steps.iter().any(|step| step.step.kind() == "fio");
    if fio && given == Some(ImageKind::Agent) {
        root.sink().add(root.span_of("image"), "a step runs fio, which this image does not have");
    }
    given.unwrap_or(if fio { ImageKind::Fio } else { ImageKind::Agent })
}

#[cfg(test)]
#[path = "scenario_tests.rs"]
mod tests;
