//! Names of functions as reports print them: `name.isra.0+0x1a/0x4c0 [module]`.

use super::plumbing;

/// Longest name that is taken for one, bytes.
const MAX_NAME: usize = 128;

/// The first function named in the text.
pub(super) fn first(text: &str) -> Option<String> {
    text.split_whitespace().find_map(parse)
}

/// The function of a line of a stack trace that is sure; `? name+0x1/0x2` is none.
pub(super) fn frame(text: &str) -> Option<String> {
    let mut words = text.split_whitespace();
    let name = parse(words.next()?)?;
    // A module, and in some kernels its build id behind it.
    words.all(|w| w.starts_with('[') || w.ends_with(']')).then_some(name)
}

/// `name+0x1a/0x4c0` without offset and without what the compiler put behind the name.
fn parse(word: &str) -> Option<String> {
    let (name, offset) = word.trim_start_matches('(').split_once("+0x")?;
    let good = |c: char| c.is_ascii_alphanumeric() || "_.$".contains(c);
    let hex = offset.split('/').next().is_some_and(|o| {
        !o.is_empty() && o.trim_end_matches([')', ',']).bytes().all(|b| b.is_ascii_hexdigit())
    });
    let fits = hex && !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(good);
    fits.then(|| plain(name).to_owned())
}

/// The name as it stands in the source.
fn plain(name: &str) -> &str {
    // Such suffixes begin with the first dot behind a name; a leading dot is part of one.
    match name[1..].find('.') {
        Some(dot) => &name[..=dot],
        None => name,
    }
}

/// Whether the function only reports, or is a helper that does what its caller asked for.
pub fn is_plumbing(name: &str) -> bool {
    plumbing::NAMES.contains(&name) || plumbing::BEGINNINGS.iter().any(|b| name.starts_with(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_and_compiler_suffixes_go() {
        for (text, name) in [
            ("fuse_uring_cmd+0x2ef/0xb10", "fuse_uring_cmd"),
            ("set_ptes.isra.0+0x36/0x80", "set_ptes"),
            ("a.constprop.0.cold+0x1/0x2 [fuse]", "a"),
            ("at fs/fuse/dev.c:1 b.part.3+0x1/0x2, CPU#1: x/2", "b"),
            ("rIP: 0xffffffff81 (c.llvm.123+0x4/0x10)", "c"),
        ] {
            assert_eq!(first(text).as_deref(), Some(name), "{text}");
        }
    }

    #[test]
    fn only_sure_frames_count() {
        assert_eq!(frame("sp_warn+0x1/0x2 [splat]").as_deref(), Some("sp_warn"));
        assert_eq!(frame("sp_warn+0x1/0x2 [splat 0123abcd]").as_deref(), Some("sp_warn"));
        for text in ["? sp_warn+0x1/0x2", "RIP: 0010:a+0x1/0x2", "a+0x1/0x2 is odd", "a+b", "+0x1"]
        {
            assert_eq!(frame(text), None, "{text}");
        }
    }
}
