//! Readers that forgive nothing, for output that tells of a hostile guest.

use quick_junit::Report;

/// Asserts that a terminal would obey nothing in `text`, and that nothing in it hides or turns
/// what stands beside it.
pub(crate) fn assert_harmless(what: &str, text: &str) {
    let bad = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{ad}' | '\u{180e}' | '\u{e0000}'..='\u{e007f}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}')
    };
    if let Some(at) = text.find(bad) {
        let from = text[..at].rfind('\n').map_or(0, |n| n + 1);
        let line: String = text[from..].chars().take(400).collect();
        panic!("{what} has {:?}: {line:?}", text[at..].chars().next());
    }
}

/// Reads JUnit; gives the number of cases.
pub(crate) fn junit(text: &str) -> usize {
    let report = Report::deserialize_from_str(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    report.test_suites.iter().map(|suite| suite.test_cases.len()).sum()
}

/// Reads KTAP: a version, a plan and as many results in order at each level, nothing else but
/// diagnostics. Gives the results of the innermost level.
pub(crate) fn ktap(text: &str) -> Vec<String> {
    let mut lines: Vec<&str> = text.lines().collect();
    let totals = lines.pop().unwrap_or_default();
    assert!(totals.starts_with("# Totals: "), "{totals}");
    let mut leaves = Vec::new();
    let rest = level(&lines, 0, &mut leaves);
    assert_eq!(rest, &[] as &[&str], "lines behind the end");
    leaves
}

/// One level of indentation; gives the lines behind it.
fn level<'l, 't>(lines: &'l [&'t str], depth: usize, leaves: &mut Vec<String>) -> &'l [&'t str] {
    let indent = "  ".repeat(depth);
    let own = |line: &'t str| line.strip_prefix(indent.as_str()).filter(|l| !l.starts_with(' '));
    assert_eq!(own(lines[0]), Some("KTAP version 1"), "{lines:#?}");
    let mut at = 1;
    while own(lines[at]).is_some_and(|line| line.starts_with("# ")) {
        at += 1;
    }
    let plan = own(lines[at]).and_then(|line| line.strip_prefix("1..")).expect("a plan");
    let plan: usize = plan.parse().unwrap();
    at += 1;
    for number in 1..=plan {
        let mut nested = false;
        loop {
            match own(lines[at]) {
                Some(line) if line.starts_with('#') => at += 1,
                Some(line) => {
                    let result = line.strip_prefix("not ").unwrap_or(line);
                    let rest = result.strip_prefix(&format!("ok {number} "));
                    let rest = rest.unwrap_or_else(|| panic!("result {number}: {line}"));
                    assert!(rest.matches('#').count() <= 1, "{line}");
                    if !nested {
                        leaves.push(line.to_owned());
                    }
                    at += 1;
                    break;
                }
                None => {
                    nested = true;
                    at = lines.len() - level(&lines[at..], depth + 1, leaves).len();
                }
            }
        }
    }
    &lines[at..]
}
