//! `lab report`.

use std::path::PathBuf;

use lab::run::options::ReportOptions;

use super::args::FormatArg;

/// Show a run again, also one that was cut off.
#[derive(Debug, clap::Args)]
pub(super) struct Report {
    /// The run: its directory or name. Without it: the latest.
    #[arg(value_name = "RUN")]
    run: Option<String>,

    /// Form of the results on standard output.
    #[arg(long, env = "LAB_FORMAT", value_enum, default_value_t = FormatArg::Human)]
    format: FormatArg,

    /// Write a JUnit report to FILE, too.
    #[arg(long, env = "LAB_JUNIT", value_name = "FILE")]
    junit: Option<PathBuf>,
}

impl Report {
    /// The options.
    pub(super) fn into_options(self) -> ReportOptions {
        ReportOptions { run: self.run, format: self.format.into(), junit: self.junit }
    }
}
