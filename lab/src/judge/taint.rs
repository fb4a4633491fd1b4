//! Taint bits that came up during a case.

use super::evidence::{CaseEnd, Evidence};
use super::finding::Finding;
use super::verdict::{Owner, Verdict};
use crate::detect::Kind;

/// Letter of each bit, from bit 0.
const LETTERS: &[u8] = b"PFSRMBUDAWCIOELKXTNJ";

/// The finding that a kernel got tainted without a fault on its console. `allowed` are the bits
/// that faults set which the case declares.
pub(super) fn changed(evidence: &Evidence<'_>, allowed: u64) -> Option<Finding> {
    let (before, after) = match (evidence.taint_before, evidence.taint_after) {
        (Some(before), Some(after)) => (before, after),
        _ if *evidence.end == CaseEnd::Completed => {
            return Some(Finding::infra("the taint of the kernel was not read"));
        }
        _ => return None,
    };
    let new = after & !before & !allowed;
    (new != 0).then(|| {
        let cause = format!("kernel got tainted: {} ({before} before, {after} after)", names(new));
        let said = evidence.faults.iter().filter(|f| f.kind == Kind::Taint);
        Finding::new(Verdict::Kernel, Owner::Kernel, cause).because(said.map(|f| f.message.clone()))
    })
}

fn names(bits: u64) -> String {
    let name = |bit: usize| match LETTERS.get(bit) {
        Some(letter) => char::from(*letter).to_string(),
        None => format!("bit {bit}"),
    };
    let set: Vec<String> = (0..64).filter(|b| bits >> b & 1 == 1).map(name).collect();
    set.join(" ")
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn bits_have_the_kernel_s_letters() {
        assert_eq!(names(512), "W");
        assert_eq!(names(128 | 1 | 1 << 18), "P D N");
        assert_eq!(names(1 << 40), "bit 40");
    }
}
