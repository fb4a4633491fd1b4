//! The order of Debian package versions; pure.

use std::cmp::Ordering;

/// Compares two package versions as Debian does: epoch, upstream version, revision; each by
/// runs of non-digits and of digits in turn, with `~` before everything, even the end.
pub fn compare(a: &str, b: &str) -> Ordering {
    let (epoch_a, rest_a) = split_epoch(a);
    let (epoch_b, rest_b) = split_epoch(b);
    let (upstream_a, revision_a) = split_revision(rest_a);
    let (upstream_b, revision_b) = split_revision(rest_b);
    compare_digits(epoch_a, epoch_b)
        .then_with(|| compare_part(upstream_a, upstream_b))
        .then_with(|| compare_part(revision_a, revision_b))
}

fn split_epoch(version: &str) -> (&str, &str) {
    version.split_once(':').unwrap_or(("0", version))
}

fn split_revision(version: &str) -> (&str, &str) {
    version.rsplit_once('-').unwrap_or((version, ""))
}

fn compare_part(mut a: &str, mut b: &str) -> Ordering {
    while !(a.is_empty() && b.is_empty()) {
        let (text_a, rest_a) = split_run(a, false);
        let (text_b, rest_b) = split_run(b, false);
        let (digits_a, rest_a) = split_run(rest_a, true);
        let (digits_b, rest_b) = split_run(rest_b, true);
        let order = compare_text(text_a, text_b).then_with(|| compare_digits(digits_a, digits_b));
        if order.is_ne() {
            return order;
        }
        (a, b) = (rest_a, rest_b);
    }
    Ordering::Equal
}

/// The leading run of digits, or of what is none, and the rest.
fn split_run(text: &str, digits: bool) -> (&str, &str) {
    let end = text.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(text.len());
    text.split_at(end)
}

fn compare_digits(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    // Without leading zeros the longer number is the bigger one, whatever its length.
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

fn compare_text(a: &str, b: &str) -> Ordering {
    let end = std::iter::once(0);
    let weights = |text: &str| text.chars().map(weight).chain(end.clone()).collect::<Vec<_>>();
    weights(a).cmp(&weights(b))
}

/// `~` below the end of the text, letters above it, all else above the letters.
fn weight(c: char) -> i64 {
    match c {
        '~' => -1,
        c if c.is_ascii_alphabetic() => i64::from(u32::from(c)),
        c => i64::from(u32::from(c)) + 0x1_0000_0000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_debian_does() {
        // Ascending; each is compared with all that follow.
        let ascending = [
            "0~~",
            "0~",
            "0",
            "6.12.9-1",
            "6.12.10-1~bpo12+1",
            "6.12.10-1",
            "6.12.10-1a",
            "6.12.10-1+b1",
            "7.3~rc2-1~exp1",
            "7.3.4-1~bpo13+1",
            "7.3.4-1",
            "7.3.4a-1",
            "7.3.4+deb13-1",
            "7.3.10-1",
            "1:0.1-1",
        ];
        for (i, a) in ascending.iter().enumerate() {
            assert_eq!(compare(a, a), Ordering::Equal, "{a}");
            for b in &ascending[i + 1..] {
                assert_eq!(compare(a, b), Ordering::Less, "{a} against {b}");
                assert_eq!(compare(b, a), Ordering::Greater, "{b} against {a}");
            }
        }
    }

    #[test]
    fn leading_zeros_and_long_numbers_count_as_numbers() {
        assert_eq!(compare("1.02-1", "1.2-1"), Ordering::Equal);
        assert_eq!(compare("9", "99999999999999999999999999"), Ordering::Less);
        assert_eq!(compare("0:1-1", "1-1"), Ordering::Equal);
        assert_eq!(compare("1-0", "1"), Ordering::Equal);
    }
}
