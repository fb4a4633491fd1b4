//! Tables of a TOML document as a file format reads them: every key is asked for once, and
//! what is wrong is collected, so that one pass over a file finds all of its errors.

use std::cell::RefCell;
use std::ops::{Range, RangeInclusive};

use toml_edit::{Document, Item, TableLike};

use super::nearest::suggestion;
use super::problem::{FileProblems, Problem, SourceFile};
use super::syntax;
use super::value::FromItem;

/// Problems shown of one file; a file with more is not what was meant to be read.
const MAX_PROBLEMS: usize = 64;

/// Where problems of one file are collected.
#[derive(Debug, Default)]
pub(super) struct Sink {
    problems: RefCell<Vec<Problem>>,
}

impl Sink {
    /// Adds a problem without a hint.
    pub(super) fn add(&self, span: Range<usize>, message: impl Into<String>) {
        self.push(Problem { span, message: message.into(), hint: None });
    }

    /// Adds a problem and what to do about it.
    pub(super) fn hint(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.push(Problem { span, message: message.into(), hint: Some(hint.into()) });
    }

    fn push(&self, problem: Problem) {
        let mut problems = self.problems.borrow_mut();
        if problems.len() < MAX_PROBLEMS {
            problems.push(problem);
        }
    }
}

/// Reads one file. `read` gets the root table; what it returns counts only if the sink stayed
/// empty.
pub(super) fn read_file<T>(
    file: &SourceFile,
    read: impl FnOnce(&Table<'_>) -> Option<T>,
) -> Result<T, FileProblems> {
    let sink = Sink::default();
    let value = parse(file, &sink).and_then(|document| {
        let root = Table::new(document.as_table(), 0..0, &sink);
        let value = read(&root);
        root.finish();
        value
    });
    let mut problems = sink.problems.into_inner();
    match value {
        Some(value) if problems.is_empty() => Ok(value),
        _ => {
            problems.sort_by_key(|p| p.span.start);
            if problems.is_empty() {
                // A reader that gave up without a word; the file is refused all the same.
                let message = "the file cannot be understood".into();
                problems.push(Problem { span: 0..0, message, hint: None });
            }
            Err(FileProblems { file: file.clone(), problems })
        }
    }
}

/// The document, or all of its syntax errors.
fn parse<'a>(file: &'a SourceFile, sink: &Sink) -> Option<Document<&'a str>> {
    if file.text.len() > SourceFile::MAX_BYTES {
        sink.add(0..0, format!("file is larger than {} bytes", SourceFile::MAX_BYTES));
        return None;
    }
    match Document::parse(file.text.as_str()) {
        Ok(document) => Some(document),
        Err(_) => {
            for (span, message) in syntax::errors(&file.text) {
                sink.add(span, message);
            }
            None
        }
    }
}

/// One table of a file.
pub(super) struct Table<'a> {
    items: &'a dyn TableLike,
    span: Range<usize>,
    sink: &'a Sink,
    known: RefCell<Vec<&'static str>>,
}

impl<'a> Table<'a> {
    /// `span` is where a missing key is reported.
    pub(super) fn new(items: &'a dyn TableLike, span: Range<usize>, sink: &'a Sink) -> Table<'a> {
        Table { items, span, sink, known: RefCell::default() }
    }

    /// Where problems go.
    pub(super) fn sink(&self) -> &'a Sink {
        self.sink
    }

    /// Header of the table, or the place of an inline table.
    pub(super) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    fn know(&self, key: &'static str) {
        let mut known = self.known.borrow_mut();
        if !known.contains(&key) {
            known.push(key);
        }
    }

    /// The item of a key, which becomes a known key by this.
    fn item(&self, key: &'static str) -> Option<&'a Item> {
        self.know(key);
        self.items.get(key).filter(|item| !item.is_none())
    }

    /// Whether the file has the key; it becomes a known key by this.
    pub(super) fn has(&self, key: &'static str) -> bool {
        self.item(key).is_some()
    }

    /// Whether the value of a key is a string; the key becomes a known one by this.
    pub(super) fn is_text(&self, key: &'static str) -> bool {
        self.item(key).is_some_and(Item::is_str)
    }

    /// Where the value of a key stands, or the table itself.
    pub(super) fn span_of(&self, key: &str) -> Range<usize> {
        self.items.get(key).and_then(Item::span).unwrap_or_else(|| self.span())
    }

    /// A value that may be missing. A wrong one is reported and counts as missing.
    pub(super) fn optional<T: FromItem>(&self, key: &'static str) -> Option<T> {
        let item = self.item(key)?;
        match T::from_item(item, self.sink) {
            Ok(value) => Some(value),
            Err(expected) => {
                self.mismatch(key, item, &expected);
                None
            }
        }
    }

    /// A value that must be there.
    pub(super) fn required<T: FromItem>(&self, key: &'static str) -> Option<T> {
        if self.items.get(key).is_none() {
            self.know(key);
            self.missing(key);
            return None;
        }
        self.optional(key)
    }

    /// A number within bounds, or the default.
    pub(super) fn number<T>(&self, key: &'static str, bounds: RangeInclusive<T>, default: T) -> T
    where
        T: TryFrom<i64> + PartialOrd + std::fmt::Display + Copy,
    {
        self.optional_number(key, bounds).unwrap_or(default)
    }

    /// A number within bounds, if the key is there.
    pub(super) fn optional_number<T>(
        &self,
        key: &'static str,
        bounds: RangeInclusive<T>,
    ) -> Option<T>
    where
        T: TryFrom<i64> + PartialOrd + std::fmt::Display + Copy,
    {
        let wide: i64 = self.optional(key)?;
        match T::try_from(wide) {
            Ok(value) if bounds.contains(&value) => Some(value),
            _ => {
                self.sink.add(
                    self.span_of(key),
                    format!("`{key}` must be {} to {}", bounds.start(), bounds.end()),
                );
                None
            }
        }
    }

    /// One of some names, if the key is there.
    pub(super) fn choice<T: Copy>(&self, key: &'static str, names: &[(&str, T)]) -> Option<T> {
        let given: String = self.optional(key)?;
        let found = names.iter().find(|(name, _)| *name == given).map(|(_, value)| *value);
        if found.is_none() {
            self.sink.hint(
                self.span_of(key),
                format!("unknown {key} `{given}`"),
                suggestion(&given, names.iter().map(|(name, _)| *name)),
            );
        }
        found
    }

    /// One of some names; the key must be there.
    pub(super) fn required_choice<T: Copy>(
        &self,
        key: &'static str,
        names: &[(&str, T)],
    ) -> Option<T> {
        if self.items.get(key).is_none() {
            self.know(key);
            self.missing(key);
            return None;
        }
        self.choice(key, names)
    }

    /// A table below this one.
    pub(super) fn table(&self, key: &'static str) -> Option<Table<'a>> {
        let item = self.item(key)?;
        match item.as_table_like() {
            Some(table) => Some(Table::new(table, self.span_of(key), self.sink)),
            None => {
                self.mismatch(key, item, "a table");
                None
            }
        }
    }

    /// The tables of an array, `[[key]]`; empty when the key is missing. More than `bound` is
    /// a problem.
    pub(super) fn tables(&self, key: &'static str, bound: usize) -> Vec<Table<'a>> {
        let Some(item) = self.item(key) else { return Vec::new() };
        let Some(array) = item.as_array_of_tables() else {
            self.mismatch(key, item, &format!("tables, each under [[{key}]]"));
            return Vec::new();
        };
        if array.len() > bound {
            self.sink.add(self.span_of(key), format!("more than {bound} [[{key}]] tables"));
        }
        let at = |table: &toml_edit::Table| table.span().unwrap_or(0..0);
        array.iter().take(bound).map(|t| Table::new(t, at(t), self.sink)).collect()
    }

    /// Reports every key that nobody asked for.
    pub(super) fn finish(&self) {
        let known = self.known.borrow();
        for (name, _) in self.items.iter().filter(|(name, _)| !known.contains(name)) {
            let key = self.items.get_key_value(name).map(|(key, _)| key);
            self.sink.hint(
                key.and_then(|k| k.span()).unwrap_or_else(|| self.span()),
                format!("unknown key `{}`", name.escape_debug()),
                suggestion(name, known.iter().copied()),
            );
        }
    }

    fn missing(&self, key: &str) {
        self.sink.hint(
            self.span(),
            format!("missing key `{key}`"),
            format!("`{key}` belongs here"),
        );
    }

    fn mismatch(&self, key: &str, item: &Item, expected: &str) {
        let span = item.span().unwrap_or_else(|| self.span());
        self.sink.add(span, format!("`{key}` must be {expected}"));
    }
}
