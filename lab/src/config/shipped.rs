//! The configuration that travels inside `lab`, so that an installed one needs no checkout.

use super::problem::SourceFile;

macro_rules! shipped {
    ($name:ident: $($path:literal),* $(,)?) => {
        const $name: &[(&str, &str)] = &[$(($path, include_str!(concat!("../../../", $path)))),*];
    };
}

shipped! {
    FILES:
    "kernels/stock.toml",
    "scenarios/correctness/tree-passthrough.toml",
    "scenarios/correctness/tree.toml",
    "scenarios/perf/randread.toml",
    "scenarios/placement/each-cpu.toml",
    "scenarios/teardown/abort.toml",
    "scenarios/teardown/forced-umount.toml",
    "scenarios/teardown/server-killed.toml",
    "scenarios/topologies/1x2.toml",
    "scenarios/topologies/1x4.toml",
    "scenarios/topologies/2x2.toml",
    "scenarios/topologies/2x4-interleaved.toml",
    "scenarios/topologies/2x4.toml",
    "scenarios/topologies/4x2.toml",
    "scenarios/topologies/memless.toml",
    "scenarios/topologies/smt.toml",
    "scenarios/topologies/spare.toml",
}

shipped! {
    SNAPSHOTS:
    "snapshots/correctness/tree/any.snap",
    "snapshots/placement/each-cpu/1x2@submitting-cpu.snap",
    "snapshots/placement/each-cpu/1x4@submitting-cpu.snap",
    "snapshots/placement/each-cpu/2x2@submitting-cpu.snap",
    "snapshots/placement/each-cpu/2x4-interleaved@submitting-cpu.snap",
    "snapshots/placement/each-cpu/2x4@submitting-cpu.snap",
    "snapshots/placement/each-cpu/4x2@submitting-cpu.snap",
    "snapshots/placement/each-cpu/memless@submitting-cpu.snap",
    "snapshots/placement/each-cpu/smt@submitting-cpu.snap",
    "snapshots/placement/each-cpu/spare@submitting-cpu.snap",
}

/// Every shipped snapshot: path below the root of a project, and text.
pub fn snapshots() -> &'static [(&'static str, &'static str)] {
    SNAPSHOTS
}

/// Every shipped configuration file, sorted by path.
pub fn files() -> Vec<SourceFile> {
    FILES
        .iter()
        .map(|(path, text)| SourceFile { path: (*path).into(), text: (*text).into() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::load;

    /// Paths below `dirs` of the checkout with an extension, sorted.
    fn checkout(dirs: &[&str], extension: &str) -> Vec<String> {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut found: Vec<String> = dirs
            .iter()
            .flat_map(|dir| walkdir::WalkDir::new(root.join(dir)))
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.path().extension().is_some_and(|e| e == extension))
            .map(|entry| entry.path().strip_prefix(root).unwrap().display().to_string())
            .collect();
        found.sort();
        found
    }

    #[test]
    fn every_file_of_the_checkout_is_shipped() {
        let shipped: Vec<String> = files().into_iter().map(|file| file.path).collect();
        assert_eq!(shipped, checkout(&["kernels", "scenarios"], "toml"));
        let shipped: Vec<&str> = snapshots().iter().map(|(path, _)| *path).collect();
        assert_eq!(shipped, checkout(&["snapshots"], "snap"));
    }

    /// Files damaged at random are refused with words of the reader, or still make sense.
    #[test]
    fn damaged_files_are_refused_with_a_reason() {
        let mut state: u64 = 1;
        let mut random = move |below: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % below.max(1)
        };
        const PIECES: [&str; 10] = ["", "[", "]", "\"", "=", "\n", "ä", "-1", "[[step]]\n", "0"];
        let mut refused = 0;
        for mut file in files().into_iter().flat_map(|file| vec![file; 40]) {
            for _ in 0..=random(3) {
                let at = random(file.text.len());
                let to = (at + random(12)).min(file.text.len());
                if file.text.is_char_boundary(at) && file.text.is_char_boundary(to) {
                    file.text.replace_range(at..to, PIECES[random(PIECES.len())]);
                }
            }
            if let Err(errors) = load(std::slice::from_ref(&file)) {
                refused += 1;
                let text = errors.render(false);
                assert!(text.contains(&file.path), "{text}");
                assert!(!text.contains("cannot be understood"), "{text}\n{}", file.text);
            }
        }
        assert!(refused > 200, "only {refused} were refused");
    }

    #[test]
    fn every_shipped_file_loads() {
        let project = load(&files()).unwrap_or_else(|e| panic!("{}", e.render(false)));
        assert_eq!(project.kernels.len(), 1);
        assert_eq!(project.topologies.len(), 9);
        assert_eq!(project.scenarios.len(), 7);
        let spare = &project.topologies["spare"];
        assert_eq!((spare.cpus, spare.max_cpus), (4, 8));
        assert_eq!(project.topologies["memless"].nodes[1].memory_bytes, 0);
        assert_eq!(project.topologies["smt"].core_of(1), 0);
        assert_eq!(project.topologies["2x4-interleaved"].node_of(3), Some(1));
    }
}
