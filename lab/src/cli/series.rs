//! `lab series`.

use std::path::PathBuf;

use clap::ArgAction;
use clap::builder::FalseyValueParser;
use lab::config::scenario::Profile;
use lab::plan::Selection;
use lab::run::SeriesOptions;
use lab::run::options::{Begin, TestOptions};

use super::args::FormatArg;
use super::how::How;
use super::select::ProfileArg;

/// Test a series of patches: each must apply, build, boot and behave.
///
/// Patch by patch a kernel is built; new warnings in the files that a patch touches count
/// against it. Each kernel then runs a profile, the last one a wider profile, compared with the
/// base. The first bad patch is named. The record keeps the patches.
#[derive(Debug, clap::Args)]
pub(super) struct Series {
    /// The series: a directory of patches, an mbox, DIR:A..B (commits of a git repository),
    /// lore:MESSAGE-ID (by b4), or the name of one, such as v4.
    #[arg(value_name = "SERIES")]
    input: String,

    /// The kernel that the patches are put onto: an entry with a source.
    ///
    /// Without it: the entry of the base-commit that the mails name, or else v7.3. What was used
    /// is said.
    #[arg(long, env = "LAB_ONTO", value_name = "KERNEL")]
    onto: Option<String>,

    /// An earlier version of the series: what is fixed, new, remaining.
    #[arg(long, env = "LAB_AGAINST", value_name = "SERIES")]
    against: Option<String>,

    /// Build each patch also with NUMA=n, FUSE_IO_URING=n, FUSE_FS=m, CPUMASK_OFFSTACK=y and
    /// W=1, and check it by sparse where that is installed.
    ///
    /// The first time, each configuration is a whole build.
    #[arg(long, env = "LAB_MATRIX", value_parser = FalseyValueParser::new())]
    matrix: bool,

    /// Do not compare the last patch with the base.
    #[arg(long, env = "LAB_NO_BASE", value_parser = FalseyValueParser::new())]
    no_base: bool,

    /// What each patch but the last runs.
    #[arg(long, env = "LAB_PROFILE_EACH", value_enum, default_value_t = ProfileArg::Quick,
          value_name = "PROFILE")]
    profile_each: ProfileArg,

    /// What the last patch runs.
    #[arg(long, env = "LAB_PROFILE_TIP", value_enum, default_value_t = ProfileArg::Ci,
          value_name = "PROFILE")]
    profile_tip: ProfileArg,

    /// Scenarios to run, as for `lab test`.
    #[arg(long, env = "LAB_SCENARIO", value_name = "GLOB", value_delimiter = ',',
          action = ArgAction::Append)]
    scenario: Vec<String>,

    /// CPU and NUMA layouts, as for `lab test`.
    #[arg(long, env = "LAB_TOPOLOGY", value_name = "GLOB", value_delimiter = ',',
          action = ArgAction::Append)]
    topology: Vec<String>,

    /// Seed of all random choices. Without it: a new one, which the run shows.
    #[arg(long, env = "LAB_SEED", value_name = "N")]
    seed: Option<u64>,

    #[command(flatten)]
    how: How,

    /// Form of the results on standard output.
    #[arg(long, env = "LAB_FORMAT", value_enum, default_value_t = FormatArg::Human)]
    format: FormatArg,

    /// Write a JUnit report to FILE, too.
    #[arg(long, env = "LAB_JUNIT", value_name = "FILE")]
    junit: Option<PathBuf>,

    /// Install what is missing (QEMU, fio, compilers) first, as root or through sudo.
    #[arg(long, env = "LAB_SETUP", value_parser = FalseyValueParser::new())]
    setup: bool,
}

impl Series {
    /// The options. `ci` tells whether the run is part of CI.
    pub(super) fn into_options(
        self,
        fresh_seed: u64,
        ci: bool,
        argv: Vec<String>,
    ) -> SeriesOptions {
        let select = |profile: ProfileArg| Selection {
            kernels: Vec::new(),
            base: None,
            topologies: self.topology.clone(),
            scenarios: self.scenario.clone(),
            profile: Profile::from(profile),
            repeat: 1,
            seed: self.seed.unwrap_or(fresh_seed),
            shard: None,
        };
        let (each, tip) = (select(self.profile_each), select(self.profile_tip));
        // Which kernels the record can be asked for again is in its own events.
        let selection = Selection { ..tip.clone() };
        SeriesOptions {
            input: self.input,
            onto: self.onto,
            against: self.against,
            with_base: !self.no_base,
            matrix: self.matrix,
            each,
            tip,
            test: TestOptions {
                selection,
                manner: self.how.manner(),
                format: self.format.into(),
                junit: self.junit,
                dry_run: false,
                setup: self.setup,
                ci,
                argv,
                begin: Begin::default(),
            },
        }
    }
}
