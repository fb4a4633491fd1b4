//! Bounds on text.

/// The start of `text`, at most `max` bytes of it, whole characters only.
pub(crate) fn start(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_stay_whole() {
        assert_eq!(start("aé", 2), "a");
        assert_eq!(start("aé", 3), "aé");
        assert_eq!(start("aé", 9), "aé");
    }
}
