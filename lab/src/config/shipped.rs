//! The configuration that travels inside `lab`, so that an installed one needs no checkout.

use super::problem::SourceFile;

macro_rules! shipped {
    ($name:ident: $($path:literal),* $(,)?) => {
        const $name: &[(&str, &str)] = &[$(($path, include_str!(concat!("../../../", $path)))),*];
    };
}

shipped! {
    FILES:
    "kernels/fragments/debug.config",
    "kernels/fragments/kasan.config",
    "kernels/fragments/kcsan.config",
    "kernels/fragments/lean.config",
    "kernels/knob-next-cpu.toml",
    "kernels/knob-off.toml",
    "kernels/knob-other-core.toml",
    "kernels/knob-other-node.toml",
    "kernels/knob-random.toml",
    "kernels/knob-same-node.toml",
    "kernels/rfc2.toml",
    "kernels/stock.toml",
    "kernels/v4-1of8.toml",
    "kernels/v4-2of8.toml",
    "kernels/v4-3of8.toml",
    "kernels/v4-4of8.toml",
    "kernels/v4-5of8.toml",
    "kernels/v4-6of8.toml",
    "kernels/v4-7of8.toml",
    "kernels/v4-8of8.toml",
    "kernels/v4-patched.toml",
    "kernels/v5-candidate.toml",
    "kernels/v7.3.toml",
    "scenarios/correctness/host-userland.toml",
    "scenarios/correctness/tree-passthrough.toml",
    "scenarios/correctness/tree.toml",
    "scenarios/perf/randread.toml",
    "scenarios/placement/background-fewer.toml",
    "scenarios/placement/background.toml",
    "scenarios/placement/each-cpu.toml",
    "scenarios/placement/fewer-queues.toml",
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
    PATCHES:
    "kernels/series/knob/0001-fuse-io-uring-choose-the-CPU-that-serves-a-request-i.patch",
    "kernels/series/knob/0002-fuse-io-uring-parameter-for-whose-queue-serves-backg.patch",
    "kernels/series/knob/0003-fuse-io-uring-document-uring_bg_policy.patch",
    "kernels/series/rfc2/0001-fuse-mark-asynchronous-requests-that-are-waited-for.patch",
    "kernels/series/rfc2/0002-fuse-io-uring-send-asynchronous-requests-to-the-queu.patch",
    "kernels/series/v4/0001-fuse-io-uring-rename-nr_queues-to-max_nr_queues.patch",
    "kernels/series/v4/0002-fuse-io-uring-count-the-requests-of-each-queue.patch",
    "kernels/series/v4/0003-fuse-io-uring-map-CPUs-to-queues-globally-and-per-NU.patch",
    "kernels/series/v4/0004-fuse-io-uring-select-the-queue-by-the-map-of-the-nod.patch",
    "kernels/series/v4/0005-fuse-io-uring-let-a-server-register-fewer-queues-tha.patch",
    "kernels/series/v4/0006-fuse-io-uring-queue-background-requests-on-the-next-.patch",
    "kernels/series/v4/0007-fuse-io-uring-try-the-queues-of-further-CPUs-when-on.patch",
    "kernels/series/v4/0008-fuse-io-uring-show-the-map-of-CPUs-to-queues-in-fuse.patch",
    "kernels/series/v5/0001-fuse-io-uring-rename-nr_queues-to-max_nr_queues.patch",
    "kernels/series/v5/0002-fuse-io-uring-count-the-requests-of-each-queue.patch",
    "kernels/series/v5/0003-fuse-io-uring-map-CPUs-to-queues-globally-and-per-NU.patch",
    "kernels/series/v5/0004-fuse-io-uring-select-the-queue-by-the-map-of-the-nod.patch",
    "kernels/series/v5/0005-fuse-io-uring-let-a-server-register-fewer-queues-tha.patch",
    "kernels/series/v5/0006-fuse-io-uring-queue-background-requests-on-the-next-.patch",
    "kernels/series/v5/0007-fuse-io-uring-try-further-queues-of-the-node-when-on.patch",
    "kernels/series/v5/0008-fuse-io-uring-show-the-map-of-CPUs-to-queues-in-fuse.patch",
}

shipped! {
    SNAPSHOTS:
    "snapshots/correctness/tree/any.snap",
    "snapshots/placement/background-fewer/1x4@next-cpu.snap",
    "snapshots/placement/background-fewer/1x4@same-node.snap",
    "snapshots/placement/background-fewer/2x2@next-cpu.snap",
    "snapshots/placement/background-fewer/2x2@same-node.snap",
    "snapshots/placement/background-fewer/2x4-interleaved@next-cpu.snap",
    "snapshots/placement/background-fewer/2x4-interleaved@same-node.snap",
    "snapshots/placement/background-fewer/2x4@next-cpu.snap",
    "snapshots/placement/background-fewer/2x4@same-node.snap",
    "snapshots/placement/background-fewer/4x2@next-cpu.snap",
    "snapshots/placement/background-fewer/4x2@same-node.snap",
    "snapshots/placement/background-fewer/memless@next-cpu.snap",
    "snapshots/placement/background-fewer/memless@same-node.snap",
    "snapshots/placement/background-fewer/smt@next-cpu.snap",
    "snapshots/placement/background-fewer/smt@same-node.snap",
    "snapshots/placement/background-fewer/spare@next-cpu.snap",
    "snapshots/placement/background-fewer/spare@same-node.snap",
    "snapshots/placement/background/1x2@next-cpu.snap",
    "snapshots/placement/background/1x2@other-core.snap",
    "snapshots/placement/background/1x2@other-node.snap",
    "snapshots/placement/background/1x2@same-node.snap",
    "snapshots/placement/background/1x2@submitting-cpu.snap",
    "snapshots/placement/background/1x4@next-cpu.snap",
    "snapshots/placement/background/1x4@other-core.snap",
    "snapshots/placement/background/1x4@other-node.snap",
    "snapshots/placement/background/1x4@same-node.snap",
    "snapshots/placement/background/1x4@submitting-cpu.snap",
    "snapshots/placement/background/2x2@next-cpu.snap",
    "snapshots/placement/background/2x2@other-core.snap",
    "snapshots/placement/background/2x2@other-node.snap",
    "snapshots/placement/background/2x2@same-node.snap",
    "snapshots/placement/background/2x2@submitting-cpu.snap",
    "snapshots/placement/background/2x4-interleaved@next-cpu.snap",
    "snapshots/placement/background/2x4-interleaved@other-core.snap",
    "snapshots/placement/background/2x4-interleaved@other-node.snap",
    "snapshots/placement/background/2x4-interleaved@same-node.snap",
    "snapshots/placement/background/2x4-interleaved@submitting-cpu.snap",
    "snapshots/placement/background/2x4@next-cpu.snap",
    "snapshots/placement/background/2x4@other-core.snap",
    "snapshots/placement/background/2x4@other-node.snap",
    "snapshots/placement/background/2x4@same-node.snap",
    "snapshots/placement/background/2x4@submitting-cpu.snap",
    "snapshots/placement/background/4x2@next-cpu.snap",
    "snapshots/placement/background/4x2@other-core.snap",
    "snapshots/placement/background/4x2@other-node.snap",
    "snapshots/placement/background/4x2@same-node.snap",
    "snapshots/placement/background/4x2@submitting-cpu.snap",
    "snapshots/placement/background/memless@next-cpu.snap",
    "snapshots/placement/background/memless@other-core.snap",
    "snapshots/placement/background/memless@other-node.snap",
    "snapshots/placement/background/memless@same-node.snap",
    "snapshots/placement/background/memless@submitting-cpu.snap",
    "snapshots/placement/background/smt@next-cpu.snap",
    "snapshots/placement/background/smt@other-core.snap",
    "snapshots/placement/background/smt@other-node.snap",
    "snapshots/placement/background/smt@same-node.snap",
    "snapshots/placement/background/smt@submitting-cpu.snap",
    "snapshots/placement/background/spare@next-cpu.snap",
    "snapshots/placement/background/spare@other-core.snap",
    "snapshots/placement/background/spare@other-node.snap",
    "snapshots/placement/background/spare@same-node.snap",
    "snapshots/placement/background/spare@submitting-cpu.snap",
    "snapshots/placement/each-cpu/1x2@next-cpu.snap",
    "snapshots/placement/each-cpu/1x2@other-core.snap",
    "snapshots/placement/each-cpu/1x2@other-node.snap",
    "snapshots/placement/each-cpu/1x2@same-node.snap",
    "snapshots/placement/each-cpu/1x2@submitting-cpu.snap",
    "snapshots/placement/each-cpu/1x4@next-cpu.snap",
    "snapshots/placement/each-cpu/1x4@other-core.snap",
    "snapshots/placement/each-cpu/1x4@other-node.snap",
    "snapshots/placement/each-cpu/1x4@same-node.snap",
    "snapshots/placement/each-cpu/1x4@submitting-cpu.snap",
    "snapshots/placement/each-cpu/2x2@next-cpu.snap",
    "snapshots/placement/each-cpu/2x2@other-core.snap",
    "snapshots/placement/each-cpu/2x2@other-node.snap",
    "snapshots/placement/each-cpu/2x2@same-node.snap",
    "snapshots/placement/each-cpu/2x2@submitting-cpu.snap",
    "snapshots/placement/each-cpu/2x4-interleaved@next-cpu.snap",
    "snapshots/placement/each-cpu/2x4-interleaved@other-core.snap",
    "snapshots/placement/each-cpu/2x4-interleaved@other-node.snap",
    "snapshots/placement/each-cpu/2x4-interleaved@same-node.snap",
    "snapshots/placement/each-cpu/2x4-interleaved@submitting-cpu.snap",
    "snapshots/placement/each-cpu/2x4@next-cpu.snap",
    "snapshots/placement/each-cpu/2x4@other-core.snap",
    "snapshots/placement/each-cpu/2x4@other-node.snap",
    "snapshots/placement/each-cpu/2x4@same-node.snap",
    "snapshots/placement/each-cpu/2x4@submitting-cpu.snap",
    "snapshots/placement/each-cpu/4x2@next-cpu.snap",
    "snapshots/placement/each-cpu/4x2@other-core.snap",
    "snapshots/placement/each-cpu/4x2@other-node.snap",
    "snapshots/placement/each-cpu/4x2@same-node.snap",
    "snapshots/placement/each-cpu/4x2@submitting-cpu.snap",
    "snapshots/placement/each-cpu/memless@next-cpu.snap",
    "snapshots/placement/each-cpu/memless@other-core.snap",
    "snapshots/placement/each-cpu/memless@other-node.snap",
    "snapshots/placement/each-cpu/memless@same-node.snap",
    "snapshots/placement/each-cpu/memless@submitting-cpu.snap",
    "snapshots/placement/each-cpu/smt@next-cpu.snap",
    "snapshots/placement/each-cpu/smt@other-core.snap",
    "snapshots/placement/each-cpu/smt@other-node.snap",
    "snapshots/placement/each-cpu/smt@same-node.snap",
    "snapshots/placement/each-cpu/smt@submitting-cpu.snap",
    "snapshots/placement/each-cpu/spare@next-cpu.snap",
    "snapshots/placement/each-cpu/spare@other-core.snap",
    "snapshots/placement/each-cpu/spare@other-node.snap",
    "snapshots/placement/each-cpu/spare@same-node.snap",
    "snapshots/placement/each-cpu/spare@submitting-cpu.snap",
    "snapshots/placement/fewer-queues/2x2.snap",
    "snapshots/placement/fewer-queues/2x4-interleaved.snap",
    "snapshots/placement/fewer-queues/2x4.snap",
    "snapshots/placement/fewer-queues/4x2.snap",
    "snapshots/placement/fewer-queues/memless.snap",
    "snapshots/placement/fewer-queues/smt.snap",
    "snapshots/placement/fewer-queues/spare.snap",
}

/// Every shipped snapshot: path below the root of a project, and text.
pub fn snapshots() -> &'static [(&'static str, &'static str)] {
    SNAPSHOTS
}

/// The patches of a series below `kernels/series`, in order: file name and text.
pub fn series(name: &str) -> Vec<(&'static str, &'static str)> {
    let inside = |path: &'static str| {
        let (series, file) = path.strip_prefix("kernels/series/")?.split_once('/')?;
        (series == name).then_some(file)
    };
    PATCHES.iter().filter_map(|(path, text)| Some((inside(path)?, *text))).collect()
}

/// The shipped series that a path names, as in `kernels/series/v4`.
pub fn series_of(path: &std::path::Path) -> Option<&str> {
    let name = path.strip_prefix("kernels/series").ok()?.to_str()?;
    (!name.is_empty() && !series(name).is_empty()).then_some(name)
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
        let mut files = checkout(&["kernels", "scenarios"], "toml");
        files.extend(checkout(&["kernels"], "config"));
        files.sort();
        assert_eq!(shipped, files);
        let shipped: Vec<&str> = PATCHES.iter().map(|(path, _)| *path).collect();
        assert_eq!(shipped, checkout(&["kernels"], "patch"));
        let shipped: Vec<&str> = snapshots().iter().map(|(path, _)| *path).collect();
        assert_eq!(shipped, checkout(&["snapshots"], "snap"));
    }

    /// allnoconfig turns off what is on by default: a sanitizer that is built in and never runs
    /// finds nothing, without a word.
    #[test]
    fn sanitizers_are_on_from_the_boot() {
        let project = load(&files()).unwrap();
        for (flavour, option) in [
            ("kcsan", "KCSAN_EARLY_ENABLE"),
            ("kasan", "KASAN_GENERIC"),
            ("kasan", "DEBUG_KMEMLEAK_AUTO_SCAN"),
        ] {
            let text = &project.flavours[flavour].fragment.text;
            let line = format!("CONFIG_{option}=y");
            assert!(text.lines().any(|found| found == line), "{flavour} lacks {line}");
        }
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
        assert_eq!(project.kernels.len(), 19);
        assert_eq!(project.topologies.len(), 9);
        assert_eq!(project.scenarios.len(), 11);
        let spare = &project.topologies["spare"];
        assert_eq!((spare.cpus, spare.max_cpus), (4, 8));
        assert_eq!(project.topologies["memless"].nodes[1].memory_bytes, 0);
        assert_eq!(project.topologies["smt"].core_of(1), 0);
        assert_eq!(project.topologies["2x4-interleaved"].node_of(3), Some(1));
    }
}
