//! What is wrong with configuration files, and how people see it.
//!
//! Problems carry byte spans; only here do they become text. No file is read here.

use std::fmt;
use std::ops::Range;

use miette::{GraphicalReportHandler, GraphicalTheme, NamedSource, SourceSpan};

/// A configuration file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Path below the project root, with `/`.
    pub path: String,
    /// Contents, at most [`SourceFile::MAX_BYTES`].
    pub text: String,
}

impl SourceFile {
    /// Bound of a file, bytes.
    pub const MAX_BYTES: usize = 1 << 20;
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Bytes of the file that it concerns.
    pub span: Range<usize>,
    /// Lower-case sentence fragment.
    pub message: String,
    /// What to do about it; shown at the caret.
    pub hint: Option<String>,
}

/// All that is wrong with one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProblems {
    /// The file.
    pub file: SourceFile,
    /// Never empty; in order of position.
    pub problems: Vec<Problem>,
}

/// All that is wrong with a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors {
    /// Never empty; in the order in which the files were given.
    pub files: Vec<FileProblems>,
}

/// One problem in the form that miette draws.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("{message}")]
struct Drawn {
    message: String,
    #[source_code]
    text: NamedSource<String>,
    #[label("{hint}")]
    span: SourceSpan,
    hint: String,
}

/// Longest part of a line that is drawn, bytes.
const MAX_DRAWN: usize = 500;

/// Longest message without a drawing, characters.
const MAX_MESSAGE: usize = 400;

/// Columns that a drawing is wrapped to.
const WIDTH: usize = 100;

impl ConfigErrors {
    /// Problems in all files.
    pub fn count(&self) -> usize {
        self.files.iter().map(|f| f.problems.len()).sum()
    }

    /// Every problem with file, line and caret. With `color`, ANSI sequences are part of it.
    pub fn render(&self, color: bool) -> String {
        let theme = match color {
            true => GraphicalTheme::unicode(),
            false => GraphicalTheme::unicode_nocolor(),
        };
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(WIDTH)
            .with_context_lines(1)
            .with_links(false);
        let mut text = String::new();
        for file in &self.files {
            for problem in &file.problems {
                if !can_be_drawn(&file.file, problem)
                    || handler.render_report(&mut text, &drawn(&file.file, problem)).is_err()
                {
                    text.push_str(&plain(&file.file, problem));
                    let hint = problem.hint.iter().map(|hint| format!("  {}\n", clipped(hint)));
                    text.extend(hint);
                }
            }
        }
        let (problems, files) = (self.count(), self.files.len());
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        text.push_str(&format!(
            "{problems} error{} in {files} file{}\n",
            plural(problems),
            plural(files)
        ));
        text
    }
}

fn drawn(file: &SourceFile, problem: &Problem) -> Drawn {
    let start = boundary(&file.text, problem.span.start);
    let end = boundary(&file.text, problem.span.end).max(start);
    // A label over several lines is drawn as a bracket; the first line is enough to find it.
    let line_end = file.text[start..end].find('\n').map_or(end, |n| start + n);
    Drawn {
        message: problem.message.clone(),
        text: NamedSource::new(&file.path, file.text.clone()),
        span: (start..line_end).into(),
        hint: problem.hint.clone().unwrap_or_else(|| "here".into()),
    }
}

/// Whether the lines around a problem are short enough to be shown. Drawing a long line would
/// bury the message, and the drawing library cannot indent beyond 65535 columns.
fn can_be_drawn(file: &SourceFile, problem: &Problem) -> bool {
    let start = boundary(&file.text, problem.span.start);
    let before = file.text[..start].rsplit('\n').take(2);
    let after = file.text[start..].split('\n').take(2);
    before.chain(after).all(|part| part.len() <= MAX_DRAWN)
}

fn plain(file: &SourceFile, problem: &Problem) -> String {
    let (line, column) = position(&file.text, problem.span.start);
    format!("{}:{line}:{column}: {}\n", file.path, clipped(&problem.message))
}

/// A message that quotes a long value, shortened.
fn clipped(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_string(),
    }
}

/// The byte, or where the character that it is part of begins, or the end.
fn boundary(text: &str, byte: usize) -> usize {
    let mut byte = byte.min(text.len());
    while !text.is_char_boundary(byte) {
        byte -= 1;
    }
    byte
}

/// Line and column of a byte, both from 1; the column counts characters.
fn position(text: &str, byte: usize) -> (usize, usize) {
    let before = &text[..boundary(text, byte)];
    let line_start = before.rfind('\n').map_or(0, |n| n + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for file in &self.files {
            for problem in &file.problems {
                f.write_str(&plain(&file.file, problem))?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_told_in_a_short_message() {
        for at in [70_000, 3] {
            let file =
                SourceFile { path: "a.toml".into(), text: format!("a={}", "[".repeat(70_000)) };
            let (message, hint) = ("x".repeat(1000), Some("y".into()));
            let problems = vec![Problem { span: at..at + 1, message, hint }];
            let text = ConfigErrors { files: vec![FileProblems { file, problems }] }.render(false);
            assert!(text.starts_with(&format!("a.toml:1:{}: xxx", at + 1)), "{text}");
            assert!(text.len() < 600 && text.contains("  y\n"), "{text}");
        }
    }

    #[test]
    fn positions_count_lines_and_characters() {
        assert_eq!(position("a\nbä = 1", 6), (2, 4));
        assert_eq!(position("", 9), (1, 1));
    }
}
