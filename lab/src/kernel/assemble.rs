//! From an entry to a recipe: the patches that it names are read here.

use tokio_util::sync::CancellationToken;

use super::recipe::Recipe;
use super::series::{self, SeriesError};
use crate::config::kernel::BuildSpec;

/// The recipe of an entry called `name`.
///
/// # Errors
///
/// [`SeriesError`], also for a series with fewer patches than the entry counts.
pub async fn recipe(
    name: &str,
    spec: &BuildSpec,
    cancel: &CancellationToken,
) -> Result<Recipe, SeriesError> {
    let mut patches = Vec::new();
    for part in &spec.series {
        let found = series::read(&part.place, cancel).await?;
        let count = part.patches.unwrap_or(found.patches.len());
        if count > found.patches.len() {
            let why =
                format!("kernel {name} wants {count} patches, it has {}", found.patches.len());
            return Err(SeriesError::Wrong { name: found.name, why });
        }
        patches.extend(found.patches.into_iter().take(count));
    }
    let (source, fragments) = (spec.source.clone(), spec.fragments.clone());
    Ok(Recipe { name: name.to_owned(), source, patches, fragments })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::kernel::KernelSource;
    use crate::config::load::load;
    use crate::config::shipped;

    #[tokio::test]
    async fn every_shipped_entry_that_is_built_has_a_recipe() {
        let project = load(&shipped::files()).unwrap();
        let mut patches = std::collections::BTreeMap::new();
        for (name, entry) in &project.kernels {
            let KernelSource::Built(spec) = &entry.source else { continue };
            // Without a project on disk the shipped patches stand in, as in an installed lab.
            let mut spec = spec.clone();
            for part in &mut spec.series {
                if let crate::config::kernel::SeriesPlace::Path(path) = &part.place {
                    let name = shipped::series_of(path).unwrap().to_owned();
                    part.place = crate::config::kernel::SeriesPlace::Shipped(name);
                }
            }
            let recipe = recipe(name, &spec, &CancellationToken::new()).await.unwrap();
            patches.insert(name.clone(), recipe.patches.len());
        }
        assert_eq!(patches["v7.3"], 0);
        assert_eq!((patches["v4-6of8"], patches["v4-patched"]), (6, 8));
        assert_eq!((patches["rfc2"], patches["knob-random"], patches.len()), (2, 3, 18));
    }
}
