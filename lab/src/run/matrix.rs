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
