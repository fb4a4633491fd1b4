//! The package sources of a Debian machine as text; pure.
//!
//! Both forms of apt are read, one-line `.list` and deb822 `.sources`. The project itself
//! names no mirror: it uses the one the machine uses.

use std::collections::BTreeMap;

/// Suites that a Debian archive holds, besides the machine's own codename.
const DEBIAN_SUITES: [&str; 10] = [
    "bullseye",
    "bookworm",
    "trixie",
    "forky",
    "duke",
    "sid",
    "stable",
    "testing",
    "unstable",
    "oldstable",
];

/// Suites of the archive that lie beside a release, on the same mirror.
const COMPANIONS: [&str; 4] = ["-updates", "-backports", "-proposed-updates", "-backports-sloppy"];

/// One source of binary packages that is switched on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Where.
    pub uris: Vec<String>,
    /// Suites.
    pub suites: Vec<String>,
    /// Components.
    pub components: Vec<String>,
    /// Keyring path, or an armoured key in the folded form of deb822.
    pub signed_by: Option<String>,
}

/// The Debian archive as the machine reaches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    /// Where.
    pub uri: String,
    /// Its keys, as in [`Source::signed_by`].
    pub signed_by: Option<String>,
}

/// Reads a `.list` file. Lines of other kinds and lines apt would refuse are left out.
pub fn parse_list(text: &str) -> Vec<Source> {
    text.lines().filter_map(list_line).collect()
}

fn list_line(line: &str) -> Option<Source> {
    let line = line.split('#').next()?.trim();
    let rest = line.strip_prefix("deb")?;
    if !rest.starts_with([' ', '\t']) {
        return None;
    }
    let rest = rest.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(bracket) => bracket.split_once(']')?,
        None => ("", rest),
    };
    let mut words = rest.split_whitespace().map(str::to_owned);
    let (uri, suite) = (words.next()?, words.next()?);
    let signed_by = options
        .split_whitespace()
        .find_map(|option| option.strip_prefix("signed-by="))
        .map(str::to_owned);
    Some(Source { uris: vec![uri], suites: vec![suite], components: words.collect(), signed_by })
}

/// Reads a `.sources` file. Stanzas that are switched off or hold no binary packages are left
/// out.
pub fn parse_deb822(text: &str) -> Vec<Source> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    lines.split(|line| line.trim().is_empty()).filter_map(stanza).collect()
}

fn stanza(lines: &[&str]) -> Option<Source> {
    let fields = fields(lines);
    let words = |name: &str| -> Vec<String> {
        let value = fields.get(name).map_or("", String::as_str);
        value.split_whitespace().map(str::to_owned).collect()
    };
    let off = words("enabled").first().is_some_and(|v| {
        ["no", "false", "0", "off", "without", "disable"].contains(&v.to_lowercase().as_str())
    });
    let (uris, suites) = (words("uris"), words("suites"));
    if off || uris.is_empty() || suites.is_empty() || !words("types").contains(&"deb".into()) {
        return None;
    }
    let signed_by = fields.get("signed-by").filter(|value| !value.trim().is_empty()).cloned();
    Some(Source { uris, suites, components: words("components"), signed_by })
}

/// Names in lower case; values with their continuation lines as they are.
fn fields(lines: &[&str]) -> BTreeMap<String, String> {
    let mut fields: BTreeMap<String, String> = BTreeMap::new();
    let mut last: Option<String> = None;
    for line in lines {
        if line.starts_with([' ', '\t']) {
            if let Some(value) = last.as_ref().and_then(|name| fields.get_mut(name)) {
                value.push('\n');
                value.push_str(line.trim_end());
            }
        } else if let Some((name, value)) = line.split_once(':') {
            let name = name.trim().to_lowercase();
            fields.insert(name.clone(), value.trim().to_owned());
            last = Some(name);
        }
    }
    fields
}

/// The Debian archive among `sources`: one that serves the component `main` of a Debian
/// release. Security archives are others: they do not hold the rest. `codename` is that of the
/// machine, for releases this table does not know yet.
pub fn debian_mirror(sources: &[Source], codename: Option<&str>) -> Option<Mirror> {
    let is_release = |suite: &str| DEBIAN_SUITES.contains(&suite) || codename == Some(suite);
    let is_companion =
        |suite: &str| COMPANIONS.iter().any(|end| suite.strip_suffix(end).is_some_and(is_release));
    let serving = |wanted: &dyn Fn(&str) -> bool| {
        sources
            .iter()
            .filter(|source| source.components.iter().any(|c| c == "main"))
            .find(|source| source.suites.iter().any(|suite| wanted(suite)))
    };
    let source = serving(&is_release).or_else(|| serving(&is_companion))?;
    let uri = source.uris.first()?.clone();
    Some(Mirror { uri, signed_by: source.signed_by.clone() })
}

/// Whether one of `sources` already serves `suite`.
pub fn serves(sources: &[Source], suite: &str) -> bool {
    sources.iter().any(|source| source.suites.iter().any(|s| s == suite))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEB822: &str = "\
Types: deb deb-src
# a comment inside
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/d.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: trixie
Components: main

Types: deb-src
URIs: http://src.example/debian
Suites: trixie
Components: main
";

    #[test]
    fn deb822_stanzas_are_read() {
        let sources = parse_deb822(DEB822);
        assert_eq!(sources.len(), 2);
        assert_eq!(sources[0].suites, ["bookworm", "bookworm-updates"]);
        assert_eq!(sources[0].signed_by.as_deref(), Some("/usr/share/keyrings/d.gpg"));
        assert_eq!(sources[1].signed_by, None);
    }

    #[test]
    fn an_embedded_key_keeps_its_lines() {
        let text = "Types: deb\nURIs: u\nSuites: s\nSigned-By:\n -----BEGIN\n .\n abc\n -----END\n";
        let sources = parse_deb822(text);
        let key = sources[0].signed_by.as_deref();
        assert_eq!(key, Some("\n -----BEGIN\n .\n abc\n -----END"));
    }

    #[test]
    fn list_lines_are_read() {
        let text = "# deb http://commented x main\n\
            deb [arch=amd64 signed-by=/k.gpg] http://m.example/debian trixie main contrib # end\n\
            deb-src http://m.example/debian trixie main\n\
            deb\thttp://n.example/debian sid main\n\
            deb http://incomplete\n\
            debris http://x y z\n\
            deb [unclosed http://x y z\n";
        let sources = parse_list(text);
        assert_eq!(sources.len(), 2);
        assert_eq!(sources[0].uris, ["http://m.example/debian"]);
        assert_eq!(sources[0].components, ["main", "contrib"]);
        assert_eq!(sources[0].signed_by.as_deref(), Some("/k.gpg"));
        assert_eq!(sources[1].suites, ["sid"]);
    }

    #[test]
    fn the_mirror_is_that_of_a_release() {
        let mut sources = parse_list(
            "deb http://third.example/apt nodistro main\n\
             deb http://s.example/debian-security bookworm-security main\n\
             deb http://b.example/debian bookworm-backports main\n",
        );
        let uri = |sources: &[Source]| debian_mirror(sources, None).map(|m| m.uri);
        assert_eq!(uri(&sources).as_deref(), Some("http://b.example/debian"));
        sources.extend(parse_deb822(DEB822));
        assert_eq!(uri(&sources).as_deref(), Some("http://mirror.example/debian"));
        assert_eq!(uri(&sources[..2]), None);
    }

    #[test]
    fn another_distribution_has_no_debian_mirror() {
        let sources = parse_list("deb http://u.example/ubuntu noble main\n");
        assert_eq!(debian_mirror(&sources, None), None);
        assert!(debian_mirror(&sources, Some("noble")).is_some());
    }
}
