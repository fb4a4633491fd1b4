//! One `[[allow]]` of a scenario: a splat that the case causes on purpose.
//!
//! Keys, all of them required: `title` (a glob over titles of faults), `reason`, `link` and
//! `until` (the last day, such as `"2027-06-30"`). Whether it is over is asked when a case is
//! judged: a file must not become unreadable by the passing of time.

use globset::GlobBuilder;
use jiff::civil::Date;
use toml_edit::Item;

use super::reader::{Sink, Table};
use super::scenario::Allow;
use super::value::FromItem;

/// Least letters and digits of a title: fewer would allow nearly anything.
const MIN_LITERAL: usize = 8;

/// Reads one allowed splat.
pub(super) fn read(table: &Table<'_>) -> Option<Allow> {
    let title: Option<Title> = table.required("title");
    let reason = table.required("reason");
    let link: Option<Link> = table.required("link");
    let until: Option<Day> = table.required("until");
    table.finish();
    Some(Allow { title: title?.0, reason: reason?, link: link?.0, until: until?.0 })
}

struct Title(String);

impl FromItem for Title {
    fn from_item(item: &Item, sink: &Sink) -> Result<Title, String> {
        let text = String::from_item(item, sink)?;
        GlobBuilder::new(&text).build().map_err(|e| format!("a glob: {}", e.kind()))?;
        if text.chars().filter(char::is_ascii_alphanumeric).count() < MIN_LITERAL {
            return Err(format!("a glob with at least {MIN_LITERAL} letters and digits"));
        }
        Ok(Title(text))
    }
}

struct Link(String);

impl FromItem for Link {
    fn from_item(item: &Item, sink: &Sink) -> Result<Link, String> {
        let text = String::from_item(item, sink)?;
        let behind = text.strip_prefix("https://").or(text.strip_prefix("http://"));
        behind
            .is_some_and(|rest| !rest.is_empty() && !text.contains(char::is_whitespace))
            .then_some(Link(text))
            .ok_or_else(|| "a link that begins with https://".into())
    }
}

struct Day(Date);

impl FromItem for Day {
    fn from_item(item: &Item, _: &Sink) -> Result<Day, String> {
        item.as_str()
            .filter(|text| text.len() == "2027-06-30".len())
            .and_then(|text| text.parse().ok())
            .map(Day)
            .ok_or_else(|| "a day such as \"2027-06-30\"".into())
    }
}
