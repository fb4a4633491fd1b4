//! Faults that the scenario declares: which were seen, which were not, which are over.

use globset::GlobBuilder;

use super::evidence::{CaseEnd, Evidence};
use super::finding::Finding;
use super::verdict::{Owner, Verdict};
use crate::config::scenario::Allow;
use crate::detect::{Fault, Kind};
use crate::report::escape::clip;

/// Characters of a note.
const MAX_NOTE: usize = 240;

/// The faults of a case against what its scenario allows.
pub(super) struct Declared<'a> {
    /// What the scenario does not allow, in order. Messages about a taint are not in it: the
    /// bits decide about that.
    pub(super) undeclared: Vec<&'a Fault>,
    /// Taint bits that allowed faults set.
    pub(super) taint_bits: u64,
    /// Declarations that are over.
    pub(super) expired: Vec<Finding>,
    /// What is to be told of allowed faults, seen or not.
    pub(super) notes: Vec<String>,
}

/// Sorts the faults of a case. A consequence of an allowed fault is allowed only if it is
/// declared as well.
pub(super) fn sort<'a>(evidence: &Evidence<'a>) -> Declared<'a> {
    let allow = &evidence.scenario.allow;
    let faults = evidence.faults.iter().filter(|f| f.kind != Kind::Taint);
    let (seen, undeclared): (Vec<&Fault>, Vec<&Fault>) =
        faults.partition(|fault| allow.iter().any(|a| matches(a, fault)));
    let expired = allow.iter().filter(|a| a.until < evidence.today).map(over).collect();
    let mut notes: Vec<String> = Vec::new();
    for allow in allow {
        let mut hits = seen.iter().filter(|fault| matches(allow, fault)).peekable();
        if hits.peek().is_none() && *evidence.end == CaseEnd::Completed {
            notes.push(format!("allowed splat `{}` did not occur", allow.title));
        }
        let why = |fault: &&Fault| {
            let times = if fault.times > 1 { format!(" {} times", fault.times) } else { "".into() };
            format!("allowed splat{times}: {}: {} ({})", fault.title, allow.reason, allow.link)
        };
        notes.extend(hits.map(why));
    }
    Declared {
        undeclared,
        taint_bits: seen.iter().fold(0, |bits, fault| bits | fault.kind.taint_bits()),
        expired,
        notes: notes.iter().map(|note| clip(note, MAX_NOTE)).collect(),
    }
}

fn matches(allow: &Allow, fault: &Fault) -> bool {
    // The glob was checked when the file was read.
    let glob = GlobBuilder::new(&allow.title).build();
    glob.is_ok_and(|glob| glob.compile_matcher().is_match(&fault.title))
}

fn over(allow: &Allow) -> Finding {
    let Allow { title, reason, link, until } = allow;
    let cause = format!("allowed splat `{title}` was allowed until {until}");
    Finding::new(Verdict::Fail, Owner::Scenario, cause)
        .because([format!("declared because: {reason} ({link})")])
}

#[cfg(test)]
mod tests {
    use super::super::bent::{Case, is, pass, ring};
    use super::*;

    const WARN: &str = "[    1.000000] WARNING: a.c:1 at fuse_uring_x+0x1/0x2, CPU#0: x/1\n\
                        [    1.000001] ---[ end trace 0 ]---\n";
    const BUG: &str = "[    2.000000] BUG: KASAN: use-after-free in fuse_y+0x1/0x2\n";

    fn allowing(title: &str, console: &str) -> Case {
        let mut case = ring();
        case.scenario.allow = vec![Allow {
            title: title.into(),
            reason: "on purpose".into(),
            link: "https://example.org/1".into(),
            until: jiff::civil::date(2027, 1, 1),
        }];
        case.console = console.as_bytes().to_vec();
        case
    }

    #[test]
    fn a_declared_splat_is_told_and_its_taint_with_it() {
        let mut case = allowing("WARNING in fuse_uring_*", WARN);
        case.taint = (Some(0), Some(1 << 9));
        assert_eq!(case.short(), pass());
        let evidence = case.judge().evidence;
        let told = "allowed splat: WARNING in fuse_uring_x: on purpose (https://example.org/1)";
        assert_eq!(evidence, [told]);
        case.taint = (Some(0), Some(1 << 9 | 1 << 7));
        is(&case, Verdict::Kernel, Owner::Kernel, "kernel got tainted: D");
        case.scenario.allow.clear();
        is(&case, Verdict::Kernel, Owner::Kernel, "WARNING in fuse_uring_x");
    }

    #[test]
    fn an_undeclared_splat_beside_it_is_red() {
        let case = allowing("WARNING in fuse_uring_*", &(WARN.to_owned() + BUG));
        is(&case, Verdict::Kernel, Owner::Kernel, "KASAN: use-after-free in fuse_y");
        assert!(case.judge().evidence.iter().any(|l| l.starts_with("allowed splat: WARNING")));
        let panic = "[    3.000000] Kernel panic - not syncing: kernel: panic_on_warn set ...\n";
        let case = allowing("WARNING in fuse_uring_*", &(WARN.to_owned() + panic));
        is(&case, Verdict::Kernel, Owner::Kernel, "kernel panic: kernel: panic_on_warn");
    }

    #[test]
    fn what_did_not_occur_is_told() {
        let case = allowing("WARNING in fuse_uring_*", "");
        assert_eq!(case.short(), pass());
        let told = "allowed splat `WARNING in fuse_uring_*` did not occur";
        assert_eq!(case.judge().evidence, [told]);
    }

    #[test]
    fn what_is_over_fails_by_the_scenario() {
        for console in ["", WARN] {
            let mut case = allowing("WARNING in fuse_uring_*", console);
            case.today = jiff::civil::date(2027, 1, 2);
            is(&case, Verdict::Fail, Owner::Scenario, "was allowed until 2027-01-01");
            assert!(case.judge().evidence[0].contains("on purpose"));
        }
        let mut case = allowing("WARNING in fuse_uring_*", BUG);
        case.today = jiff::civil::date(2027, 1, 2);
        is(&case, Verdict::Kernel, Owner::Kernel, "KASAN");
    }

    #[test]
    fn what_is_said_of_a_taint_is_shown_with_it() {
        let mut case = ring();
        case.console = b"[    1.000000] x: loading out-of-tree module taints kernel.\n".to_vec();
        assert_eq!(case.short(), pass());
        case.taint = (Some(0), Some(1 << 12));
        is(&case, Verdict::Kernel, Owner::Kernel, "kernel got tainted: O");
        assert!(case.judge().evidence[0].contains("out-of-tree"));
    }
}
