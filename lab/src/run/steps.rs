//! The kernels of a series, one for each patch, as entries of a project: made anew, or from the
//! copy of the patches that a record keeps.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::events::{Event, Record};
use crate::config::kernel::{BuildSpec, KernelEntry, KernelSource, SeriesPlace, SeriesSpec};
use crate::config::load::Project;

/// Directory of a run that holds the patches of its series, one directory a series.
const DIR: &str = "series";

/// Where the record of a run keeps the patches of a series.
pub(super) fn kept(run_dir: &Path, series: &str) -> PathBuf {
    run_dir.join(DIR).join(series)
}

/// The name of a step's kernel: `v4-3of8`.
pub(super) fn name(series: &str, number: usize, of: usize) -> String {
    format!("{series}-{number}of{of}")
}

/// The entry of `base` with the first `number` patches in `dir`. It claims no queue policy: a
/// part of a series is judged by rules and against the base.
pub(super) fn entry(
    base: &KernelEntry,
    dir: &Path,
    series: &str,
    (number, of): (usize, usize),
) -> Result<KernelEntry, String> {
    let KernelSource::Built(build) = &base.source else {
        return Err(format!(
            "`{}` is prebuilt, patches cannot be applied to it; name an entry with a [source], \
             such as v7.3",
            base.name
        ));
    };
    let place = SeriesPlace::Path(dir.to_owned());
    let mut series_of: Vec<SeriesSpec> = build.series.clone();
    series_of.push(SeriesSpec { place, patches: Some(number) });
    Ok(KernelEntry {
        name: name(series, number, of),
        summary: format!("{series} up to patch {number} of {of}, onto {}", base.name),
        source: KernelSource::Built(BuildSpec { series: series_of, ..build.clone() }),
        vmlinux: None,
        cmdline: base.cmdline.clone(),
        queue_policy: None,
        offers: base.offers.clone(),
    })
}

/// The project with the kernels of the series that a run recorded.
pub(super) fn of_record(project: &Project, records: &[Record], run_dir: &Path) -> Project {
    let mut project = project.clone();
    for record in records {
        let Event::SeriesPlanned { series, onto, patches, .. } = &record.event else { continue };
        // A base that is gone is told when the kernels are looked up.
        let Ok(base) = crate::plan::kernel(&project, onto) else { continue };
        for number in 1..=patches.len() {
            let dir = kept(run_dir, series);
            if let Ok(entry) = entry(&base, &dir, series, (number, patches.len())) {
                project.kernels.insert(entry.name.clone(), Arc::new(entry));
            }
        }
    }
    project
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::load;
    use crate::config::shipped;
    use crate::run::samples;

    #[test]
    fn a_record_brings_its_kernels_back() {
        let project = load(&shipped::files()).unwrap();
        let planned = samples::at(Event::SeriesPlanned {
            series: "topic".into(),
            onto: "v7.3".into(),
            chosen: "given".into(),
            patches: vec!["a".into(), "b".into()],
        });
        let with = of_record(&project, &[planned], Path::new("/run"));
        let entry = &with.kernels["topic-2of2"];
        let KernelSource::Built(build) = &entry.source else { panic!("{entry:?}") };
        let place = SeriesPlace::Path("/run/series/topic".into());
        assert_eq!(build.series, [SeriesSpec { place, patches: Some(2) }]);
        assert_eq!(with.kernels.len(), project.kernels.len() + 2);
        let stock = entry_of(&project, "stock").unwrap_err();
        assert!(stock.contains("prebuilt"), "{stock}");
    }

    fn entry_of(project: &Project, base: &str) -> Result<KernelEntry, String> {
        entry(&project.kernels[base], Path::new("/x"), "t", (1, 1))
    }
}
