//! The one place of the command line that prints. Colors are stripped where the choice or the
//! stream asks for it.

use std::io::{self, Write};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use lab::report::escape::clip;

/// Characters of a line of a message.
const MAX_LINE: usize = 4096;

/// Prints lines to standard output. A reader that went away is no failure.
pub(super) fn lines<S: AsRef<str>>(lines: impl IntoIterator<Item = S>) -> ExitCode {
    let mut out = anstream::stdout().lock();
    let written = lines.into_iter().try_for_each(|line| writeln!(out, "{}", line.as_ref()));
    match written.and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            error(&format!("cannot write to standard output: {e}"));
            ExitCode::from(3)
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Prints `error: ...` to standard error, one a line of `text`.
pub(super) fn error(text: &str) {
    const RED: Style = AnsiColor::Red.on_default().bold();
    let mut err = anstream::stderr().lock();
    for line in text.lines() {
        // Nowhere is left to tell that standard error is gone.
        let line = clip(line, MAX_LINE);
        let _ = writeln!(err, "{RED}error{RED:#}: {line}");
    }
}

/// Prints a line about what takes long or was decided to standard error.
pub(super) fn note(text: &str) {
    // Titles of patches and names of files are somebody's words.
    let _ = writeln!(anstream::stderr().lock(), "lab: {}", clip(text, MAX_LINE));
}

/// Prints text that is drawn already to standard error.
pub(super) fn drawn(text: &str) {
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}
