//! What to install, and how, as data; pure.

use std::path::Path;

use crate::host::apt::machine::OsRelease;
use crate::host::apt::sources::{self, Source};

/// A program the lab needs on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// Program.
    pub program: &'static str,
    /// Debian package that has it.
    pub package: &'static str,
    /// What the lab does with it.
    pub why: &'static str,
}

/// What every run needs.
pub const NEEDS: [Need; 2] = [
    Need {
        program: "qemu-system-x86_64",
        package: "qemu-system-x86",
        why: "runs the kernels under test",
    },
    Need { program: "fio", package: "fio", why: "makes the load of the perf scenarios" },
];

/// What building a kernel needs beside that; a path is a header.
pub const BUILD_NEEDS: [Need; 10] = [
    Need { program: "make", package: "make", why: "builds kernels" },
    Need { program: "gcc", package: "gcc", why: "compiles kernels" },
    Need { program: "ld", package: "binutils", why: "links kernels" },
    Need { program: "flex", package: "flex", why: "builds the tools of the kernel tree" },
    Need { program: "bison", package: "bison", why: "builds the tools of the kernel tree" },
    Need { program: "bc", package: "bc", why: "computes constants of the kernel" },
    Need { program: "git", package: "git", why: "applies patches and reads ranges" },
    Need { program: "xz", package: "xz-utils", why: "unpacks kernel sources" },
    Need { program: "/usr/include/libelf.h", package: "libelf-dev", why: "builds objtool" },
    Need {
        program: "bwrap",
        package: "bubblewrap",
        why: "keeps builds from the network and the home directory",
    },
];

/// How packages can be installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// As root.
    Root,
    /// Through sudo, without a password.
    Sudo,
    /// Not by this user.
    None,
}

/// What is known of the machine.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Distribution.
    pub os: OsRelease,
    /// QEMU's packages that are installed, with their versions.
    pub installed: Vec<(String, String)>,
    /// Package sources in force.
    pub sources: Vec<Source>,
    /// Text of the machine's `sources.list`; empty if there is none.
    pub sources_list: String,
    /// Keyring of Debian, for a suite whose source names none.
    pub keyring: Option<String>,
}

/// What to install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Packages.
    pub packages: Vec<&'static str>,
    /// Suite they must come from, where it is not the machine's own choice.
    pub suite: Option<String>,
    /// The source file of the private root: the machine's own, and that suite.
    pub sources_list: String,
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// QEMU's parts come from backports, of which nothing is known here.
    #[error(
        "{package} {version} is from backports, so all of qemu must be, but the apt sources of \
         this machine name no debian mirror to find them at"
    )]
    NoBackports {
        /// A package from backports.
        package: String,
        /// Its version.
        version: String,
    },
}

/// Plans the installation of `missing`. QEMU's packages need each other in one exact version:
/// where one of them is already from backports, the others come from there too.
///
/// # Errors
///
/// [`PlanError`].
pub fn plan(missing: &[Need], facts: &Facts) -> Result<Plan, PlanError> {
    let packages: Vec<&'static str> = missing.iter().map(|need| need.package).collect();
    let plain = Plan { packages, suite: None, sources_list: facts.sources_list.clone() };
    let wants_qemu = missing.iter().any(|need| need.package.starts_with("qemu"));
    let from_backports = facts
        .installed
        .iter()
        .find(|(name, version)| name.starts_with("qemu") && version.contains("~bpo"));
    match from_backports {
        Some((package, version)) if wants_qemu => with_backports(plain, facts).ok_or_else(|| {
            PlanError::NoBackports { package: package.clone(), version: version.clone() }
        }),
        _ => Ok(plain),
    }
}

fn with_backports(plan: Plan, facts: &Facts) -> Option<Plan> {
    let codename = facts.os.codename.as_deref()?;
    let suite = format!("{codename}-backports");
    let mut sources_list = plan.sources_list;
    if !sources::serves(&facts.sources, &suite) {
        let mirror = sources::debian_mirror(&facts.sources, Some(codename))?;
        // The one-line form cannot hold a key, only name a keyring.
        let is_path = |keys: &String| keys.starts_with('/') && !keys.contains(char::is_whitespace);
        let keyring = mirror.signed_by.filter(is_path).or_else(|| facts.keyring.clone());
        let option = keyring.map(|path| format!("[signed-by={path}] ")).unwrap_or_default();
        if !sources_list.is_empty() && !sources_list.ends_with('\n') {
            sources_list.push('\n');
        }
        sources_list += &format!("deb {option}{} {suite} main\n", mirror.uri);
    }
    Some(Plan { suite: Some(suite), sources_list, ..plan })
}

/// The command that installs, with the configuration of the private root. Where the lab runs
/// it, nobody is there to answer questions.
pub fn install_command(plan: &Plan, config: &Path, right: Right) -> Vec<String> {
    let unasked = ["env", "DEBIAN_FRONTEND=noninteractive"];
    let prefix: Vec<&str> = match right {
        Right::Root => unasked.to_vec(),
        Right::Sudo => ["sudo", "-n"].into_iter().chain(unasked).collect(),
        Right::None => vec!["sudo"],
    };
    let mut words: Vec<String> =
        prefix.into_iter().chain(["apt-get", "-c"]).map(String::from).collect();
    words.push(config.to_string_lossy().into_owned());
    words.extend(["install", "-y", "--no-install-recommends"].map(String::from));
    if let Some(suite) = &plan.suite {
        words.extend(["-t".into(), suite.clone()]);
    }
    words.extend(plan.packages.iter().map(|package| (*package).to_owned()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const BPO: &str = "1:10.0.2+ds-2~bpo12+1";

    fn facts(version: &str, sources: &str) -> Facts {
        Facts {
            os: OsRelease { id: "debian".into(), codename: Some("bookworm".into()) },
            installed: vec![("qemu-utils".into(), version.into())],
            sources: sources::parse_list(sources),
            sources_list: "# mine".into(),
            keyring: Some("/k.gpg".into()),
        }
    }

    const MAIN: &str = "deb http://m.example/debian bookworm main\n";

    fn line(plan: &Plan, right: Right) -> String {
        install_command(plan, Path::new("/c/apt.conf"), right).join(" ")
    }

    #[test]
    fn without_backports_the_machine_decides() {
        let plan = plan(&NEEDS, &facts("1:7.2+dfsg-7", MAIN)).unwrap();
        assert_eq!((plan.suite.as_deref(), plan.sources_list.as_str()), (None, "# mine"));
        assert_eq!(
            line(&plan, Right::Root),
            "env DEBIAN_FRONTEND=noninteractive apt-get -c /c/apt.conf install -y \
             --no-install-recommends qemu-system-x86 fio"
        );
    }

    #[test]
    fn qemu_follows_its_parts_to_backports() {
        let plan = plan(&NEEDS[..1], &facts(BPO, MAIN)).unwrap();
        assert_eq!(plan.suite.as_deref(), Some("bookworm-backports"));
        assert_eq!(
            plan.sources_list,
            "# mine\ndeb [signed-by=/k.gpg] http://m.example/debian bookworm-backports main\n"
        );
        let command = line(&plan, Right::Sudo);
        assert!(command.starts_with("sudo -n env "), "{command}");
        assert!(command.ends_with(" -t bookworm-backports qemu-system-x86"), "{command}");
        assert!(line(&plan, Right::None).starts_with("sudo apt-get -c "));
    }

    #[test]
    fn a_suite_that_is_served_is_not_added_again() {
        let sources = format!("{MAIN}deb http://m.example/debian bookworm-backports main\n");
        let plan = plan(&NEEDS, &facts(BPO, &sources)).unwrap();
        assert_eq!(plan.sources_list, "# mine");
        assert!(plan.suite.is_some());
    }

    #[test]
    fn fio_alone_does_not_need_backports() {
        assert_eq!(plan(&NEEDS[1..], &facts(BPO, MAIN)).unwrap().suite, None);
    }

    #[test]
    fn an_embedded_key_is_replaced_by_the_keyring() {
        let mut facts = facts(BPO, MAIN);
        facts.sources[0].signed_by = Some("\n -----BEGIN".into());
        let plan = plan(&NEEDS, &facts).unwrap();
        assert!(plan.sources_list.contains("[signed-by=/k.gpg]"), "{}", plan.sources_list);
    }

    #[test]
    fn without_a_mirror_the_error_says_what_for() {
        let error = plan(&NEEDS, &facts(BPO, "")).unwrap_err();
        assert!(error.to_string().contains("qemu-utils"), "{error}");
    }
}
