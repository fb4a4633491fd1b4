//! `lab bisect`.

use clap::builder::FalseyValueParser;
use lab::plan::Selection;
use lab::run::BisectOptions;
use lab::run::options::{Begin, Format, TestOptions};

use super::how::How;
use super::select::Select;

/// Find the patch of a series, or the commit of a range, that brought a failure.
///
/// The bad end is run first; what fails there, with its verdict and what the kernel said, is
/// what is hunted. A step that fails otherwise, does not build or does not boot is skipped. Exit
/// code 0: one step is left; 1: several that cannot be told apart.
#[derive(Debug, clap::Args)]
pub(super) struct Bisect {
    /// The series: a directory of patches, an mbox, DIR:A..B (commits of a git repository,
    /// in a line), lore:MESSAGE-ID (by b4), or the name of one, such as v4.
    #[arg(value_name = "SERIES")]
    input: String,

    /// The kernel that the patches are put onto. Without it: as for `lab series`.
    #[arg(long, env = "LAB_ONTO", value_name = "KERNEL")]
    onto: Option<String>,

    /// A step that is good; 0 is the base.
    #[arg(long, env = "LAB_GOOD", value_name = "N", default_value_t = 0)]
    good: usize,

    /// A step that is bad. Without it: the last patch.
    #[arg(long, env = "LAB_BAD", value_name = "N")]
    bad: Option<usize>,

    /// Runs that a step must pass to be good, for a failure that does not always show.
    #[arg(id = "runs_each", long = "runs", env = "LAB_RUNS_EACH", value_name = "N",
          default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,

    #[command(flatten)]
    select: Select,

    #[command(flatten)]
    how: How,

    /// Install what is missing first, as root or through sudo.
    #[arg(long, env = "LAB_SETUP", value_parser = FalseyValueParser::new())]
    setup: bool,
}

impl Bisect {
    /// The options.
    pub(super) fn into_options(self, fresh_seed: u64, argv: Vec<String>) -> BisectOptions {
        let selection = Selection { kernels: Vec::new(), ..self.select.into_selection(fresh_seed) };
        BisectOptions {
            input: self.input,
            onto: self.onto,
            good: self.good,
            bad: self.bad,
            runs: self.runs,
            test: TestOptions {
                selection: selection.clone(),
                manner: self.how.manner(),
                format: Format::Human,
                junit: None,
                dry_run: false,
                setup: self.setup,
                // What is new to the snapshots is no failure that can be hunted.
                ci: false,
                argv,
                begin: Begin::default(),
            },
            selection,
        }
    }
}
