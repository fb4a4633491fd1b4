//! Fragments of a configuration: merged, and held against what Kconfig made of them. Pure.

use std::collections::BTreeMap;

use super::error::BuildError;
use crate::kernel::config::KernelConfig;
use crate::kernel::recipe::Fragment;

/// What the fragments ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Option without `CONFIG_` to value and the fragment that said so last.
    options: BTreeMap<String, (String, String)>,
}

impl Wanted {
    /// Merges fragments; a later line wins.
    pub(super) fn merge(fragments: &[Fragment]) -> Result<Wanted, BuildError> {
        let mut options = BTreeMap::new();
        for fragment in fragments {
            for (number, line) in fragment.text.lines().enumerate() {
                match parse(line) {
                    Line::Nothing => {}
                    Line::Option(name, value) => {
                        options.insert(name, (value, fragment.name.clone()));
                    }
                    Line::Bad => {
                        return Err(BuildError::FragmentLine {
                            fragment: fragment.name.clone(),
                            line: number + 1,
                            text: line.chars().take(200).collect(),
                        });
                    }
                }
            }
        }
        Ok(Wanted { options })
    }

    /// Whether there can be modules.
    pub(super) fn has_modules(&self) -> bool {
        self.options.get("MODULES").is_some_and(|(value, _)| value == "y")
    }

    /// As one file for `KCONFIG_ALLCONFIG`.
    pub(super) fn text(&self) -> String {
        let line = |(name, (value, _)): (&String, &(String, String))| match value.as_str() {
            "n" => format!("# CONFIG_{name} is not set\n"),
            value => format!("CONFIG_{name}={value}\n"),
        };
        self.options.iter().map(line).collect()
    }

    /// Every line is in the configuration that came out.
    pub(super) fn check(
        &self,
        config: &KernelConfig,
        known: impl Fn(&str) -> bool,
    ) -> Result<(), BuildError> {
        for (name, (wanted, fragment)) in &self.options {
            let got = config.get(name).unwrap_or("n");
            if got != wanted {
                return Err(BuildError::Option {
                    fragment: fragment.clone(),
                    option: name.clone(),
                    wanted: wanted.clone(),
                    got: got.to_owned(),
                    why: if known(name) {
                        "a dependency is not met, or another option forces it"
                    } else {
                        "the source tree has no such option"
                    },
                });
            }
        }
        Ok(())
    }
}

enum Line {
    Nothing,
    Option(String, String),
    Bad,
}

fn parse(line: &str) -> Line {
    let line = line.trim();
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    if let Some(rest) = line.strip_prefix("# CONFIG_") {
        return match rest.strip_suffix(" is not set") {
            Some(name) if is_name(name) => Line::Option(name.to_owned(), "n".to_owned()),
            _ => Line::Nothing,
        };
    }
    if line.is_empty() || line.starts_with('#') {
        return Line::Nothing;
    }
    match line.strip_prefix("CONFIG_").and_then(|option| option.split_once('=')) {
        Some((name, value)) if is_name(name) && !value.is_empty() => {
            Line::Option(name.to_owned(), value.to_owned())
        }
        _ => Line::Bad,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(name: &str, text: &str) -> Fragment {
        Fragment { name: name.into(), text: text.into() }
    }

    fn check(fragments: &[Fragment], config: &str) -> Result<(), String> {
        let wanted = Wanted::merge(fragments).map_err(|e| e.to_string())?;
        let config = KernelConfig::parse(config).unwrap();
        wanted.check(&config, |name| name != "NO_SUCH").map_err(|e| e.to_string())
    }

    #[test]
    fn a_later_fragment_wins() {
        let both = [
            fragment("lean", "# why\nCONFIG_A=y\nCONFIG_N=\"x y\"\n"),
            fragment("off", "# CONFIG_A is not set"),
        ];
        assert_eq!(
            Wanted::merge(&both).unwrap().text(),
            "# CONFIG_A is not set\nCONFIG_N=\"x y\"\n"
        );
        assert_eq!(check(&both, "CONFIG_N=\"x y\"\n"), Ok(()));
        assert!(check(&both, "CONFIG_A=y\nCONFIG_N=\"x y\"\n").unwrap_err().contains("off"));
    }

    #[test]
    fn a_dropped_option_is_named_with_its_fragment() {
        let error = check(&[fragment("lean", "CONFIG_A=y")], "CONFIG_B=y").unwrap_err();
        assert_eq!(
            error,
            "fragment lean: CONFIG_A is wanted as y, but became n: a dependency is not met, or \
             another option forces it"
        );
        let error = check(&[fragment("own", "CONFIG_NO_SUCH=y")], "CONFIG_B=y").unwrap_err();
        assert!(error.ends_with("the source tree has no such option"), "{error}");
    }

    #[test]
    fn a_line_of_something_else_is_refused() {
        let error = check(&[fragment("own", "CONFIG_A=y\nA=y\n")], "CONFIG_A=y").unwrap_err();
        assert!(error.contains("fragment own, line 2") && error.contains("A=y"), "{error}");
    }
}
