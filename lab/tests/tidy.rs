//! Style held by a test: what a reviewer would otherwise say again and again.
//!
//! Each rule is a function from a file to complaints, so that every rule can be shown to fail.

use std::path::{Path, PathBuf};

const MAX_FILE_LINES: usize = 500;
const MAX_FUNCTION_LINES: usize = 70;

/// Places that must stay free of I/O: data in, data out.
const PURE: [&str; 7] = [
    "lab/src/bisect/",
    "lab/src/config/",
    "lab/src/plan/",
    "lab/src/vm/argv",
    "lab/src/detect/",
    "lab/src/judge/",
    "lab/src/perf/",
];

/// Thin files inside pure places that do the reading and writing for them.
const IO_EDGES: [&str; 1] = ["lab/src/judge/store.rs"];

const TOP_LEVEL: [&str; 8] =
    ["Cargo.lock", "Cargo.toml", "README.md", "images", "kernels", "lab", "scenarios", "snapshots"];

struct Source {
    path: String,
    text: String,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources() -> Vec<Source> {
    let root = root();
    let skip = |p: &Path| p.ends_with("target") || p.ends_with(".git");
    walkdir::WalkDir::new(&root)
        .into_iter()
        .filter_entry(move |e| !skip(e.path()))
        .filter_map(Result::ok)
        .filter(|e| e.file_type().is_file())
        .filter_map(|e| {
            let path = e.path().strip_prefix(&root).ok()?.to_str()?.to_owned();
            let text = std::fs::read_to_string(e.path()).ok()?;
            Some(Source { path, text })
        })
        .collect()
}

fn is_rust(source: &Source) -> bool {
    source.path.ends_with(".rs")
}

fn is_test(source: &Source) -> bool {
    source.path.ends_with("_tests.rs")
}

fn too_long(s: &Source) -> Vec<String> {
    let lines = s.text.lines().count();
    let long = is_rust(s) && lines > MAX_FILE_LINES;
    long.then(|| format!("{}: {lines} lines, the bound is {MAX_FILE_LINES}", s.path))
        .into_iter()
        .collect()
}

fn no_header(s: &Source) -> Vec<String> {
    let missing = is_rust(s) && !s.text.starts_with("//!");
    missing.then(|| format!("{}: does not begin with a //! header", s.path)).into_iter().collect()
}

/// Functions by indentation, which rustfmt guarantees.
fn long_functions(s: &Source) -> Vec<String> {
    // Tests with snapshots inside them are as long as what they show.
    if !is_rust(s) || is_test(s) {
        return Vec::new();
    }
    let lines: Vec<&str> = s.text.lines().collect();
    let mut complaints = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let body = line.trim_start();
        let indent = line.len() - body.len();
        let head =
            ["fn ", "pub fn ", "pub(crate) fn ", "pub(super) fn ", "async fn ", "pub async fn "];
        if !head.iter().any(|h| body.starts_with(h)) || body.ends_with('}') || body.ends_with(';') {
            continue;
        }
        let close = format!("{}}}", " ".repeat(indent));
        let length = lines[start..].iter().position(|l| *l == close).map_or(0, |n| n + 1);
        if length > MAX_FUNCTION_LINES {
            complaints.push(format!("{}:{}: function of {length} lines", s.path, start + 1));
        }
    }
    complaints
}

fn logic_in_mod(s: &Source) -> Vec<String> {
    let bad = s.path.ends_with("/mod.rs")
        && s.path.starts_with("lab/src/")
        && s.path != "lab/src/cli/mod.rs"
        && s.text
            .lines()
            .any(|l| l.starts_with("fn ") || l.starts_with("pub fn ") || l.starts_with("impl "));
    bad.then(|| format!("{}: logic in mod.rs", s.path)).into_iter().collect()
}

fn unfinished(s: &Source) -> Vec<String> {
    let marks = [
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("#[ig", "nore"),
        concat!("FIX", "ME"),
        concat!("// X", "XX"),
    ];
    lines_with(s, |l| is_rust(s) && marks.iter().any(|m| l.contains(m)), "unfinished")
}

fn impure(s: &Source) -> Vec<String> {
    // Tests may read their samples.
    let pure = PURE.iter().any(|p| s.path.starts_with(p))
        && !IO_EDGES.contains(&s.path.as_str())
        && !is_test(s);
    let io = [
        "std::fs",
        "std::net",
        "std::process",
        "tokio::",
        "std::env",
        "File::open",
        "SystemTime::now",
    ];
    let code = s.text.split("#[cfg(test)]").next().unwrap_or_default();
    let code = Source { path: s.path.clone(), text: code.to_owned() };
    lines_with(
        &code,
        |l| {
            pure && is_rust(s)
                && !l.trim_start().starts_with("//")
                && io.iter().any(|m| l.contains(m))
        },
        "I/O in a pure module",
    )
}

fn foreign_hosts_and_paths(s: &Source) -> Vec<String> {
    if s.path == "Cargo.lock" || s.path.starts_with("lab/LICENSES/") {
        return Vec::new();
    }
    let bad = [
        concat!("deb.deb", "ian.org"),
        concat!("crates", ".io"),
        concat!("pypi", ".org"),
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
    ];
    lines_with(s, |l| bad.iter().any(|m| l.contains(m)), "host name or path of one machine")
}

fn trailing_space(s: &Source) -> Vec<String> {
    let checked = [".rs", ".toml", ".md"].iter().any(|e| s.path.ends_with(e)) && !is_test(s);
    lines_with(s, |l| checked && l.ends_with([' ', '\t']), "trailing white space")
}

fn lines_with(s: &Source, bad: impl Fn(&str) -> bool, what: &str) -> Vec<String> {
    let found = s.text.lines().enumerate().filter(|(_, l)| bad(l));
    found.map(|(n, l)| format!("{}:{}: {what}: {}", s.path, n + 1, l.trim())).collect()
}

type Rule = fn(&Source) -> Vec<String>;

const RULES: [(&str, Rule); 8] = [
    ("too_long", too_long),
    ("no_header", no_header),
    ("long_functions", long_functions),
    ("logic_in_mod", logic_in_mod),
    ("unfinished", unfinished),
    ("impure", impure),
    ("foreign_hosts_and_paths", foreign_hosts_and_paths),
    ("trailing_space", trailing_space),
];

#[test]
fn the_tree_is_tidy() {
    let complaints: Vec<String> =
        sources().iter().flat_map(|s| RULES.iter().flat_map(|(_, rule)| rule(s))).collect();
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn every_rule_can_fail() {
    let long_function =
        format!("//! h\nfn f() {{\n{}}}\n", "    g();\n".repeat(MAX_FUNCTION_LINES));
    let bad = [
        ("too_long", "a.rs", "//! h\n".repeat(MAX_FILE_LINES + 1)),
        ("no_header", "a.rs", "fn f() {}\n".into()),
        ("long_functions", "a.rs", long_function),
        ("logic_in_mod", "lab/src/x/mod.rs", "//! h\nfn f() {}\n".into()),
        ("unfinished", "a.rs", concat!("//! h\nfn f() { todo", "!() }\n").into()),
        ("impure", "lab/src/judge/x.rs", "//! h\nuse std::fs;\n".into()),
        ("foreign_hosts_and_paths", "README.md", concat!("see /wo", "rk/x\n").into()),
        ("trailing_space", "a.toml", "a = 1 \n".into()),
    ];
    for ((name, rule), (bad_name, path, text)) in RULES.iter().zip(bad) {
        assert_eq!(*name, bad_name);
        let source = Source { path: path.into(), text };
        assert_eq!(rule(&source).len(), 1, "{name}");
    }
}

#[test]
fn the_top_level_is_fixed() {
    let mut names: Vec<String> = std::fs::read_dir(root())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|n| !n.starts_with('.') && n != "target")
        .collect();
    names.sort();
    assert_eq!(names, TOP_LEVEL);
}

#[test]
fn ci_runs_the_command_of_the_readme() {
    let command = "cargo run -- test --setup && cargo test --workspace";
    for file in ["README.md", ".ci/run"] {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        assert!(text.contains(command), "{file} does not name `{command}`");
    }
}
