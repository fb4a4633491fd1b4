//! Kernels that a Debian archive offers, from what apt prints; pure.
//!
//! Packages of one kernel differ over time: all in linux-image; the signed image apart in
//! linux-binary; or image, base files and modules in a package each. Whatever exists of one
//! release and version is taken together.

use std::collections::{BTreeMap, BTreeSet};

use super::version;

/// Parts that a kernel may be split into. One of the first two holds the image.
const PARTS: [&str; 4] = ["image", "binary", "base", "modules"];

/// One kernel on offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Release, e.g. `7.3.4+deb13-cloud-amd64`.
    pub release: String,
    /// Package version.
    pub version: String,
    /// Suite it is in.
    pub suite: String,
    /// Its packages as `name=version`.
    pub packages: Vec<String>,
}

/// Whether `flavour` can be a Debian kernel flavour, e.g. `cloud-amd64`.
pub fn is_flavour(flavour: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !flavour.is_empty() && flavour.chars().all(plain)
}

/// Expression that finds the packages of a flavour by name.
pub fn pattern(flavour: &str) -> String {
    format!("^linux-({})-[0-9].*-{flavour}$", PARTS.join("|"))
}

/// The kernels of a flavour in the output of `apt-cache madison`, newest first.
pub fn candidates(madison: &str, flavour: &str) -> Vec<Candidate> {
    let mut kernels: BTreeMap<(String, String), (String, BTreeSet<String>)> = BTreeMap::new();
    for row in madison.lines().filter_map(|line| Row::parse(line, flavour)) {
        let (_, parts) = kernels
            .entry((row.release, row.version))
            .or_insert_with(|| (row.suite, BTreeSet::new()));
        parts.insert(row.part);
    }
    let mut found: Vec<Candidate> = kernels
        .into_iter()
        .filter(|(_, (_, parts))| parts.contains("image") || parts.contains("binary"))
        .map(|((release, version), (suite, parts))| {
            let package = |part: &String| format!("linux-{part}-{release}={version}");
            let packages = parts.iter().map(package).collect();
            Candidate { release, version, suite, packages }
        })
        .collect();
    found.sort_by(|a, b| version::compare(&b.version, &a.version));
    found
}

struct Row {
    part: String,
    release: String,
    version: String,
    suite: String,
}

impl Row {
    /// `linux-image-R | version | uri suite/component arch Packages`.
    fn parse(line: &str, flavour: &str) -> Option<Row> {
        let mut columns = line.split(" | ").map(str::trim);
        let (name, version, place) = (columns.next()?, columns.next()?, columns.next()?);
        if !place.ends_with("Packages") {
            return None;
        }
        let suite = place.split_whitespace().nth(1)?.rsplit_once('/')?.0;
        let (part, release) = name.strip_prefix("linux-")?.split_once('-')?;
        let upstream = release.strip_suffix(flavour)?.strip_suffix('-')?;
        // `amd64` ends the names of other flavours too: `7.3.4-cloud-amd64`.
        let is_upstream = upstream
            .split('-')
            .all(|word| word.starts_with(|c: char| c.is_ascii_digit()) || word.starts_with("rc"));
        if !(PARTS.contains(&part) && is_upstream) || release.contains('/') {
            return None;
        }
        Some(Row {
            part: part.to_owned(),
            release: release.to_owned(),
            version: version.to_owned(),
            suite: suite.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, version: &str, suite: &str) -> String {
        format!(" {name} | {version} | http://m.example/debian {suite}/main amd64 Packages\n")
    }

    #[test]
    fn every_shape_is_found_newest_first() {
        let bpo = "trixie-backports";
        let text = [
            row("linux-image-6.12.107+deb13-cloud-amd64", "6.12.107-1", "trixie"),
            row("linux-image-7.0.9+deb13-cloud-amd64", "7.0.9-1~bpo13+1", bpo),
            row("linux-binary-7.0.9+deb13-cloud-amd64", "7.0.9-1~bpo13+1", bpo),
            row("linux-image-7.0.10+deb13-cloud-amd64", "7.0.10-1~bpo13+1", bpo),
            row("linux-binary-7.0.10+deb13-cloud-amd64", "7.0.10-1~bpo13+1", bpo),
            row("linux-base-7.3.4+deb13-cloud-amd64", "7.3.4-1~bpo13+1", bpo),
            row("linux-binary-7.3.4+deb13-cloud-amd64", "7.3.4-1~bpo13+1", bpo),
            row("linux-image-7.3.4+deb13-cloud-amd64", "7.3.4-1~bpo13+1", bpo),
            row("linux-modules-7.3.4+deb13-cloud-amd64", "7.3.4-1~bpo13+1", bpo),
        ]
        .concat();
        let found = candidates(&text, "cloud-amd64");
        let releases: Vec<_> = found.iter().map(|c| c.release.as_str()).collect();
        assert_eq!(
            releases,
            [
                "7.3.4+deb13-cloud-amd64",
                "7.0.10+deb13-cloud-amd64",
                "7.0.9+deb13-cloud-amd64",
                "6.12.107+deb13-cloud-amd64"
            ]
        );
        assert_eq!(found[0].packages.len(), 4);
        assert_eq!(found[0].suite, bpo);
        assert_eq!(
            found[1].packages,
            [
                "linux-binary-7.0.10+deb13-cloud-amd64=7.0.10-1~bpo13+1",
                "linux-image-7.0.10+deb13-cloud-amd64=7.0.10-1~bpo13+1"
            ]
        );
        assert_eq!(found[3].packages, ["linux-image-6.12.107+deb13-cloud-amd64=6.12.107-1"]);
    }

    #[test]
    fn other_flavours_parts_and_sources_are_left_out() {
        let text = [
            row("linux-image-7.3.4+deb13-cloud-amd64", "7.3.4-1", "sid"),
            row("linux-image-7.3.4+deb13-rt-amd64", "7.3.4-1", "sid"),
            row("linux-headers-7.3.4+deb13-amd64", "7.3.4-1", "sid"),
            row("linux-image-7.3.4+deb13-amd64-unsigned", "7.3.4-1", "sid"),
            row("linux-modules-7.3.3+deb13-amd64", "7.3.3-1", "sid"),
            " linux-image-7.3.4+deb13-amd64 | 7.3.4-1 | http://m.example/d sid/main Sources\n"
                .into(),
            "garbage\n".into(),
        ]
        .concat();
        assert_eq!(candidates(&text, "amd64"), []);
        let old = row("linux-image-6.1.0-35-amd64", "6.1.137-1", "bookworm");
        assert_eq!(candidates(&old, "amd64")[0].release, "6.1.0-35-amd64");
    }

    #[test]
    fn a_flavour_cannot_hold_an_expression() {
        assert!(is_flavour("cloud-amd64"));
        assert!(!is_flavour("cloud.*"));
        assert!(!is_flavour(""));
        assert_eq!(pattern("rt"), "^linux-(image|binary|base|modules)-[0-9].*-rt$");
    }
}
