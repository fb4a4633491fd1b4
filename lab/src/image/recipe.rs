//! Recipes of `images/`: what goes into a layer of the guest image.
//!
//! Keys: `summary`; `programs`, names of host programs that are packed with all they need.

use std::ops::Range;

use toml_edit::{Document, Item};

/// One recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// One line for people.
    pub summary: String,
    /// Host programs by name.
    pub programs: Vec<String>,
}

/// One thing wrong with a recipe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RecipeProblem {
    /// What is wrong.
    pub message: String,
    /// Where, bytes; absent for what is missing.
    pub span: Option<Range<usize>>,
}

impl Recipe {
    /// Reads a recipe.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it at once.
    pub fn parse(text: &str) -> Result<Recipe, Vec<RecipeProblem>> {
        let document = Document::parse(text).map_err(|error| {
            vec![RecipeProblem { message: error.message().to_owned(), span: error.span() }]
        })?;
        let mut problems = Vec::new();
        let mut recipe = Recipe { summary: String::new(), programs: Vec::new() };
        for (key, item) in document.as_table() {
            let read = match key {
                "summary" => text_of(item).map(|text| recipe.summary = text),
                "programs" => programs(item).map(|names| recipe.programs = names),
                _ => Err(unknown(key)),
            };
            if let Err(message) = read {
                let span = document.as_table().key(key).and_then(toml_edit::Key::span);
                problems.push(RecipeProblem { message, span: item.span().or(span) });
            }
        }
        if !document.as_table().contains_key("summary") {
            problems.push(RecipeProblem { message: "`summary` is missing".into(), span: None });
        }
        if problems.is_empty() { Ok(recipe) } else { Err(problems) }
    }
}

fn text_of(item: &Item) -> Result<String, String> {
    item.as_str().map(str::to_owned).ok_or_else(|| "a string is needed here".to_owned())
}

fn programs(item: &Item) -> Result<Vec<String>, String> {
    let array = item.as_array().ok_or("a list of strings is needed here")?;
    array.iter().map(|value| program(value.as_str())).collect()
}

/// A name, never a path: what goes into an image is what the host's user would run.
fn program(name: Option<&str>) -> Result<String, String> {
    let name = name.ok_or("a list of strings is needed here")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        return Err(format!("`{name}` is no program name"));
    }
    Ok(name.to_owned())
}

fn unknown(key: &str) -> String {
    let known = ["summary", "programs"];
    let near = known.iter().find(|name| strsim::damerau_levenshtein(key, name) <= 2);
    match near {
        Some(name) => format!("unknown key `{key}`, did you mean `{name}`?"),
        None => format!("unknown key `{key}`, the keys are `summary` and `programs`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_is_read() {
        let recipe = Recipe::parse("summary = \"s\"\nprograms = [\"fio\"]\n").unwrap();
        assert_eq!(recipe, Recipe { summary: "s".into(), programs: vec!["fio".into()] });
    }

    #[test]
    fn all_problems_come_at_once_with_their_places() {
        let text = "program = 1\nprograms = [\"../x\"]\n";
        let problems = Recipe::parse(text).unwrap_err();
        let messages: Vec<_> = problems.iter().map(|p| p.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "unknown key `program`, did you mean `programs`?",
                "`../x` is no program name",
                "`summary` is missing"
            ]
        );
        assert_eq!(problems[1].span, Some(23..31));
        assert!(problems[0].span.is_some());
    }

    #[test]
    fn broken_text_is_one_problem() {
        assert_eq!(Recipe::parse("summary = ").unwrap_err().len(), 1);
    }

    #[test]
    fn the_recipes_of_the_project_are_sound() {
        for text in
            [include_str!("../../../images/agent.toml"), include_str!("../../../images/fio.toml")]
        {
            Recipe::parse(text).unwrap();
        }
    }
}
