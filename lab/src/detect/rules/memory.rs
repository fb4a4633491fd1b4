//! Corrupt, exhausted and forgotten memory.

use super::super::rule::Kind::{Bug, Leak, OutOfMemory, Warning};
use super::super::rule::{Rule, Stage};

pub(super) const RULES: &[Rule] = &[
    Rule::head(
        "list-corruption",
        Warning,
        &["list_add corruption", "list_del corruption", "slist_add corruption"],
        "BUG: corrupted list in {f}",
    )
    .at(Stage::Text),
    Rule::head("refcount", Warning, &["refcount_t: "], "WARNING: refcount bug in {f}")
        .at(Stage::Text),
    Rule::head("usercopy", Bug, &["usercopy: Kernel memory "], "BUG: bad usercopy in {f}")
        .at(Stage::Text),
    Rule::head("fortify", Warning, &[], "BUG: buffer overflow found by fortify in {f}")
        .with("detected buffer overflow")
        .at(Stage::Text),
    Rule::head("slab", Bug, &["BUG "], "BUG: slab: {slab} in {f}").with("ainted").at(Stage::Text),
    Rule::head("bad-page", Bug, &["BUG: Bad page "], "BUG: Bad page {what} in {f}"),
    Rule::head("bad-counter", Bug, &["BUG: Bad rss-counter "], "BUG: Bad rss-counter {what}"),
    Rule::head("page-allocation", OutOfMemory, &[], "page allocation failure in {f}")
        .with(": page allocation failure: "),
    Rule::head("vmalloc", OutOfMemory, &[], "vmalloc error in {f}").with(": vmalloc error: "),
    Rule::head("oom", OutOfMemory, &[], "oom-killer invoked").with(" invoked oom-killer: "),
    Rule::head(
        "oom-kill",
        OutOfMemory,
        &["Out of memory: Killed process", "Memory cgroup out of memory: Killed process"],
        "out of memory: killed a process",
    )
    .at(Stage::Tail),
    Rule::head("kmemleak", Leak, &["kmemleak: "], "kmemleak: new suspected memory leaks")
        .with(" new suspected memory leak"),
    Rule::head("unreferenced", Leak, &["unreferenced object 0x"], "memory leak in {f}"),
];
