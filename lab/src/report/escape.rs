//! Makes foreign text safe to show: a guest must not reach the terminal of who reads about it.

use std::fmt::Write;

/// One line of foreign text: control characters, line breaks, escape sequences and characters
/// that change the order of text become visible escapes (`\x1b`); a tab becomes a space.
///
/// What is returned has no control character at all. Text that has none is returned as it is.
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push(' '),
            c if (c as u32) < 0x100 && c.is_control() => push_hex(&mut out, c as u32),
            c if is_unsafe(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// JSON of the same meaning, in which all that [`clean`] would escape is an escape of JSON.
/// `text` is what a serializer wrote: such characters stand in its strings only.
pub fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut pair = [0; 2];
    for c in text.chars() {
        if is_unsafe(c) && c != '\n' {
            for unit in c.encode_utf16(&mut pair) {
                // Writing to a string does not fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// [`clean`], at most `max` characters; what is cut is marked with `…`.
pub fn clip(text: &str, max: usize) -> String {
    // Bytes first, so that an endless line is not walked to its end.
    let end = text.char_indices().nth(max).map_or(text.len(), |(i, _)| i);
    let mut out = clean(&text[..end]);
    let cut = out.char_indices().nth(max.saturating_sub(1)).map(|(i, _)| i);
    if end < text.len() || out.chars().nth(max).is_some() {
        out.truncate(cut.unwrap_or(out.len()));
        out.push('…');
    }
    out
}

fn push_hex(out: &mut String, byte: u32) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.push_str("\\x");
    out.push(char::from(DIGITS[(byte >> 4 & 15) as usize]));
    out.push(char::from(DIGITS[(byte & 15) as usize]));
}

/// Line separators, direction marks, invisible characters, and what XML 1.0 cannot hold.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{180e}' | '\u{e0000}'..='\u{e007f}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_moves_a_cursor_gets_through() {
        assert_eq!(clean("\x1b[2Jgone\r\n\x07"), r"\x1b[2Jgone\x0d\x0a\x07");
        assert_eq!(clean("a\u{9b}31mb\u{7f}"), r"a\x9b31mb\x7f");
        assert_eq!(clean("a\u{202e}b\u{2028}c"), r"a\u{202e}b\u{2028}c");
        assert_eq!(clean("a\tb"), "a b");
        let every: String = (0..0x3000u32).filter_map(char::from_u32).collect();
        assert!(!clean(&every).chars().any(char::is_control));
    }

    #[test]
    fn json_keeps_its_meaning_and_has_nothing_that_a_terminal_obeys() {
        let every: String =
            (0..0x3000u32).chain(0xe0000..0xe0100).filter_map(char::from_u32).collect();
        let raw = serde_json::to_string_pretty(&[every.as_str()]).unwrap();
        let safe = json(&raw);
        assert_eq!(serde_json::from_str::<[String; 1]>(&safe).unwrap(), [every]);
        assert!(raw.contains(is_unsafe) && !safe.replace('\n', "").contains(is_unsafe));
        assert_eq!(json("{\"größer\": \"\u{9b}\"}"), "{\"größer\": \"\\u009b\"}");
    }

    #[test]
    fn plain_text_stays() {
        for text in ["", "[    1.0] fuse: ok", "größer \u{1f427}"] {
            assert_eq!(clean(text), text);
        }
    }

    #[test]
    fn clipping_counts_characters_and_shows_the_cut() {
        assert_eq!(clip("abcdef", 6), "abcdef");
        assert_eq!(clip("abcdefg", 6), "abcde…");
        assert_eq!(clip("ßßßßßßß", 3), "ßß…");
        assert_eq!(clip(&"\x1b".repeat(1000), 10).chars().count(), 10);
        assert_eq!(clip("", 0), "");
    }
}
