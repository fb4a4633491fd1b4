//! Flags that choose cases, shared by the verbs that plan.

use clap::{ArgAction, Args, ValueEnum};
use lab::config::scenario::Profile;
use lab::plan::{MAX_REPEAT, Selection, Shard};

/// Which cases.
#[derive(Debug, Args)]
pub(super) struct Select {
    /// A kernel to test: an entry of kernels/, a bzImage or vmlinux, or a built source tree.
    ///
    /// What has a `/` is a path. Can be given more than once, or as a list with commas. Without it: `stock`, the newest
    /// prebuilt distribution kernel with FUSE over io_uring.
    #[arg(long, env = "LAB_KERNEL", value_name = "NAME|PATH", value_delimiter = ',', action = ArgAction::Append)]
    kernel: Vec<String>,

    /// Scenarios to run, such as `correctness/tree` or `teardown/*`.
    ///
    /// Can be given more than once, or as a list with commas. A name in full is run whatever its profile; what a pattern
    /// matches is held to `--profile`. Without it: all of the profile.
    #[arg(long, env = "LAB_SCENARIO", value_name = "GLOB", value_delimiter = ',', action = ArgAction::Append)]
    scenario: Vec<String>,

    /// CPU and NUMA layouts to run on, such as `2x2` or `2x*`.
    ///
    /// Can be given more than once, or as a list with commas. Without it: `1x2` and `2x2` in the quick profile, all of
    /// them in the others.
    #[arg(long, env = "LAB_TOPOLOGY", value_name = "GLOB", value_delimiter = ',', action = ArgAction::Append)]
    topology: Vec<String>,

    /// How much to run. Each profile contains the ones before it.
    #[arg(long, env = "LAB_PROFILE", value_enum, default_value_t = ProfileArg::Quick)]
    profile: ProfileArg,

    /// Run each case N times.
    #[arg(long, env = "LAB_REPEAT", value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_REPEAT)))]
    repeat: u32,

    /// Seed of all random choices; the same seed makes the same ones. Without it: a new one,
    /// which the run shows.
    #[arg(long, env = "LAB_SEED", value_name = "N")]
    seed: Option<u64>,

    /// Run part I of N of the cases. Which part a case is in depends on its name alone.
    #[arg(long, env = "LAB_SHARD", value_name = "I/N")]
    shard: Option<Shard>,
}

/// Value of `--profile`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum ProfileArg {
    /// A minute or so
    Quick,
    /// The gate of a series; NEW and FLAKY fail
    Ci,
    /// At most half an hour
    Full,
    /// Everything
    Soak,
}

impl From<ProfileArg> for Profile {
    fn from(profile: ProfileArg) -> Profile {
        match profile {
            ProfileArg::Quick => Profile::Quick,
            ProfileArg::Ci => Profile::Ci,
            ProfileArg::Full => Profile::Full,
            ProfileArg::Soak => Profile::Soak,
        }
    }
}

/// A variable that is set to nothing names nothing. An empty flag stays: it is more likely a
/// name that somebody forgot to fill in than a wish for everything.
fn named(names: Vec<String>, variable: &str) -> Vec<String> {
    let unset = std::env::var_os(variable).is_some_and(|value| value.is_empty());
    if unset && names == [""] { Vec::new() } else { names }
}

impl Select {
    /// The selection; `fresh_seed` is the seed where none was given.
    pub(super) fn into_selection(self, fresh_seed: u64) -> Selection {
        Selection {
            kernels: named(self.kernel, "LAB_KERNEL"),
            base: None,
            topologies: named(self.topology, "LAB_TOPOLOGY"),
            scenarios: named(self.scenario, "LAB_SCENARIO"),
            profile: self.profile.into(),
            repeat: self.repeat,
            seed: self.seed.unwrap_or(fresh_seed),
            shard: self.shard,
        }
    }
}
