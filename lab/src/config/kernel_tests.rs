//! Kernel entries: what is read, and what is refused with which words.

use super::*;
use crate::config::problem::ConfigErrors;

fn try_read(text: &str) -> Result<KernelEntry, String> {
    let file = SourceFile { path: "kernels/k.toml".into(), text: text.into() };
    let read = read("k", &file);
    read.map(|raw| raw.entry).map_err(|problems| ConfigErrors { files: vec![problems] }.to_string())
}

#[test]
fn both_sources_are_read() {
    let text =
        "summary = 's'\npath = '../linux'\nkernel-args = ['a=b']\nqueue-policy = 'next-cpu'\n";
    let entry = try_read(text).unwrap();
    assert_eq!(entry.source, KernelSource::Path("../linux".into()));
    assert_eq!((entry.cmdline, entry.queue_policy), (vec!["a=b".into()], Some("next-cpu".into())));
    let text = "summary = 's'\n[debian]\nsuites = ['sid']\nflavour = 'cloud-amd64'\n";
    let KernelSource::Debian { suites, requires, .. } = try_read(text).unwrap().source else {
        panic!("no Debian kernel")
    };
    assert_eq!((suites, requires), (vec!["sid".to_string()], Vec::new()));
}

#[test]
fn exactly_one_source_is_given() {
    let debian = "[debian]\nsuites = ['sid']\nflavour = 'f'\n";
    let message = try_read(&format!("summary = 's'\npath = 'p'\n{debian}")).unwrap_err();
    assert_eq!(message, "kernels/k.toml:2:8: `path` and [debian] exclude each other\n");
    let message = try_read("summary = 's'\n").unwrap_err();
    assert_eq!(message, "kernels/k.toml:1:1: no source of the kernel\n");
    // A source that is wrong is not also missing.
    let message = try_read("summary = 's'\npath = 1\n").unwrap_err();
    assert_eq!(message, "kernels/k.toml:2:8: `path` must be a string\n");
}

#[test]
fn names_that_reach_programs_are_plain() {
    let text = "summary = 's'\n[debian]\nsuites = ['-o', 'a b', 'x/updates']\nflavour = 'F'\n";
    insta::assert_snapshot!(try_read(text).unwrap_err(), @r"
kernels/k.toml:3:11: `-o` is no suite name
kernels/k.toml:3:17: `a b` is no suite name
kernels/k.toml:4:11: `flavour` must be a name: 1 to 64 of a-z, 0-9 and -, beginning with a letter or digit
");
    let text = "summary = 's'\n[debian]\nsuites = []\nflavour = 'f'\nrequires = ['CONFIG_A']\n";
    insta::assert_snapshot!(try_read(text).unwrap_err(), @r"
kernels/k.toml:3:10: `suites` must name at least one suite
kernels/k.toml:5:13: options are written without CONFIG_
");
}

fn build(text: &str) -> RawBuild {
    let text = format!("summary = 's'\n{text}");
    let file = SourceFile { path: "kernels/k.toml".into(), text };
    read("k", &file).unwrap().build.unwrap()
}

#[test]
fn sources_are_of_four_kinds() {
    let sha256 = "0123456789abcdef".repeat(4);
    let tarball = format!("[source]\ntarball = 'x.tar.xz'\nsha256 = '{sha256}'");
    let cases = [
        (
            "[source]\ndebian = 'linux-source-7.3'\nsuites = ['sid']",
            Source::Debian { package: "linux-source-7.3".into(), suites: vec!["sid".into()] },
        ),
        (
            "[source]\ngit = '../linux'\nrevision = 'v7.3'",
            Source::Git { dir: "../linux".into(), revision: "v7.3".into() },
        ),
        ("[source]\ndirectory = '../linux'", Source::Directory("../linux".into())),
        (&tarball, Source::Tarball { path: "x.tar.xz".into(), sha256 }),
    ];
    for (text, source) in cases {
        let Root::Source(found) = build(text).root else { panic!("{text}") };
        assert_eq!(found, source);
    }
}

#[test]
fn series_are_of_three_kinds() {
    let range = SeriesPlace::Git { dir: "../l".into(), range: "a..b".into() };
    for (text, place) in [
        ("'kernels/series/v4'", SeriesPlace::Path("kernels/series/v4".into())),
        ("'lore:<a@b>'", SeriesPlace::Lore("a@b".into())),
        ("{ git = '../l', range = 'a..b' }", range),
    ] {
        let series = build(&format!("base = 'b'\npatches = 6\nseries = {text}")).series;
        assert_eq!(series, Some(SeriesSpec { place, patches: Some(6) }));
    }
}

#[test]
fn all_that_is_wrong_with_a_build_is_told_at_once() {
    let text = "summary = 's'\npath = 'x'\npatches = 0\nserie = 'x'\n\
        [source]\ngit = 'x'\ndirectory = 'y'\n";
    insta::assert_snapshot!(try_read(text).unwrap_err(), @r"
kernels/k.toml:2:8: `path` and [source] exclude each other
kernels/k.toml:3:11: `patches` must be 1 to 1000
kernels/k.toml:3:11: `patches` is for kernels that are built, from [source] or `base`
kernels/k.toml:4:1: unknown key `serie`
kernels/k.toml:5:1: a source has exactly one place
");
    let text = "summary = 's'\nseries = { git = '../l', range = 'HEAD' }\nconfig = ['LEAN']\n\
        [source]\ntarball = 'x'\nsha256 = 'ABC'\n";
    insta::assert_snapshot!(try_read(text).unwrap_err(), @r"
kernels/k.toml:2:34: `range` is two commits, as in `v7.3..topic`
kernels/k.toml:3:11: entry must be a name: 1 to 64 of a-z, 0-9 and -, beginning with a letter or digit
kernels/k.toml:6:10: `sha256` must be 64 digits of 0-9 and a-f
");
    let text = "summary = 's'\nbase = 'b'\npatches = 1\n";
    insta::assert_snapshot!(try_read(text).unwrap_err(), @"kernels/k.toml:3:11: `patches` counts those of a `series`");
    let text = "summary = 's'\n[source]\ngit = 'x'\n";
    insta::assert_snapshot!(try_read(text).unwrap_err(), @"kernels/k.toml:2:1: missing key `revision`");
}
