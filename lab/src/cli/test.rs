//! `lab test`.

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use lab::plan::Selection;
use lab::run::options::{Begin, Manner, TestOptions};

use super::args::FormatArg;
use super::git_bisect::Hunt;
use super::how::How;
use super::select::Select;

/// Run cases: each kernel on each topology through each scenario.
///
/// The last line of standard output is `N passed, N failed, N skipped`. A run is a directory
/// with its events, and for each case the resolved scenario, the QEMU command, the console and
/// the seed; `lab report` shows it again.
#[derive(Debug, clap::Args)]
pub(super) struct Test {
    #[command(flatten)]
    select: Select,

    /// A kernel to compare with: the same cases run on it first.
    ///
    /// A case whose faults all show on the base, too, is KNOWN: it neither passes nor counts
    /// against the kernel under test. What the base itself comes to does not count.
    #[arg(long, env = "LAB_BASE", value_name = "NAME|PATH")]
    base: Option<String>,

    #[command(flatten)]
    how: How,

    /// Attempts beyond the first of a case that fails. One that passes only then is FLAKY, never
    /// PASS.
    #[arg(long, env = "LAB_RETRIES", value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=100))]
    retries: u32,

    /// Stop at the first case that fails.
    #[arg(long, env = "LAB_FAIL_FAST", value_parser = FalseyValueParser::new())]
    fail_fast: bool,

    /// Form of the results on standard output.
    #[arg(long, env = "LAB_FORMAT", value_enum, default_value_t = FormatArg::Human)]
    format: FormatArg,

    /// Write a JUnit report to FILE, too.
    #[arg(long, env = "LAB_JUNIT", value_name = "FILE")]
    junit: Option<PathBuf>,

    /// Keep the memory of a guest that hangs as vmcore in the directory of its case, for crash
    /// and drgn.
    #[arg(long, env = "LAB_VMCORE", value_parser = FalseyValueParser::new())]
    vmcore: bool,

    /// Exit codes for `git bisect run lab test --bisect ...`: 0 good, 1 bad, 125 for a kernel that
    /// does not build or does not boot, above 128 where nothing can be told at all.
    ///
    /// With `--bisect=boot` a kernel that does not boot is what is hunted.
    #[arg(long, env = "LAB_BISECT", value_enum, num_args = 0..=1, require_equals = true,
          default_missing_value = "case", value_name = "WHAT")]
    bisect: Option<Hunt>,

    /// Show the plan and the QEMU commands, start nothing.
    #[arg(long, env = "LAB_DRY_RUN", value_parser = FalseyValueParser::new())]
    dry_run: bool,

    /// Install what is missing (QEMU, fio) first, as root or through sudo.
    #[arg(long, env = "LAB_SETUP", value_parser = FalseyValueParser::new())]
    setup: bool,
}

impl Test {
    /// What `git bisect` hunts, where it runs this.
    pub(super) fn hunt(&self) -> Option<Hunt> {
        self.bisect
    }

    /// The options. `ci` tells whether the run is part of CI.
    pub(super) fn into_options(self, fresh_seed: u64, ci: bool, argv: Vec<String>) -> TestOptions {
        // A variable that is set to nothing names nothing.
        let unset = std::env::var_os("LAB_BASE").is_some_and(|value| value.is_empty());
        let base = self.base.filter(|base| !(unset && base.is_empty()));
        let selection = Selection { base, ..self.select.into_selection(fresh_seed) };
        TestOptions {
            selection,
            manner: Manner {
                retries: self.retries,
                fail_fast: self.fail_fast,
                vmcore: self.vmcore,
                ..self.how.manner()
            },
            format: self.format.into(),
            junit: self.junit,
            dry_run: self.dry_run,
            setup: self.setup,
            ci,
            argv,
            begin: Begin::default(),
        }
    }
}
