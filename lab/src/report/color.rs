//! Whether to colour, and how. A colour never says what the text does not.

use anstyle::{AnsiColor, Style};

use crate::judge::verdict::Verdict;

/// What `--color` says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum When {
    /// By terminal and environment.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Whether to colour: the flag wins, then NO_COLOR, CLICOLOR_FORCE, CLICOLOR=0 and TERM=dumb,
/// then whether it is a terminal. `var` looks up the environment.
pub fn wanted(when: When, terminal: bool, var: impl Fn(&str) -> Option<String>) -> bool {
    let set = |name: &str| var(name).is_some_and(|v| !v.is_empty());
    match when {
        When::Always => true,
        When::Never => false,
        When::Auto if set("NO_COLOR") => false,
        When::Auto if set("CLICOLOR_FORCE") => var("CLICOLOR_FORCE").is_some_and(|v| v != "0"),
        When::Auto => {
            let dumb = var("TERM").is_some_and(|v| v == "dumb");
            terminal && !dumb && var("CLICOLOR").is_none_or(|v| v != "0")
        }
    }
}

/// Style of a verdict.
pub(super) fn verdict(verdict: &Verdict) -> Style {
    let color = match verdict {
        Verdict::Pass | Verdict::PerfImp => AnsiColor::Green,
        Verdict::Fail | Verdict::Kernel | Verdict::Hang | Verdict::PerfReg => AnsiColor::Red,
        Verdict::Infra => AnsiColor::Magenta,
        Verdict::Skip { .. } => AnsiColor::Blue,
        Verdict::Undecided | Verdict::Flaky { .. } | Verdict::New | Verdict::Known => {
            AnsiColor::Yellow
        }
    };
    color.on_default().bold()
}

/// `text` in a style, when colours are wanted.
pub(super) fn paint(text: &str, style: Style, color: bool) -> String {
    if color { format!("{style}{text}{style:#}") } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_respected() {
        let with = |pairs: &'static [(&str, &str)], terminal| {
            wanted(When::Auto, terminal, |name| {
                pairs.iter().find(|(k, _)| *k == name).map(|(_, v)| v.to_string())
            })
        };
        assert!(with(&[], true));
        assert!(!with(&[], false));
        assert!(!with(&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], true));
        assert!(with(&[("NO_COLOR", "")], true));
        assert!(with(&[("CLICOLOR_FORCE", "1")], false));
        assert!(!with(&[("CLICOLOR", "0")], true));
        assert!(!with(&[("TERM", "dumb")], true));
        assert!(wanted(When::Always, false, |_| Some("1".into())));
        assert!(!wanted(When::Never, true, |_| None));
    }
}
