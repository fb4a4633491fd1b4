//! What compiler, linker and objtool said, taken apart. Pure.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Warnings kept of one build.
const MAX_WARNINGS: usize = 200;
/// Lines of errors that are shown.
const MAX_ERRORS: usize = 12;
const MAX_LINE_BYTES: usize = 400;

/// One warning of a build.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Warning {
    /// File, relative to the tree.
    pub file: String,
    /// Line, 0 where none was named.
    pub line: u32,
    /// What the compiler said.
    pub text: String,
}

/// The warnings in the output of a build of the tree in `tree` (absolute), each once.
pub(super) fn warnings(output: &str, tree: &str) -> Vec<Warning> {
    let mut found: Vec<Warning> = Vec::new();
    for line in output.lines() {
        let Some((place, text)) = line.split_once(" warning: ") else { continue };
        let place = relative(place.trim_end_matches(':'), tree);
        let mut parts = place.split(':');
        let file = parts.next().unwrap_or_default().to_owned();
        let number = parts.next().and_then(|n| n.parse().ok()).unwrap_or(0);
        let warning = Warning { file, line: number, text: cut(text) };
        if !found.contains(&warning) && found.len() < MAX_WARNINGS {
            found.push(warning);
        }
    }
    found
}

/// Sources of the objects that a build made, from lines such as `  CC      fs/fuse/dev.o`.
pub(super) fn compiled(output: &str) -> BTreeSet<String> {
    let source = |line: &str| {
        let mut words = line.split_whitespace();
        let kind = words.next()?;
        let object = words.next().filter(|word| *word != "[M]").or_else(|| words.next())?;
        let stem = object.strip_suffix(".o")?;
        match kind {
            "CC" => Some(format!("{stem}.c")),
            "AS" => Some(format!("{stem}.S")),
            _ => None,
        }
    };
    output.lines().filter_map(source).collect()
}

/// The first errors in the output of a build, a line each; its last lines where none is known.
pub(in crate::kernel) fn errors(output: &str, tree: &str) -> String {
    const MARKS: [&str; 8] = [
        " error: ",
        "undefined reference",
        "multiple definition",
        "ERROR: modpost",
        "Error: ",
        "error: objtool",
        "No rule to make target",
        "No space left on device",
    ];
    let is_error = |line: &&str| MARKS.iter().any(|mark| line.contains(mark));
    let found: Vec<&str> = output.lines().filter(is_error).take(MAX_ERRORS).collect();
    let lines = if found.is_empty() {
        let all: Vec<&str> = output.lines().collect();
        all[all.len().saturating_sub(MAX_ERRORS)..].to_vec()
    } else {
        found
    };
    let lines: Vec<String> = lines.into_iter().map(|line| cut(&relative(line, tree))).collect();
    lines.join("\n")
}

fn relative(text: &str, tree: &str) -> String {
    text.replace(&format!("{tree}/"), "").replace("../src/", "")
}

fn cut(line: &str) -> String {
    let mut end = line.len().min(MAX_LINE_BYTES);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    line[..end].trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "  CC      fs/fuse/control.o\n\
        /c/t/src/fs/fuse/control.c:358:5: warning: 'x' defined but not used [-Wunused-variable]\n\
        /c/t/src/fs/fuse/control.c:358:5: warning: 'x' defined but not used [-Wunused-variable]\n\
        fs/fuse/dev.o: warning: objtool: f() falls through\n\
        /c/t/src/fs/fuse/control.c:362:22: error: implicit declaration of function 'y'\n\
        make[4]: *** [/c/t/src/scripts/Makefile.build:295: fs/fuse/control.o] Error 1\n";

    #[test]
    fn warnings_are_told_by_file_once() {
        let found = warnings(OUTPUT, "/c/t/src");
        let places: Vec<_> = found.iter().map(|w| (w.file.as_str(), w.line)).collect();
        assert_eq!(places, [("fs/fuse/control.c", 358), ("fs/fuse/dev.o", 0)]);
        assert_eq!(found[1].text, "objtool: f() falls through");
    }

    #[test]
    fn compiled_files_are_named_by_their_sources() {
        let text =
            "  CC      fs/fuse/dev.o\n  CC [M]  fs/fuse/x.o\n  AS      arch/a.o\n  LD  v.o\n";
        let found: Vec<_> = compiled(text).into_iter().collect();
        assert_eq!(found, ["arch/a.S", "fs/fuse/dev.c", "fs/fuse/x.c"]);
    }

    #[test]
    fn the_first_errors_are_shown_or_the_end() {
        let text = errors(OUTPUT, "/c/t/src");
        assert_eq!(text, "fs/fuse/control.c:362:22: error: implicit declaration of function 'y'");
        assert_eq!(errors("a\nb\n", "/t"), "a\nb");
    }
}
