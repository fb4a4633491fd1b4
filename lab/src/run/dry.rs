//! The plan and the QEMU commands, with nothing started, fetched or built.

use std::path::PathBuf;

use super::launch::{Host, RunError};
use super::source;
use crate::config::kernel::KernelSource;
use crate::kernel;
use crate::plan::{Case, Plan};
use crate::vm::Slowdown;
use crate::vm::argv::argv;
use crate::vm::qemu::PROGRAM;
use crate::vm::spec::{Accel, Ram, VmSpec};

/// One line a case, and under each new kind of VM the command that boots it from cold.
///
/// What is not known before a run stands in angle brackets.
///
/// # Errors
///
/// [`RunError::Kernel`] for a path that is no kernel.
pub fn dry_run(host: &Host<'_>, plan: &Plan) -> Result<Vec<String>, RunError> {
    for kernel in plan.kernels.values() {
        if let KernelSource::Path(path) = &kernel.source {
            kernel::check_path(path)?;
        }
    }
    let mut lines = Vec::new();
    let mut last = Vec::new();
    for case in &plan.cases {
        let base = if case.base { "  [base]" } else { "" };
        lines.push(format!("{}  seed {}{base}", case.id, case.seed));
        let command = command(host, plan, case);
        if command != last {
            lines.push(format!("    {}", shell_words::join(&command)));
        }
        last = command;
    }
    let word = if plan.cases.len() == 1 { "case" } else { "cases" };
    lines.push(format!("{} {word} planned, nothing started", plan.cases.len()));
    Ok(lines)
}

fn command(host: &Host<'_>, plan: &Plan, case: &Case) -> Vec<String> {
    let scenario = &case.scenario;
    let entry = plan.kernels.get(&case.kernel);
    let own = entry.map(|e| e.cmdline.clone()).unwrap_or_default();
    // Neither accelerator nor configuration is known: the slower of the usual ones.
    let cmdline = source::cmdline(Slowdown::plain(Accel::Tcg), &own, case);
    let spec = VmSpec {
        qemu: host.qemu.clone().unwrap_or_else(|| PROGRAM.into()),
        name: case.topology.name.clone(),
        accel: Accel::Tcg,
        topology: (*case.topology).clone(),
        kernel: PathBuf::from(format!("<{}>", case.kernel)),
        initrd: PathBuf::from(format!("<{} image>", scenario.image.name())),
        cmdline,
        ram: Ram::Anonymous,
        incoming: false,
        dir: PathBuf::from("<dir>"),
        vng: None,
    };
    let mut words = vec![spec.qemu.display().to_string()];
    words.extend(argv(&spec));
    words
}
