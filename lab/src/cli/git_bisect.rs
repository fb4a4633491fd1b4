//! Exit codes for `git bisect run`: 0 good, 1 bad, 125 cannot be told, 128 and above stop it.

use lab::bisect::only_boots_failed;
use lab::kernel::KernelError;
use lab::kernel::build::Stage;
use lab::run::RunError;
use lab::run::events::Record;

use clap::ValueEnum;

/// git skips the commit.
const SKIP: u8 = 125;

/// git stops: it reads 1 to 127 as bad, so that no failure of ours may be one of these.
const STOP: u8 = 128;

const INTERRUPTED: u8 = 130;

/// What is hunted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Hunt {
    /// A failure of a case; a kernel that does not boot is skipped
    Case,
    /// A kernel that does not boot
    Boot,
}

/// The code of a run that has one of its own.
pub(super) fn of_run(code: u8, hunt: Hunt, records: &[Record]) -> u8 {
    match code {
        0 => 0,
        1 if hunt == Hunt::Case && only_boots_failed(records) => SKIP,
        1 if hunt == Hunt::Boot && !only_boots_failed(records) => 0,
        1 => 1,
        other => stop(other),
    }
}

/// The code of a run that never began.
pub(super) fn of_error(error: &RunError) -> u8 {
    match error {
        RunError::Kernel(KernelError::Build(build)) if build.stage() != Stage::Host => SKIP,
        other => stop(other.exit_code()),
    }
}

/// 2, 3 and 4 become 131, 132 and 133; an interrupt stays 130.
pub(super) fn stop(code: u8) -> u8 {
    match code {
        INTERRUPTED => INTERRUPTED,
        code => STOP + 1 + code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::kernel::build::BuildError;

    #[test]
    fn git_reads_what_is_meant() {
        for hunt in [Hunt::Case, Hunt::Boot] {
            assert_eq!(of_run(0, hunt, &[]), 0);
            for code in [2, 3, 4] {
                assert_eq!(of_run(code, hunt, &[]), 129 + code);
            }
            assert_eq!(of_run(130, hunt, &[]), 130);
        }
        // Without a record of a boot it is a case that failed.
        assert_eq!(of_run(1, Hunt::Case, &[]), 1);
        assert_eq!(of_run(1, Hunt::Boot, &[]), 0);
    }

    #[test]
    fn a_kernel_that_does_not_build_is_skipped_and_a_full_disk_stops() {
        let error = |build: BuildError| of_error(&KernelError::Build(Box::new(build)).into());
        let name = String::from("k");
        let errors = String::new();
        assert_eq!(error(BuildError::Compile { name, errors, log: "/l".into() }), 125);
        assert_eq!(error(BuildError::NoSpace("/x".into())), 132);
        assert_eq!(of_error(&RunError::Nothing), 133);
        assert_eq!(of_error(&RunError::Interrupted), 130);
    }
}
