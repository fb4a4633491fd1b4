//! `lab shell`.

use lab::run::ShellOptions;

use super::args::Accel;

/// Boot a kernel with this machine's root, read-only, and a shell or a command in it.
///
/// By virtme-ng, which the lab installs into a Python environment of its own. The guest has the
/// CPUs and nodes of the topology, and a QMP socket whose path is told. The exit code is that of
/// the command; 3 where the guest did not come so far.
#[derive(Debug, clap::Args)]
pub(super) struct Shell {
    /// The kernel: an entry of kernels/, an image, or a source tree. It needs 9p.
    #[arg(long, env = "LAB_KERNEL", value_name = "NAME|PATH", default_value = "v7.3")]
    kernel: String,

    /// CPU and NUMA layout.
    #[arg(long, env = "LAB_TOPOLOGY", value_name = "NAME", default_value = "2x2")]
    topology: String,

    /// How guest code is executed.
    #[arg(long, env = "LAB_ACCEL", value_enum, default_value_t = Accel::Auto)]
    accel: Accel,

    /// A command instead of a shell on the terminal.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Shell {
    /// The options.
    pub(super) fn into_options(self) -> ShellOptions {
        ShellOptions {
            kernel: self.kernel,
            topology: self.topology,
            accel: self.accel.into(),
            command: self.command,
        }
    }
}
