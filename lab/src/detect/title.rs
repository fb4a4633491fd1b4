//! Titles from the templates of the rules; what differs from run to run is not in them.

use super::report::Report;

/// Characters of a title.
const MAX_TITLE: usize = 160;

/// The title of a report.
pub(super) fn title(report: &Report) -> String {
    let rest = report.rest.as_str();
    let what = stable(first_part(rest));
    let mut title = report.rule.title.to_owned();
    if title.contains("{pair}") {
        title = title.replace("{pair}", &pair(rest));
    }
    title = title.replace("{rest}", &stable(rest.trim()));
    title = title.replace("{slab}", &slab(rest));
    title = title.replace("{access}", report.access.unwrap_or_default());
    title = title.replace("{what}", &what);
    title = match report.function() {
        Some(function) => title.replace("{f}", &function),
        None => title.replace(" in {f}", ""),
    };
    let words: Vec<&str> = title.split_whitespace().collect();
    words.join(" ").trim_end_matches([':', ' ']).chars().take(MAX_TITLE).collect()
}

/// The text up to what names a place or a number.
fn first_part(text: &str) -> &str {
    let text = text.trim_start_matches([' ', ':']);
    let ends = [" in ", " at ", ": ", " - ", " (", ",", "!", " mm:", " process ", " ["];
    let end = ends.iter().filter_map(|e| text.find(e)).min().unwrap_or(text.len());
    text[..end].trim()
}

/// `kmalloc-64 (Tainted: G): Right Redzone overwritten` to cache and complaint.
fn slab(text: &str) -> String {
    let cache = text.split(' ').next().unwrap_or_default();
    let complaint = text.rsplit(": ").next().unwrap_or_default();
    format!("{complaint} ({cache})")
}

/// Both functions of a data race, in an order that does not depend on who came first.
fn pair(text: &str) -> String {
    let names = text.split_once(" in ").map_or(text, |(_, names)| names);
    let name = |s: &str| s.trim().split(['+', ' ', '.']).next().unwrap_or_default().to_owned();
    let mut names: Vec<String> = names.split(" / ").map(name).collect();
    names.sort();
    names.join(" / ")
}

/// Addresses become ADDR and numbers N, unless they are part of a word.
pub(super) fn stable(text: &str) -> String {
    let mut out = String::new();
    let mut word = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || c == '_' {
            word.push(c);
        } else {
            out.push_str(stable_word(&word));
            word.clear();
            out.push(c);
        }
    }
    out.push_str(stable_word(&word));
    out
}

fn stable_word(word: &str) -> &str {
    let hex = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_hexdigit());
    let address = word.strip_prefix("0x").is_some_and(hex)
        || word.len() >= 8 && hex(word) && word.bytes().any(|b| b.is_ascii_digit());
    if address {
        "ADDR"
    } else if !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()) {
        "N"
    } else {
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_goes() {
        assert_eq!(stable("exitcode=0x0000000b of 12"), "exitcode=ADDR of N");
        assert_eq!(stable("x86 at ffff8881deadbeef, kmalloc-64"), "x86 at ADDR, kmalloc-N");
        assert_eq!(stable("deadbeef feedbee"), "deadbeef feedbee");
        assert_eq!(pair("data-race in b+0x1/0x2 / a.isra.0"), "a / b");
        assert_eq!(first_part(": state in process x"), "state");
    }
}
