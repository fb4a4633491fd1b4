//! A case against the same case on the base kernel: data in, data out.

use super::allowed;
use super::decide::without_faults;
use super::evidence::{Evidence, Judgement};
use super::verdict::{Owner, Verdict};
use crate::detect::{Mark, compare};
use crate::report::escape::clip;

/// Characters of a line.
const MAX_LINE: usize = 240;

/// What is kept of an attempt so that it can be compared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Said {
    /// All faults, in order.
    pub faults: Vec<Mark>,
    /// Those that the scenario does not allow.
    pub undeclared: Vec<Mark>,
    /// What the case would have come to without them: a verdict, of a FAIL its cause, too.
    pub ending: String,
}

/// What is known of a case on the base: all its attempts together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BaseCase {
    /// What it came to; none when it has no end.
    pub verdict: Option<Verdict>,
    /// Faults of all attempts.
    pub faults: Vec<Mark>,
    /// What the attempts would have come to without faults.
    pub endings: Vec<String>,
}

/// Titles by what became of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compared {
    /// On both kernels.
    pub known: Vec<String>,
    /// On the kernel under test only.
    pub new: Vec<String>,
    /// On the base only.
    pub gone: Vec<String>,
    /// Whether the case does not count against the kernel under test.
    pub excused: bool,
}

/// What an attempt leaves to be compared.
pub fn said(evidence: &Evidence<'_>) -> Said {
    let undeclared = allowed::sort(evidence).undeclared;
    let rest = without_faults(evidence);
    let ending = match rest.verdict {
        Verdict::Fail => format!("FAIL: {}", rest.cause),
        other => other.to_string(),
    };
    Said {
        faults: evidence.faults.iter().map(Mark::from).collect(),
        undeclared: undeclared.into_iter().map(Mark::from).collect(),
        ending,
    }
}

/// Whether the case ran on the base, so that the two can be compared.
pub fn ran_on_base(base: &BaseCase) -> bool {
    !matches!(base.verdict, None | Some(Verdict::Infra | Verdict::Skip { .. }))
}

/// Holds a judged case against the base. KERNEL becomes KNOWN only when every fault that is not
/// allowed is known, and the rest of the case came to what it came to on the base or to a pass.
/// A base that was not run excuses nothing.
pub fn against(judgement: Judgement, said: &Said, base: &BaseCase) -> (Judgement, Compared) {
    if !ran_on_base(base) {
        return (judgement, Compared::default());
    }
    let all = compare(&base.faults, &said.faults);
    let titles = |list: &[&Mark]| list.iter().map(|mark| mark.title.clone()).collect();
    let undeclared = compare(&base.faults, &said.undeclared);
    let known = undeclared.new.is_empty() && !undeclared.known.is_empty();
    let good = ["PASS", "NEW"].contains(&&*said.ending);
    let ended_alike = good || base.endings.contains(&said.ending);
    let excused = judgement.verdict == Verdict::Kernel && known && ended_alike;
    let compared = Compared {
        known: titles(&all.known),
        new: titles(&all.new),
        gone: titles(&all.gone),
        excused,
    };
    let mut judgement = judgement;
    let mut lines = lines(&compared);
    if judgement.verdict == Verdict::Kernel && known && !ended_alike {
        lines.push(format!("not so on base: without the known faults: {}", said.ending));
    }
    judgement.evidence.splice(0..0, lines.iter().map(|line| clip(line, MAX_LINE)));
    if excused && said.ending == "NEW" {
        // What the faults are excused for is still held to no snapshot. None is written either:
        // it would be one of a kernel that splats.
        judgement.verdict = Verdict::New;
        judgement.owner = Some(Owner::Scenario);
        judgement.cause = format!("no snapshot yet; known on base: {}", judgement.cause);
        judgement.snapshot_new.clear();
    } else if excused {
        judgement.verdict = Verdict::Known;
        judgement.owner = None;
        judgement.cause = format!("known on base: {}", judgement.cause);
        judgement.snapshot_new.clear();
    } else if judgement.verdict == Verdict::Kernel
        && let Some(new) = undeclared.new.first()
    {
        judgement.owner = Some(Owner::Kernel);
        judgement.cause = format!("new: {}", new.title);
    }
    (judgement, compared)
}

fn lines(compared: &Compared) -> Vec<String> {
    let told = |what: &'static str, titles: &[String]| {
        titles.iter().map(move |title| format!("{what}: {title}")).collect::<Vec<_>>()
    };
    [
        told("new", &compared.new),
        told("known on base", &compared.known),
        told("gone", &compared.gone),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(name: &str) -> Mark {
        Mark {
            title: format!("WARNING in {name}"),
            fingerprint: format!("warning: {name}"),
            follows: false,
        }
    }

    fn kernel() -> Judgement {
        Judgement {
            verdict: Verdict::Kernel,
            owner: Some(Owner::Kernel),
            cause: "WARNING in a".into(),
            evidence: Vec::new(),
            snapshot_new: Vec::new(),
        }
    }

    fn said(names: &[&str], ending: &str) -> Said {
        let faults: Vec<Mark> = names.iter().map(|name| mark(name)).collect();
        Said { undeclared: faults.clone(), faults, ending: ending.into() }
    }

    fn base(names: &[&str], verdict: Verdict, ending: &str) -> BaseCase {
        let faults = names.iter().map(|name| mark(name)).collect();
        BaseCase { verdict: Some(verdict), faults, endings: vec![ending.into()] }
    }

    fn verdict(said: &Said, base: &BaseCase) -> (Verdict, Compared) {
        let (judgement, compared) = against(kernel(), said, base);
        (judgement.verdict, compared)
    }

    #[test]
    fn known_faults_are_neither_failure_nor_pass() {
        let on_base = base(&["a", "b"], Verdict::Kernel, "PASS");
        let (found, compared) = verdict(&said(&["a"], "PASS"), &on_base);
        assert_eq!(found, Verdict::Known);
        assert_eq!((compared.known, compared.gone), (vec![mark("a").title], vec![mark("b").title]));
    }

    #[test]
    fn a_new_fault_beside_a_known_one_counts_and_is_the_cause() {
        let on_base = base(&["a"], Verdict::Kernel, "PASS");
        let (found, compared) = against(kernel(), &said(&["a", "c"], "PASS"), &on_base);
        assert_eq!(found.verdict, Verdict::Kernel);
        assert_eq!(found.cause, "new: WARNING in c");
        assert!(!compared.excused);
    }

    #[test]
    fn a_base_that_did_not_run_excuses_nothing() {
        for gone in [Verdict::Infra, Verdict::Skip { reason: "x".into() }] {
            let on_base = base(&["a"], gone, "PASS");
            assert_eq!(verdict(&said(&["a"], "PASS"), &on_base).0, Verdict::Kernel);
        }
        let none = BaseCase { verdict: None, ..base(&["a"], Verdict::Pass, "PASS") };
        assert_eq!(verdict(&said(&["a"], "PASS"), &none).0, Verdict::Kernel);
    }

    #[test]
    fn a_known_fault_does_not_hide_another_ending() {
        let on_base = base(&["a"], Verdict::Kernel, "PASS");
        assert_eq!(verdict(&said(&["a"], "HANG"), &on_base).0, Verdict::Kernel);
        let hung = base(&["a"], Verdict::Kernel, "HANG");
        assert_eq!(verdict(&said(&["a"], "HANG"), &hung).0, Verdict::Known);
        assert_eq!(
            verdict(&said(&["a"], "FAIL: x"), &base(&["a"], Verdict::Kernel, "FAIL: y")).0,
            Verdict::Kernel
        );
    }

    #[test]
    fn a_known_fault_does_not_hide_a_missing_snapshot() {
        let on_base = base(&["a"], Verdict::Kernel, "NEW");
        let (found, compared) = against(kernel(), &said(&["a"], "NEW"), &on_base);
        assert_eq!((found.verdict, found.owner), (Verdict::New, Some(Owner::Scenario)));
        assert!(compared.excused && found.snapshot_new.is_empty());
    }

    #[test]
    fn a_taint_without_a_message_is_not_excused() {
        let on_base = base(&["a"], Verdict::Kernel, "PASS");
        assert_eq!(verdict(&said(&[], "KERNEL"), &on_base).0, Verdict::Kernel);
    }
}
