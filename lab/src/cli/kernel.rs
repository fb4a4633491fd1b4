//! `lab kernel`.

use clap::builder::FalseyValueParser;
use clap::{Args, Subcommand};
use lab::kernel::build;
use lab::run::{KernelTask, Part};

/// Kernels: what there is, building, logs, room.
#[derive(Debug, Args)]
pub(super) struct Kernel {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// The entries of kernels/, and what is stored, with sizes
    List,
    /// Fetch or build kernels, so that a test starts at once
    Build {
        /// Entries, with flavours, as in `v4-patched+kasan`; or a source tree.
        #[arg(value_name = "KERNEL", required = true)]
        kernels: Vec<String>,

        /// Install what building needs and this machine lacks.
        #[arg(long, env = "LAB_SETUP", value_parser = FalseyValueParser::new())]
        setup: bool,
    },
    /// The path of a kernel's image
    Path {
        /// The entry.
        #[arg(value_name = "KERNEL")]
        kernel: String,
    },
    /// What the build of a kernel said
    Log {
        /// The entry.
        #[arg(value_name = "KERNEL")]
        kernel: String,
    },
    /// The configuration of a kernel that was built
    Config {
        /// The entry.
        #[arg(value_name = "KERNEL")]
        kernel: String,
    },
    /// Remove what was not used for longest, until the rest is within LAB_KEEP_KERNELS
    ///
    /// The limit is 20GiB without that variable. What was used within a day stays.
    Clean {
        /// Remove all kernels and trees, also those used today.
        #[arg(long, env = "LAB_ALL", value_parser = FalseyValueParser::new())]
        all: bool,

        /// Remove unpacked sources, too; the newest are fetched again.
        #[arg(long, env = "LAB_SOURCES", value_parser = FalseyValueParser::new())]
        sources: bool,
    },
}

impl Kernel {
    /// The task; `limit` is the text of LAB_KEEP_KERNELS.
    pub(super) fn into_task(self, limit: Option<&str>) -> Result<KernelTask, String> {
        Ok(match self.task {
            Task::List => KernelTask::List,
            Task::Build { kernels, setup } => KernelTask::Build { names: kernels, setup },
            Task::Path { kernel } => KernelTask::Show(kernel, Part::Image),
            Task::Log { kernel } => KernelTask::Show(kernel, Part::Log),
            Task::Config { kernel } => KernelTask::Show(kernel, Part::Config),
            Task::Clean { all, sources } => {
                KernelTask::Clean { all, sources, limit_bytes: build::limit(limit)? }
            }
        })
    }
}
