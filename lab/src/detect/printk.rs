//! The prefixes that printk puts before a message.

/// The places in a line where a kernel message may begin: its start, and behind every time
/// stamp in it. Output of programs has no newline of its own, so a stamp may be anywhere.
pub(super) fn messages(line: &str) -> impl Iterator<Item = &str> {
    let stamps = line.match_indices('[').filter_map(|(i, _)| behind_stamp(&line[i..]));
    std::iter::once(line).chain(stamps).map(strip_prefixes)
}

/// What follows `[   12.345678]`, when the text begins so.
fn behind_stamp(text: &str) -> Option<&str> {
    let (inside, rest) = text.strip_prefix('[')?.split_once(']')?;
    let (seconds, micros) = inside.trim_start().split_once('.')?;
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    (digits(seconds) && micros.len() == 6 && digits(micros)).then_some(rest)
}

/// Removes log level, stamp, caller (`[T12]`, `[    C1]`) and white space.
fn strip_prefixes(text: &str) -> &str {
    let mut text = text.trim_start();
    if let Some((level, rest)) = text.strip_prefix('<').and_then(|t| t.split_once('>'))
        && level.len() <= 3
        && level.bytes().all(|b| b.is_ascii_digit())
    {
        text = rest;
    }
    text = behind_stamp(text).unwrap_or(text).trim_start();
    text = behind_caller(text).unwrap_or(text);
    text.trim()
}

fn behind_caller(text: &str) -> Option<&str> {
    let (inside, rest) = text.strip_prefix('[')?.split_once(']')?;
    let number = inside.trim_start().strip_prefix(['T', 'C'])?;
    (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_go_and_messages_stay() {
        for line in [
            "BUG: x",
            "[    1.000000] BUG: x",
            "[12345.678901][    T1] BUG: x\r",
            "[    1.000000] [    C0] BUG: x",
            "<4>[    1.000000] BUG: x",
            "half a line of a program[    1.000000][  T12] BUG: x",
        ] {
            assert!(messages(line).any(|m| m == "BUG: x"), "{line}");
        }
    }

    #[test]
    fn what_only_looks_like_a_prefix_is_none() {
        for line in ["[a.b] BUG: x", "[1.5] BUG: x", "say BUG: x", "[T] BUG: x", "[", "<>", "[]]["]
        {
            assert!(!messages(line).any(|m| m == "BUG: x"), "{line}");
        }
    }
}
