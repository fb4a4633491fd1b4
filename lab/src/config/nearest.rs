//! The known name that a mistyped one is closest to.

/// The closest of `known` to `name`, unless all are too far off to be what was meant.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (closeness(name, candidate), candidate))
        .filter(|(score, _)| *score >= 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// 0 to 1. The last part of a path counts as much as the whole: `tree` is `correctness/tree`.
fn closeness(name: &str, candidate: &str) -> f64 {
    let last = candidate.rsplit('/').next().unwrap_or(candidate);
    let whole = strsim::jaro_winkler(name, candidate);
    whole.max(strsim::jaro_winkler(name, last) - 0.01)
}

/// `did you mean ...?`, or the list of what there is.
pub fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    if let Some(close) = nearest(name, known.clone()) {
        return format!("did you mean `{close}`?");
    }
    let all: Vec<&str> = known.into_iter().collect();
    match all.len() {
        0 => "none is known".into(),
        1..=16 => format!("known: {}", all.join(", ")),
        n => format!("known: {} and {} more", all[..12].join(", "), n - 12),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_name_and_noise_finds_none() {
        let known = ["correctness/tree", "perf/randread", "teardown/abort"];
        assert_eq!(nearest("tre", known), Some("correctness/tree"));
        assert_eq!(nearest("perf/ranread", known), Some("perf/randread"));
        assert_eq!(nearest("zzz", known), None);
        assert_eq!(suggestion("zzz", ["a", "b"]), "known: a, b");
    }
}
