//! The prefixes that printk puts before a message.

/// Longest stamp or caller, bytes.
const MAX_PREFIX: usize = 24;

/// A message and who printed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Message<'l> {
    /// Task or CPU, `T12` or `C1`, when the kernel tells.
    pub(super) caller: Option<&'l str>,
    /// The message without prefixes and white space around it.
    pub(super) text: &'l str,
}

/// The messages of a line. One begins at its start, and one behind every time stamp in it:
/// output of programs has no newline of its own, so a stamp may be anywhere.
pub(super) fn messages(line: &str) -> Vec<Message<'_>> {
    let stamps = line.match_indices('[').filter(|(at, _)| behind_stamp(&line[*at..]).is_some());
    let mut starts: Vec<usize> = std::iter::once(0).chain(stamps.map(|(at, _)| at)).collect();
    starts.dedup();
    let ends = starts.iter().skip(1).copied().chain([line.len()]);
    starts.iter().zip(ends).map(|(start, end)| message(&line[*start..end])).collect()
}

/// What follows `[   12.345678]`, when the text begins so.
fn behind_stamp(text: &str) -> Option<&str> {
    let (inside, rest) = bracketed(text)?;
    let (seconds, micros) = inside.trim_start().split_once('.')?;
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    (digits(seconds) && micros.len() == 6 && digits(micros)).then_some(rest)
}

/// What stands in the brackets that the text begins with, and what follows them. No further
/// than a prefix reaches: a line of brackets alone must not cost the square of its length.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('[')?;
    text.bytes().next().filter(|b| b.is_ascii_alphanumeric() || *b == b' ')?;
    let end = text.bytes().take(MAX_PREFIX).position(|b| b == b']')?;
    Some((&text[..end], &text[end + 1..]))
}

/// Removes log level, stamp, caller (`[T12]`, `[    C1]`) and white space.
fn message(text: &str) -> Message<'_> {
    let mut text = text.trim_start();
    if let Some((level, rest)) = text.strip_prefix('<').and_then(|t| t.split_once('>'))
        && level.len() <= 3
        && level.bytes().all(|b| b.is_ascii_digit())
    {
        text = rest;
    }
    text = behind_stamp(text).unwrap_or(text).trim_start();
    let (caller, text) = match behind_caller(text) {
        Some((caller, rest)) => (Some(caller), rest),
        None => (None, text),
    };
    // The level of a message that follows on the same line.
    let text = text.trim();
    let text = text.rsplit_once('<').map_or(text, |(before, level)| {
        let digits = level.strip_suffix('>').is_some_and(|l| l.bytes().all(|b| b.is_ascii_digit()));
        if digits { before } else { text }
    });
    Message { caller, text }
}

fn behind_caller(text: &str) -> Option<(&str, &str)> {
    let (inside, rest) = bracketed(text)?;
    let caller = inside.trim_start();
    let number = caller.strip_prefix(['T', 'C'])?;
    (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some((caller, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<&str> {
        messages(line).into_iter().map(|m| m.text).collect()
    }

    #[test]
    fn prefixes_go_and_messages_stay() {
        for line in [
            "BUG: x",
            "[    1.000000] BUG: x",
            "[12345.678901][    T1] BUG: x\r",
            "[    1.000000] [    C0] BUG: x",
            "[   T1] BUG: x",
            "<4>[    1.000000] BUG: x",
            "half a line of a program[    1.000000][  T12] BUG: x",
            "[    0.900000] cut sh[    1.000000] BUG: x",
            "[    0.900000] BUG: x<6>[    1.000000] next",
        ] {
            assert!(texts(line).contains(&"BUG: x"), "{line}: {:?}", texts(line));
        }
    }

    #[test]
    fn callers_are_told() {
        let caller = |line| messages(line).last().and_then(|m| m.caller);
        assert_eq!(caller("[    1.000000][  T12] x"), Some("T12"));
        assert_eq!(caller("[    1.000000] [    C1] x"), Some("C1"));
        assert_eq!(caller("[    1.000000] [Hardware Error]: x"), None);
    }

    #[test]
    fn what_only_looks_like_a_prefix_is_none() {
        for line in ["[a.b] BUG: x", "[1.5] BUG: x", "say BUG: x", "[T] BUG: x", "[", "<>", "[]]["]
        {
            assert!(!texts(line).contains(&"BUG: x"), "{line}");
        }
    }
}
