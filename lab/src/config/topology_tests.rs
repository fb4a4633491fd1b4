//! Topologies: what is read, and what is refused with which words.

use insta::assert_snapshot;

use super::*;
use crate::config::problem::ConfigErrors;

fn try_read(text: &str) -> Result<Topology, String> {
    let file = SourceFile { path: "scenarios/topologies/t.toml".into(), text: text.into() };
    read("t", &file).map_err(|problems| ConfigErrors { files: vec![problems] }.render(false))
}

fn errors(text: &str) -> String {
    try_read(text).expect_err("a broken file was read")
}

const TWO_NODES: &str = "\
summary = 's'
sockets = 2
cores = 2
[[node]]
cpus = '0-1'
memory = '256MiB'
[[node]]
cpus = '2-3'
";

#[test]
fn defaults_are_filled_in() {
    let topology = try_read(TWO_NODES).unwrap();
    assert_eq!((topology.cpus, topology.max_cpus, topology.threads), (4, 4, 1));
    assert_eq!(topology.distances, None);
    assert_eq!(topology.memory_bytes(), 256 << 20);
}

#[test]
fn unknown_keys_wrong_values_and_missing_keys_are_shown_at_once() {
    let text =
        "sokets = 2\ncores = 'two'\nthreads = 17\n[[node]]\ncpus = '0-'\nmemory = 512\nmem = 1\n";
    assert_snapshot!(errors(text), @r#"
  × missing key `summary`
   ╭─[scenarios/topologies/t.toml:1:1]
 1 │ sokets = 2
   · ▲
   · ╰── `summary` belongs here
 2 │ cores = 'two'
   ╰────
  × unknown key `sokets`
   ╭─[scenarios/topologies/t.toml:1:1]
 1 │ sokets = 2
   · ───┬──
   ·    ╰── did you mean `sockets`?
 2 │ cores = 'two'
   ╰────
  × `cores` must be a whole number
   ╭─[scenarios/topologies/t.toml:2:9]
 1 │ sokets = 2
 2 │ cores = 'two'
   ·         ──┬──
   ·           ╰── here
 3 │ threads = 17
   ╰────
  × `threads` must be 1 to 16
   ╭─[scenarios/topologies/t.toml:3:11]
 2 │ cores = 'two'
 3 │ threads = 17
   ·           ─┬
   ·            ╰── here
 4 │ [[node]]
   ╰────
  × `cpus` must be CPU numbers below 1024 such as "0-3,8", each once
   ╭─[scenarios/topologies/t.toml:5:8]
 4 │ [[node]]
 5 │ cpus = '0-'
   ·        ──┬─
   ·          ╰── here
 6 │ memory = 512
   ╰────
  × `memory` must be a size such as "4KiB" or "512MiB", at most 16TiB
   ╭─[scenarios/topologies/t.toml:6:10]
 5 │ cpus = '0-'
 6 │ memory = 512
   ·          ─┬─
   ·           ╰── here
 7 │ mem = 1
   ╰────
  × unknown key `mem`
   ╭─[scenarios/topologies/t.toml:7:1]
 6 │ memory = 512
 7 │ mem = 1
   · ─┬─
   ·  ╰── did you mean `memory`?
   ╰────
7 errors in 1 file
"#);
}

#[test]
fn a_socket_across_nodes_is_an_error() {
    let text = TWO_NODES.replace("sockets = 2", "sockets = 1").replace("cores = 2", "cores = 4");
    assert_snapshot!(errors(&text), @r"
  × socket 0 spans the nodes 0 and 1
   ╭─[scenarios/topologies/t.toml:2:11]
 1 │ summary = 's'
 2 │ sockets = 1
   ·           ┬
   ·           ╰── use more sockets with fewer cores each, or move the CPUs
 3 │ cores = 4
   ╰────
1 error in 1 file
");
}

#[test]
fn each_possible_cpu_has_one_node() {
    let text = TWO_NODES.replace("'2-3'", "'1,4'");
    assert_snapshot!(errors(&text), @r"
  × CPU 2, 3 in no node
   ╭─[scenarios/topologies/t.toml:4:1]
 3 │ cores = 2
 4 │ [[node]]
   · ────┬───
   ·     ╰── here
 5 │ cpus = '0-1'
   ╰────
  × CPU 4 in node 1, but the last one is 3
   ╭─[scenarios/topologies/t.toml:8:8]
 7 │ [[node]]
 8 │ cpus = '1,4'
   ·        ──┬──
   ·          ╰── here
   ╰────
  × CPU 1 is in node 0 and node 1
   ╭─[scenarios/topologies/t.toml:8:8]
 7 │ [[node]]
 8 │ cpus = '1,4'
   ·        ──┬──
   ·          ╰── here
   ╰────
3 errors in 1 file
");
}

#[test]
fn counts_must_agree() {
    let text = TWO_NODES.replace("cores = 2", "cores = 2\nmax-cpus = 8\ncpus = 5");
    assert_snapshot!(errors(&text), @r"
  × `max-cpus` is 8, but 2 sockets x 2 cores x 1 threads = 4 CPUs
   ╭─[scenarios/topologies/t.toml:4:12]
 3 │ cores = 2
 4 │ max-cpus = 8
   ·            ┬
   ·            ╰── here
 5 │ cpus = 5
   ╰────
  × 5 CPUs, but only 4 are possible
   ╭─[scenarios/topologies/t.toml:5:8]
 4 │ max-cpus = 8
 5 │ cpus = 5
   ·        ┬
   ·        ╰── here
 6 │ [[node]]
   ╰────
2 errors in 1 file
");
}

#[test]
fn a_guest_needs_memory_and_a_node() {
    let message = errors(&TWO_NODES.replace("256MiB", "255MiB"));
    assert!(message.contains("at least 256 MiB"), "{message}");
    let message = errors("summary = 's'\n");
    assert!(message.contains("missing [[node]]"), "{message}");
    assert!(try_read(&TWO_NODES.replace("'256MiB'", "'256.5MiB'")).is_err());
}

#[test]
fn distances_are_a_square_of_valid_numbers() {
    let with = |rows: &str| {
        TWO_NODES
            .replace("[[node]]\ncpus = '0", &format!("distances = {rows}\n[[node]]\ncpus = '0"))
    };
    let good = try_read(&with("[[10, 25], [20, 10]]")).unwrap();
    assert_eq!(good.distances, Some(vec![vec![10, 25], vec![20, 10]]));
    assert!(errors(&with("[[10, 20]]")).contains("2 rows of 2 numbers"));
    assert_snapshot!(errors(&with("[[11, 10], [255, 10]]")), @r"
  × the distance of node 0 to itself must be 10
   ╭─[scenarios/topologies/t.toml:4:15]
 3 │ cores = 2
 4 │ distances = [[11, 10], [255, 10]]
   ·               ─┬
   ·                ╰── here
 5 │ [[node]]
   ╰────
  × the distance of node 0 to node 1 must be 11 to 254
   ╭─[scenarios/topologies/t.toml:4:19]
 3 │ cores = 2
 4 │ distances = [[11, 10], [255, 10]]
   ·                   ─┬
   ·                    ╰── here
 5 │ [[node]]
   ╰────
  × the distance of node 1 to node 0 must be 11 to 254
   ╭─[scenarios/topologies/t.toml:4:25]
 3 │ cores = 2
 4 │ distances = [[11, 10], [255, 10]]
   ·                         ─┬─
   ·                          ╰── here
 5 │ [[node]]
   ╰────
3 errors in 1 file
");
}

#[test]
fn syntax_errors_are_shown_at_once() {
    assert_snapshot!(errors("summary = \nsockets = 2\ncores == 2\n[[node]\n"), @r"
  × string values must be quoted, expected literal string
   ╭─[scenarios/topologies/t.toml:1:11]
 1 │ summary = 
   ·           ▲
   ·           ╰── here
 2 │ sockets = 2
   ╰────
  × extra `=`
   ╭─[scenarios/topologies/t.toml:3:8]
 2 │ sockets = 2
 3 │ cores == 2
   ·        ┬
   ·        ╰── here
 4 │ [[node]
   ╰────
  × unexpected key or value
   ╭─[scenarios/topologies/t.toml:3:10]
 2 │ sockets = 2
 3 │ cores == 2
   ·          ▲
   ·          ╰── here
 4 │ [[node]
   ╰────
  × unclosed array table
   ╭─[scenarios/topologies/t.toml:4:8]
 3 │ cores == 2
 4 │ [[node]
   ·        ▲
   ·        ╰── here
   ╰────
4 errors in 1 file
");
}

#[test]
fn huge_numbers_are_refused_before_anything_is_made_of_them() {
    let message = errors("summary = 's'\nsockets = 1024\ncores = 1024\n[[node]]\ncpus = '0'\n");
    assert!(message.contains("= 1048576 CPUs, the bound is 1024"), "{message}");
    assert!(errors(&"a".repeat(SourceFile::MAX_BYTES + 1)).contains("larger than 1048576 bytes"));
}
