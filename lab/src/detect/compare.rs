//! Faults of a kernel against those of its base.

use serde::{Deserialize, Serialize};

use super::fault::Fault;

/// What is kept of a fault to compare it with those of another kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Title of the fault.
    pub title: String,
    /// Fingerprint of the fault.
    pub fingerprint: String,
    /// Whether it is a consequence of another fault of the same log.
    pub follows: bool,
}

impl From<&Fault> for Mark {
    fn from(fault: &Fault) -> Mark {
        Mark {
            title: fault.title.clone(),
            fingerprint: fault.fingerprint.clone(),
            follows: fault.follows.is_some(),
        }
    }
}

/// What two lists of faults have in common; each fault once, in the order of its list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison<'a> {
    /// In both, as seen in the new list.
    pub known: Vec<&'a Mark>,
    /// Only in the new list.
    pub new: Vec<&'a Mark>,
    /// Only in the base list.
    pub gone: Vec<&'a Mark>,
}

/// Compares by fingerprint; where a report was torn or mixed with another, by the functions that
/// are left of it. Consequences of other faults are left out: whether they show
/// depends on how long the kernel lived.
pub fn compare<'a>(base: &'a [Mark], new: &'a [Mark]) -> Comparison<'a> {
    let (base, new) = (causes(base), causes(new));
    let has = |list: &[&Mark], fault: &Mark| {
        list.iter().any(|other| alike(&other.fingerprint, &fault.fingerprint))
    };
    let gone = base.iter().copied().filter(|fault| !has(&new, fault)).collect();
    let (known, new) = new.into_iter().partition(|fault| has(&base, fault));
    Comparison { known, new, gone }
}

/// Whether one is the other, or its beginning.
fn alike(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with(" < "))
}

fn causes(faults: &[Mark]) -> Vec<&Mark> {
    let mut causes: Vec<&Mark> = Vec::new();
    for fault in faults.iter().filter(|fault| !fault.follows) {
        if causes.iter().all(|seen| seen.fingerprint != fault.fingerprint) {
            causes.push(fault);
        }
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(log: &[u8]) -> Vec<Mark> {
        super::super::scan(log).iter().map(Mark::from).collect()
    }

    fn warning(function: &str, line: u32) -> String {
        format!(
            "[    1.000000] WARNING: a.c:{line} at {function}+0x1{line}/0x200, CPU#0: x/{line}\n\
             [    1.000001] Call Trace:\n[    1.000002]  caller.isra.0+0x{line}/0x40\n\
             [    1.000003] ---[ end trace 0 ]---\n"
        )
    }

    fn titles(faults: &[&Mark]) -> Vec<String> {
        faults.iter().map(|f| f.title.clone()).collect()
    }

    #[test]
    fn what_only_moved_is_known() {
        let base = scan((warning("a", 1) + &warning("b", 2)).as_bytes());
        let new = scan((warning("c", 3) + &warning("a.cold", 4) + &warning("a", 5)).as_bytes());
        let seen = compare(&base, &new);
        assert_eq!(titles(&seen.known), ["WARNING in a"]);
        assert_eq!(titles(&seen.new), ["WARNING in c"]);
        assert_eq!(titles(&seen.gone), ["WARNING in b"]);
        assert_eq!(compare(&[], &[]), Comparison::default());
    }

    #[test]
    fn a_torn_report_is_that_of_its_whole() {
        let whole = warning("a", 1);
        let torn: String = whole.lines().take(1).map(|l| format!("{l}\n")).collect();
        let (whole, torn) = (scan(whole.as_bytes()), scan(torn.as_bytes()));
        assert_ne!(whole[0].fingerprint, torn[0].fingerprint);
        assert_eq!(compare(&whole, &torn).known.len(), 1);
        assert_eq!(compare(&torn, &whole).known.len(), 1);
        assert!(!alike("warning: a", "warning: ab < c"));
    }

    #[test]
    fn consequences_are_left_out() {
        let oops = "[    1.000000] Oops: general protection fault: 0000 [#1]\n\
                    [    1.000000] RIP: 0010:a+0x1/0x2\n[    1.000000] ---[ end trace 0 ]---\n";
        let panic = "[    1.000000] Kernel panic - not syncing: Fatal exception\n";
        let base = scan(oops.as_bytes());
        let new = scan(format!("{oops}{panic}").as_bytes());
        assert_eq!((new.len(), new[1].follows), (2, true));
        let seen = compare(&base, &new);
        assert_eq!((seen.known.len(), seen.new.len(), seen.gone.len()), (1, 0, 0));
    }
}
