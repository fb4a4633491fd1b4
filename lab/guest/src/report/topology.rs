//! CPU and NUMA layout from sysfs.

use lab_proto::observe::{CpuReport, NodeReport, TopologyReport};

use super::{cpulist, read};

const CPU: &str = "/sys/devices/system/cpu";
const NODE: &str = "/sys/devices/system/node";

/// The layout as the kernel shows it.
pub(crate) fn report() -> TopologyReport {
    let online = cpulist::online();
    TopologyReport {
        possible: cpulist::possible(),
        present: cpulist::read(&format!("{CPU}/present")),
        cpus: online.iter().map(|&cpu| cpu_report(cpu)).collect(),
        online,
        nodes: read::numbered(NODE, "node").into_iter().map(node_report).collect(),
    }
}

fn cpu_report(cpu: u32) -> CpuReport {
    let topology = format!("{CPU}/cpu{cpu}/topology");
    CpuReport {
        cpu,
        package: read::value(format!("{topology}/physical_package_id")).unwrap_or(-1),
        core: read::value(format!("{topology}/core_id")).unwrap_or(-1),
        siblings: cpulist::read(&format!("{topology}/thread_siblings_list")),
    }
}

fn node_report(id: u32) -> NodeReport {
    let node = format!("{NODE}/node{id}");
    let words = |name: &str| read::text(format!("{node}/{name}")).unwrap_or_default();
    NodeReport {
        id,
        cpus: cpulist::read(&format!("{node}/cpulist")),
        mem_kib: mem_total_kib(&words("meminfo")).unwrap_or(0),
        distances: words("distance").split_whitespace().flat_map(str::parse).collect(),
    }
}

/// MemTotal of a node's meminfo, whose lines read `Node 0 MemTotal:  507904 kB`.
fn mem_total_kib(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.contains("MemTotal:"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_node() {
        let text = "Node 1 MemTotal:         249856 kB\nNode 1 MemFree:          240000 kB";
        assert_eq!(mem_total_kib(text), Some(249_856));
        assert_eq!(mem_total_kib("Node 1 MemFree: 3 kB"), None);
    }
}
