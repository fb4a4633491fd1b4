//! Lines to the agent.

use std::io::Write;

/// Writes a line and flushes it. A client whose agent is gone ends.
pub(crate) fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    if writeln!(out, "{text}").and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}
