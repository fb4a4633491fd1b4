//! Lines to the kernel log, and so to the console. Sparingly: the console is evidence.

use std::io::Write;

/// Longest line, bytes; the kernel cuts near a kilobyte.
const MAX_LINE: usize = 900;

/// Writes a line at level error.
pub(crate) fn error(text: &str) {
    let _ = write(3, text);
}

/// Writes one line at `level`. Line breaks become blanks, the length is bounded.
pub(crate) fn write(level: u8, text: &str) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).open("/dev/kmsg")?;
    file.write_all(line(level, text).as_bytes())
}

fn line(level: u8, text: &str) -> String {
    let text: String = crate::text::start(text, MAX_LINE)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    format!("<{level}>{text}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_and_bounded() {
        assert_eq!(line(3, "a\nb"), "<3>a b\n");
        assert!(line(3, &"é".repeat(2000)).len() <= MAX_LINE + 4);
    }
}
