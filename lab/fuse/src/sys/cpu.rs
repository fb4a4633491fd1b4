//! CPU lists of sysfs, pinning, and the CPU a thread runs on.

use std::fs;

use rustix::thread::{CpuSet, sched_setaffinity};

/// Bound of a CPU number taken from a list.
const MAX_CPU: u32 = 8191;

/// CPUs the kernel may ever bring up, ascending; CPU 0 alone when sysfs cannot be read.
pub fn possible() -> Vec<u32> {
    read_list("/sys/devices/system/cpu/possible")
}

/// CPUs running now, ascending; CPU 0 alone when sysfs cannot be read.
pub fn online() -> Vec<u32> {
    read_list("/sys/devices/system/cpu/online")
}

/// The first present CPU of each NUMA node that has one, ascending.
pub fn first_of_each_node() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/sys/devices/system/node") else { return vec![0] };
    let is_node = |name: &str| {
        name.strip_prefix("node").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
    };
    let nodes = entries.flatten().filter(|e| e.file_name().to_str().is_some_and(is_node));
    let lists = nodes.filter_map(|e| fs::read_to_string(e.path().join("cpulist")).ok());
    let mut first: Vec<u32> =
        lists.filter_map(|text| parse_list(&text)?.first().copied()).collect();
    first.sort_unstable();
    if first.is_empty() { vec![0] } else { first }
}

fn read_list(path: &str) -> Vec<u32> {
    fs::read_to_string(path).ok().and_then(|text| parse_list(&text)).unwrap_or_else(|| vec![0])
}

/// Parses a list such as `0-3,8`. None for anything malformed, empty or out of bounds.
pub fn parse_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        if first > last || last > MAX_CPU {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// Pins the calling thread to one CPU. False where the kernel refuses, e.g. an offline CPU.
pub fn pin(cpu: u32) -> bool {
    let mut set = CpuSet::new();
    if cpu as usize >= CpuSet::MAX_CPU {
        return false;
    }
    set.set(cpu as usize);
    sched_setaffinity(None, &set).is_ok()
}

/// The CPU the calling thread runs on.
pub fn current() -> u32 {
    rustix::thread::sched_getcpu() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_parsed_and_bad_ones_refused() {
        assert_eq!(parse_list("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(parse_list("3"), Some(vec![3]));
        for bad in ["", "a", "3-1", "0-99999", "1,,2", "-1"] {
            assert_eq!(parse_list(bad), None, "{bad:?}");
        }
    }
}
