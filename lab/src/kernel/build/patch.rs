//! Patches as text: which files they touch, and that none of those is outside the tree. Pure.

use std::collections::BTreeSet;

use super::error::BuildError;
use crate::kernel::recipe::Patch;

/// Files that a patch reads, writes, makes or removes: paths below the tree, sorted.
///
/// # Errors
///
/// [`BuildError::Outside`] for a path that leads out of the tree or into `.git`,
/// [`BuildError::NoPatch`] for a text without a change.
pub fn files(patch: &Patch) -> Result<BTreeSet<String>, BuildError> {
    let mut files = BTreeSet::new();
    for path in named(&patch.text) {
        if path == "/dev/null" {
            continue;
        }
        let inner = path.split_once('/').map(|(_, rest)| rest).filter(|_| !path.starts_with('/'));
        match inner.filter(|inner| is_inside(inner)) {
            Some(inner) => files.insert(inner.to_owned()),
            None => return Err(BuildError::Outside { patch: patch.name.clone(), path }),
        };
    }
    if files.is_empty() {
        return Err(BuildError::NoPatch { patch: patch.name.clone() });
    }
    Ok(files)
}

fn is_inside(path: &str) -> bool {
    !path.is_empty()
        && !path.starts_with('/')
        && !path.contains('\0')
        && path.split('/').all(|part| !matches!(part, "" | "." | ".." | ".git"))
}

/// Paths with their `a/` or `b/`, from the heads of a patch. The lines of a hunk are counted:
/// a removed `-- x` looks like a head, too.
fn named(text: &[u8]) -> Vec<String> {
    let mut paths = Vec::new();
    let (mut old, mut new) = (0_u64, 0_u64);
    for line in text.split(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if old > 0 || new > 0 {
            match line.first() {
                Some(b'-') => old = old.saturating_sub(1),
                Some(b'+') => new = new.saturating_sub(1),
                Some(b'\\') => {}
                _ => (old, new) = (old.saturating_sub(1), new.saturating_sub(1)),
            }
            continue;
        }
        let line = String::from_utf8_lossy(line);
        if let Some((o, n)) = line.strip_prefix("@@ -").and_then(hunk) {
            (old, new) = (o, n);
        } else if let Some(path) =
            line.strip_prefix("--- ").or_else(|| line.strip_prefix("+++ ")).and_then(head)
        {
            paths.push(path);
        } else if let Some(rest) = line.strip_prefix("diff --git ") {
            paths.extend(both(rest));
        } else if let Some(path) = ["rename from ", "rename to ", "copy from ", "copy to "]
            .iter()
            .find_map(|word| line.strip_prefix(word))
        {
            paths.push(format!("x/{}", unquoted(path)));
        }
    }
    paths
}

/// Line counts of `A,B +C,D @@`.
fn hunk(text: &str) -> Option<(u64, u64)> {
    let (old, rest) = text.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let count = |range: &str| match range.split_once(',') {
        Some((_, count)) => count.parse().ok(),
        None => range.parse::<u64>().ok().map(|_| 1),
    };
    Some((count(old)?, count(new)?))
}

/// The path of `--- a/x` and `+++ b/x<TAB>time`. The `---` of a mail has none.
fn head(text: &str) -> Option<String> {
    let path = unquoted(text.split('\t').next()?.trim_end());
    (path.contains('/')).then_some(path)
}

/// The two paths of `diff --git a/x b/x`, which have no end mark: halves of equal length.
fn both(text: &str) -> Vec<String> {
    if text.starts_with('"') {
        return text.split("\" ").map(unquoted).collect();
    }
    let text = text.trim_end();
    let middle = text.len() / 2;
    match (text.get(..middle), text.get(middle..)) {
        (Some(a), Some(b))
            if b.starts_with(' ')
                && a.split_once('/').map(|p| p.1) == b[1..].split_once('/').map(|p| p.1) =>
        {
            vec![a.to_owned(), b[1..].to_owned()]
        }
        // A rename: its own lines name both.
        _ => Vec::new(),
    }
}

/// git quotes names that are no plain text; such a name keeps its escapes and is found nowhere.
fn unquoted(text: &str) -> String {
    text.trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Vec<String>, String> {
        let patch = Patch { name: "0001-x.patch".into(), text: text.as_bytes().into() };
        files(&patch).map(|f| f.into_iter().collect()).map_err(|e| e.to_string())
    }

    const ONE: &str = "Subject: [PATCH] x\n\nText\n---\n fs/a.c | 2 +-\n\ndiff --git a/fs/a.c b/fs/a.c\n\
        index 1..2 100644\n--- a/fs/a.c\n+++ b/fs/a.c\n@@ -1,2 +1,2 @@\n keep\n--- ../../etc/passwd\n\
        +++ b/../x\n-- \n2.43\n";

    #[test]
    fn lines_of_a_hunk_are_no_heads() {
        assert_eq!(of(ONE).unwrap(), ["fs/a.c"]);
    }

    #[test]
    fn made_removed_and_renamed_files_count() {
        let text = "--- /dev/null\n+++ b/new.c\t2026\n@@ -0,0 +1 @@\n+x\n--- a/old.c\n+++ /dev/null\n\
             @@ -1 +0,0 @@\n-x\ndiff --git a/from.c b/to.c\nrename from from.c\nrename to to.c\n";
        assert_eq!(of(text).unwrap(), ["from.c", "new.c", "old.c", "to.c"]);
        let mode = "diff --git a/run me.sh b/run me.sh\nold mode 100644\nnew mode 100755\n";
        assert_eq!(of(mode).unwrap(), ["run me.sh"]);
    }

    #[test]
    fn paths_outside_the_tree_are_refused_by_name() {
        for path in ["a/../../etc/x", "/etc/x", "a/.git/hooks/x", "a/fs//x", "a/./x"] {
            let text = format!("--- {path}\n+++ {path}\n@@ -1 +1 @@\n-a\n+b\n");
            let error = of(&text).unwrap_err();
            assert!(error.contains("0001-x.patch") && error.contains(path), "{error}");
        }
        let rename = "diff --git a/x b/y\nrename from x\nrename to ../y\n";
        assert!(of(rename).unwrap_err().contains("../y"));
    }

    #[test]
    fn a_text_without_a_change_is_no_patch() {
        assert!(of("Subject: hello\n\nworld\n").unwrap_err().contains("changes no file"));
    }
}
