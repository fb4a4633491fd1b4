//! The kernel release inside a longer text; pure.

/// The first word of `text`, ended by a space or NUL, where it can be a kernel release:
/// printable, at most 128 bytes, begins with a digit. It becomes part of paths, so it has no
/// slash either.
pub(super) fn release_word(text: &[u8]) -> Option<String> {
    let end = text.iter().position(|b| matches!(b, b' ' | 0))?;
    let word = std::str::from_utf8(text.get(..end.min(129))?).ok()?;
    let sound = word.len() <= 128
        && word.starts_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '/' | '%'));
    sound.then(|| word.to_owned())
}
