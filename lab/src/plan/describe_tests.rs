//! Cases as text.

use crate::config::load::load;
use crate::config::scenario::Profile;
use crate::config::shipped;
use crate::plan::{Selection, describe, plan};

#[test]
fn a_case_is_shown_with_every_default() {
    let selection = Selection {
        base: None,
        kernels: Vec::new(),
        topologies: vec!["4x2".into()],
        scenarios: vec!["placement/each-cpu".into()],
        profile: Profile::Quick,
        repeat: 1,
        seed: 1,
        shard: None,
    };
    let plan = plan(&load(&shipped::files()).unwrap(), &selection).unwrap();
    insta::assert_snapshot!(describe(&plan.cases[0]), @r#"
case        stock/4x2/placement/each-cpu
seed        111915712143807945
kernel      stock
topology    4x2: four nodes of 2 CPUs, in a ring of two distances
cpus        8 present, 8 possible: 4 sockets x 2 cores x 1 threads
node        0: CPUs 0,1; 192 MiB; distances 10 20 30 20
node        1: CPUs 2,3; 192 MiB; distances 20 10 20 30
node        2: CPUs 4,5; 192 MiB; distances 30 20 10 20
node        3: CPUs 6,7; 192 MiB; distances 20 30 20 10
scenario    placement/each-cpu: a client pinned to each CPU: on which queue its requests arrive
kind        placement
profile     quick
image       agent
limits      call 5s, step 30s, case 1m 30s, silence 10s
requires    FUSE_FS FUSE_IO_URING IO_URING
step        serve (limit 30s) {"do":"serve","name":"serve","mount_point":"/mnt/ring","transport":"ring","fallback":false,"file_system":{"kind":"memory"},"queues":{"kind":"all"},"depth":8,"max_write":1048576,"max_background":256,"cache_ms":0,"direct_io":false,"writeback":false,"fault":null}
step        place (limit 30s) {"do":"place","path":"/mnt/ring","requests":16,"background":false}
expect      queue-is-submitting-cpu of place
expect      nothing-lost of place
expect      snapshot of place, per topology, per queue policy
"#);
}
