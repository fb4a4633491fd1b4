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
