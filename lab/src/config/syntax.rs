//! All syntax errors of a TOML text. Parsers stop at the first error, or at the first of its
//! sort; here the statement that is wrong is taken out and the rest is parsed again.

use std::ops::Range;

use toml_edit::Document;

/// Statements that are taken out.
const MAX_ROUNDS: usize = 32;

/// Errors that are looked for; a text with more is not TOML at all.
const MAX_ERRORS: usize = 64;

/// Nesting that the grammar follows.
const MAX_DEPTH: u32 = 80;

/// An error and its place.
pub(super) type SyntaxError = (Range<usize>, String);

/// Every error found; empty if the text is TOML.
pub(super) fn errors(text: &str) -> Vec<SyntaxError> {
    let mut rest = text.to_string();
    let mut found: Vec<SyntaxError> = Vec::new();
    for _ in 0..MAX_ROUNDS {
        let new = errors_of_round(&rest);
        let mut taken_out = false;
        for error in new {
            taken_out |= take_out(&mut rest, error.0.start);
            if !found.iter().any(|(span, _)| *span == error.0) {
                found.push(error);
            }
        }
        if !taken_out || found.len() >= MAX_ERRORS {
            break;
        }
    }
    found
}

/// Errors of the grammar, and the first of any other sort: a key given twice, a value left out.
fn errors_of_round(text: &str) -> Vec<SyntaxError> {
    let Err(first) = Document::parse(text) else { return Vec::new() };
    let mut errors = grammar(text);
    let at = first.span().unwrap_or(0..0);
    if !errors.iter().any(|(span, _)| *span == at) {
        errors.push((at, first.message().trim().to_string()));
    }
    errors
}

fn grammar(text: &str) -> Vec<SyntaxError> {
    use toml_parser::parser::{RecursionGuard, parse_document};
    let tokens = toml_parser::Source::new(text).lex().into_vec();
    let mut errors: Vec<toml_parser::ParseError> = Vec::new();
    let mut ignored = ();
    parse_document(&tokens, &mut RecursionGuard::new(&mut ignored, MAX_DEPTH), &mut errors);
    errors
        .iter()
        .take(MAX_ERRORS)
        .map(|e| {
            let span = e.unexpected().or(e.context()).map_or(0..0, |s| s.start()..s.end());
            (span, e.description().to_string())
        })
        .collect()
}

/// Replaces the line of a byte by one of the same length that is right, if the rest of the text
/// then means what it meant before. Tells whether it did.
fn take_out(text: &mut String, byte: usize) -> bool {
    let Some(before) = text.get(..byte) else { return false };
    let start = before.rfind('\n').map_or(0, |n| n + 1);
    let end = text[byte..].find('\n').map_or(text.len(), |n| byte + n);
    let Some(right) = stand_in(&text[start..end]) else { return false };
    text.replace_range(start..end, &right);
    true
}

/// A line that can stand for a wrong one: nothing for an assignment that ends with its line, a
/// header for a header.
fn stand_in(line: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if let Some((key, value)) = line.split_once('=') {
        let key = key.trim();
        let goes_on = ["[", "{", "'''", "\"\"\""].iter().any(|open| value.contains(open));
        let whole = !key.is_empty() && key.chars().all(plain) && !goes_on;
        return whole.then(|| " ".repeat(line.len()));
    }
    let header = line.strip_prefix('[').map(|rest| rest.strip_prefix('[').unwrap_or(rest));
    let header = header?.starts_with(plain) && !line.contains([',', '#', '"']);
    let letters = line.len().checked_sub("[[]]".len()).filter(|n| *n > 0)?;
    header.then(|| format!("[[{}]]", "z".repeat(letters))).filter(|right| right != line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(text: &str) -> Vec<usize> {
        let mut starts: Vec<usize> = errors(text).into_iter().map(|(span, _)| span.start).collect();
        starts.sort();
        starts
    }

    #[test]
    fn a_megabyte_of_noise_is_given_up_on() {
        let found = errors(&"= [\n".repeat(1 << 18));
        assert!((1..=2 * MAX_ERRORS).contains(&found.len()), "{}", found.len());
    }

    #[test]
    fn each_wrong_statement_is_found_and_none_beside_them() {
        assert_eq!(errors("a = 1\nb = [\n1,\n2]\n"), []);
        assert_eq!(starts("a = \nb = 1\nc = \n"), [4, 15]);
        assert_eq!(starts("a = 1\na = 2\nb = 'x\nc = 08\n"), [6, 18, 23]);
        assert_eq!(starts("a = \n[[node\nc == 1\n[limits\ne = 1\n"), [4, 11, 15, 17, 26]);
        // A value that was begun goes on; what follows cannot be told from it.
        assert_eq!(starts("a = [1\nb = 2\n").first(), Some(&6));
    }
}
