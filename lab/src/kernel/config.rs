//! The configuration a kernel was built with; pure.

use std::collections::BTreeMap;

/// Largest file taken, bytes. Real ones have about 300 KiB.
pub const MAX_BYTES: usize = 4 << 20;

/// Why a text is no kernel configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Beyond [`MAX_BYTES`].
    #[error("kernel configuration of {bytes} bytes is beyond the limit of {MAX_BYTES}")]
    TooBig {
        /// Its size, bytes.
        bytes: usize,
    },
    /// A line that is neither blank, comment nor option.
    #[error("line {line} is no kernel option")]
    BadLine {
        /// Counted from 1.
        line: usize,
    },
    /// No option at all.
    #[error("no kernel option in the whole file")]
    Empty,
}

/// Options that are set, with their values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KernelConfig {
    options: BTreeMap<String, String>,
    version: Option<String>,
}

impl KernelConfig {
    /// Reads a `.config`.
    ///
    /// # Errors
    ///
    /// What is too big, has a line of another kind, or no option: the file of something else
    /// must not pass for a configuration that lacks everything.
    pub fn parse(text: &str) -> Result<KernelConfig, ConfigError> {
        if text.len() > MAX_BYTES {
            return Err(ConfigError::TooBig { bytes: text.len() });
        }
        let (mut options, mut version) = (BTreeMap::new(), None);
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                version = version.or_else(|| title_version(line));
                continue;
            }
            let (name, value) = line
                .strip_prefix("CONFIG_")
                .and_then(|option| option.split_once('='))
                .ok_or(ConfigError::BadLine { line: number + 1 })?;
            options.insert(name.to_owned(), value.to_owned());
        }
        if options.is_empty() {
            return Err(ConfigError::Empty);
        }
        Ok(KernelConfig { options, version })
    }

    /// Kernel version in the title line, e.g. `7.3.4`.
    pub fn kernel_version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Value of an option (`y`, `m`, a number, a quoted string); `name` without `CONFIG_`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    /// Which of `required` (names without `CONFIG_`) are not built in, in the given order. A
    /// module counts as missing: the lab's images carry none.
    pub fn missing(&self, required: &[String]) -> Vec<String> {
        required.iter().filter(|name| self.get(name) != Some("y")).cloned().collect()
    }
}

/// `# Linux/x86 7.3.4 Kernel Configuration`
fn title_version(line: &str) -> Option<String> {
    let words = line.strip_prefix("# Linux/")?.strip_suffix(" Kernel Configuration")?;
    words.split_whitespace().nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "#\n# Automatically generated\n#\nCONFIG_FUSE_FS=y\nCONFIG_OVERLAY_FS=m\n\
        # CONFIG_KASAN is not set\nCONFIG_LOCALVERSION=\"-a=b\"\nCONFIG_HZ=250\n";

    #[test]
    fn options_have_values() {
        let config = KernelConfig::parse(SAMPLE).unwrap();
        assert_eq!(config.get("FUSE_FS"), Some("y"));
        assert_eq!(config.get("LOCALVERSION"), Some("\"-a=b\""));
        assert_eq!(config.get("HZ"), Some("250"));
        assert_eq!(config.get("KASAN"), None);
        assert_eq!(config.kernel_version(), None);
    }

    #[test]
    fn the_title_names_the_version() {
        let titled = format!("# Linux/x86 7.3.4 Kernel Configuration\n{SAMPLE}");
        assert_eq!(KernelConfig::parse(&titled).unwrap().kernel_version(), Some("7.3.4"));
    }

    #[test]
    fn modules_and_absent_options_are_missing() {
        let config = KernelConfig::parse(SAMPLE).unwrap();
        let required = ["KASAN", "FUSE_FS", "OVERLAY_FS"].map(String::from);
        assert_eq!(config.missing(&required), ["KASAN", "OVERLAY_FS"]);
        assert!(config.missing(&[]).is_empty());
    }

    #[test]
    fn something_else_is_refused() {
        assert_eq!(KernelConfig::parse("").unwrap_err(), ConfigError::Empty);
        assert_eq!(KernelConfig::parse("# only\n").unwrap_err(), ConfigError::Empty);
        let error = KernelConfig::parse("CONFIG_A=y\n[package]\n").unwrap_err();
        assert_eq!(error, ConfigError::BadLine { line: 2 });
        let big = "#".repeat(MAX_BYTES + 1);
        assert_eq!(
            KernelConfig::parse(&big).unwrap_err(),
            ConfigError::TooBig { bytes: MAX_BYTES + 1 }
        );
    }
}
