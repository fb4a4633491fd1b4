//! Kernel CPU lists such as `0-3,8,10-11`.

/// Most CPUs taken, the kernel's own bound.
const MAX_CPUS: u32 = 8192;

/// The CPUs of a list, ascending; none when it is not a list.
pub(crate) fn parse(list: &str) -> Option<Vec<u32>> {
    let list = list.trim();
    let mut cpus = Vec::new();
    for part in list.split(',').filter(|_| !list.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= MAX_CPUS {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// The CPUs of a list file of sysfs; empty when there is none.
pub(crate) fn read(path: &str) -> Vec<u32> {
    super::read::text(path).and_then(|text| parse(&text)).unwrap_or_default()
}

/// Online CPUs.
pub(crate) fn online() -> Vec<u32> {
    read("/sys/devices/system/cpu/online")
}

/// Possible CPUs.
pub(crate) fn possible() -> Vec<u32> {
    read("/sys/devices/system/cpu/possible")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_every_form() {
        assert_eq!(parse("0\n"), Some(vec![0]));
        assert_eq!(parse("0-3,8,10-11"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(parse("4,0-1"), Some(vec![0, 1, 4]));
        assert_eq!(parse(""), Some(vec![]));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in ["3-1", "a", "0-", "1,,2", "0-4000000000"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
