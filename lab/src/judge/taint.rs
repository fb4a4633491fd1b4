//! Taint bits that came up during a case.

use super::evidence::{CaseEnd, Evidence};
use super::finding::Finding;
use super::verdict::{Owner, Verdict};

/// Letter of each bit, from bit 0.
const LETTERS: &[u8] = b"PFSRMBUDAWCIOELKXTNJ";

/// The finding that a kernel got tainted without a message on its console.
pub(super) fn changed(evidence: &Evidence<'_>) -> Option<Finding> {
    let (before, after) = match (evidence.taint_before, evidence.taint_after) {
        (Some(before), Some(after)) => (before, after),
        _ if *evidence.end == CaseEnd::Completed => {
            return Some(Finding::infra("the taint of the kernel was not read"));
        }
        _ => return None,
    };
    let new = after & !before;
    (new != 0).then(|| {
        let cause = format!("kernel got tainted: {} ({before} before, {after} after)", names(new));
        Finding::new(Verdict::Kernel, Owner::Kernel, cause)
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
