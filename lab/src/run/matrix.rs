//! Other configurations that each patch of a series must build in.

use tokio_util::sync::CancellationToken;

use crate::host::setup;
use crate::kernel::build::{BuildError, Builder, Stage, files_of_patch};
use crate::kernel::recipe::{Fragment, Patch, Recipe};

/// Name and lines of each configuration. All of them are linked: some errors show only there.
const CONFIGURATIONS: [(&str, &str); 4] = [
    (
        "NUMA=n",
        "# CONFIG_NUMA is not set\n# CONFIG_X86_64_ACPI_NUMA is not set\n# CONFIG_ACPI_HMAT is not set\n",
    ),
    ("FUSE_IO_URING=n", "# CONFIG_FUSE_IO_URING is not set\n"),
    ("FUSE_FS=m", "CONFIG_MODULES=y\nCONFIG_FUSE_FS=m\n"),
    ("CPUMASK_OFFSTACK=y", "CONFIG_DEBUG_PER_CPU_MAPS=y\nCONFIG_CPUMASK_OFFSTACK=y\n"),
];

/// Builds the recipe in every configuration; what failed, a line each, with the first error.
pub(super) async fn check(
    builder: &Builder<'_>,
    recipe: &Recipe,
    patch: &Patch,
    cancel: &CancellationToken,
) -> Result<Vec<String>, BuildError> {
    let mut missed = Vec::new();
    for (name, lines) in CONFIGURATIONS {
        let mut other = recipe.clone();
        other.name = format!("{} with {name}", recipe.name);
        other.fragments.push(Fragment { name: name.into(), text: lines.into() });
        note(&mut missed, name, builder.build(&other, cancel).await.map(drop))?;
    }
    let places = directories(patch);
    let checks: [(&str, &[&str]); 2] = [("W=1", &["W=1"]), ("sparse", &["C=2"])];
    for (name, args) in checks {
        if name == "sparse" && setup::find("sparse").is_none() {
            continue; // `lab series --help` says that it is used where it is installed
        }
        let said = builder.check(recipe, args, &places, cancel).await;
        match said {
            Ok(lines) => missed.extend(lines.into_iter().map(|line| format!("{name}: {line}"))),
            Err(error) => note(&mut missed, name, Err(error))?,
        }
    }
    Ok(missed)
}

fn note(
    missed: &mut Vec<String>,
    name: &str,
    end: Result<(), BuildError>,
) -> Result<(), BuildError> {
    match end {
        Err(error) if error.stage() != Stage::Host => {
            let text = error.to_string();
            let line = text.lines().find(|l| l.contains("error")).or(text.lines().next());
            missed.push(format!("{name}: {}", line.unwrap_or_default()));
            Ok(())
        }
        other => other,
    }
}

/// Directories of the C files that a patch touches, as make takes them.
fn directories(patch: &Patch) -> Vec<String> {
    let files = files_of_patch(patch).unwrap_or_default();
    let sources = files.iter().filter(|file| file.ends_with(".c") || file.ends_with(".h"));
    let mut dirs: Vec<String> = sources
        .filter_map(|file| file.rsplit_once('/').map(|(dir, _)| format!("{dir}/")))
        .filter(|dir| !dir.starts_with("include/"))
        .collect();
    dirs.sort();
    dirs.dedup();
    dirs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Fetch;
    use crate::kernel::bzimage::tests::sample;
    use crate::kernel::recipe::Source;

    /// A toy that takes every option, and whose `fs/b.c` does not do without NUMA.
    const MAKEFILE: &str = "
allnoconfig:
\t@cp $(KCONFIG_ALLCONFIG) $(O)/.config
bzImage:
\t@mkdir -p $(O)/arch/x86/boot; touch $(O)/System.map
\t@if grep -q 'NUMA is not set' $(O)/.config && grep -q numa fs/b.c; then \\
\t  echo '$(CURDIR)/fs/b.c:1:1: error: no nodes here'; exit 1; fi
\t@cp sample.bin $(O)/arch/x86/boot/bzImage
modules: bzImage
\t@if ! grep -q FUSE_FS=m $(O)/.config; then exit 1; fi
.PHONY: fs/
fs/:
\t@if [ \"$(W)\" = 1 ]; then echo '$(CURDIR)/fs/b.c:2:1: warning: it is doubtful'; fi
";

    #[tokio::test]
    async fn each_configuration_that_fails_is_told_with_its_first_error() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("linux");
        std::fs::create_dir_all(tree.join("fs")).unwrap();
        std::fs::write(tree.join("Makefile"), MAKEFILE).unwrap();
        std::fs::write(tree.join("Kconfig"), "").unwrap();
        std::fs::write(tree.join("fs/b.c"), "b one\n").unwrap();
        std::fs::write(tree.join("sample.bin"), sample("7.3.4 (x) #1")).unwrap();
        let text = "--- a/fs/b.c\n+++ b/fs/b.c\n@@ -1 +1 @@\n-b one\n+b numa\n";
        let patch = Patch { name: "0001-b.patch".into(), text: text.as_bytes().into() };
        let lean = Fragment { name: "lean".into(), text: "CONFIG_A=y\n".into() };
        let recipe = Recipe {
            name: "toy".into(),
            source: Source::Directory(tree),
            patches: vec![patch.clone()],
            fragments: vec![lean],
        };
        let cache = dir.path().join("cache");
        let builder = Builder::new(&cache, Fetch::Auto, &|_| ());
        let missed = check(&builder, &recipe, &patch, &CancellationToken::new()).await.unwrap();
        let missed: Vec<&str> = missed.iter().map(String::as_str).collect();
        assert_eq!(
            missed[..2],
            ["NUMA=n: fs/b.c:1:1: error: no nodes here", "W=1: fs/b.c:2: it is doubtful"]
        );
        // Sparse is there or not.
        assert!(missed.len() <= 3, "{missed:?}");
    }
}
