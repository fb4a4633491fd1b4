//! Places in the code that a report names: `name+0xoffset/0xsize`, with the name as the symbol
//! table has it.

/// Longest name that is taken for one, bytes.
const MAX_NAME: usize = 128;

/// A place in the kernel's code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Symbol, with what the compiler put behind it.
    pub name: String,
    /// From the symbol's start, bytes.
    pub offset: u64,
    /// From the symbol's start to the next one's, bytes.
    pub size: u64,
    /// Whether the place is that of the instruction itself; else it is where a call returns to.
    pub exact: bool,
}

/// The place that a line of a report names. None for a frame that is not sure (`? name`) and for
/// code of a module, which is not part of the kernel's own file.
pub fn frame(line: &str) -> Option<Frame> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| parse(word).is_some())?;
    let unsure = at > 0 && words[at - 1] == "?";
    let module = words.get(at + 1).is_some_and(|next| next.starts_with('['));
    if unsure || module {
        return None;
    }
    let (name, offset, size) = parse(words[at])?;
    let exact = words[..at].iter().any(|word| ["RIP:", "WARNING:"].contains(word));
    Some(Frame { name, offset, size, exact })
}

fn parse(word: &str) -> Option<(String, u64, u64)> {
    // A RIP line has the code segment before the name.
    let word = word.rsplit(':').next()?.trim_start_matches('(');
    let (name, place) = word.split_once("+0x")?;
    let (offset, size) = place.split_once("/0x")?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let size = hex(size.trim_end_matches([')', ',']))?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.$".contains(c);
    let fits = !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(plain);
    fits.then_some((name.to_owned(), hex(offset)?, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_reports() {
        let seen = |line: &str| frame(line).map(|f| (f.name, f.offset, f.size, f.exact));
        let some = |name: &str, offset, size, exact| Some((name.to_owned(), offset, size, exact));
        for (line, wanted) in [
            (
                "[    1.0] RIP: 0010:fuse_uring_cmd.cold+0x2e/0xb10",
                some("fuse_uring_cmd.cold", 0x2e, 0xb10, true),
            ),
            ("[    1.0]  vfs_mkdir+0xa3/0x200", some("vfs_mkdir", 0xa3, 0x200, false)),
            (
                "[    1.0] WARNING: fs/a.c:1 at a.isra.0+0x1/0x2, CPU#0: x/1",
                some("a.isra.0", 1, 2, true),
            ),
            ("BUG: KASAN: slab-use-after-free in a_b+0x10/0x20", some("a_b", 0x10, 0x20, false)),
            ("[    1.0]  ? a+0x1/0x2", None),
            ("[    1.0]  a+0x1/0x2 [splat]", None),
            ("[    1.0]  a+0x1/0x2 [splat 0123]", None),
            ("[    1.0] nothing of the kind", None),
            ("[    1.0]  a+0xzz/0x2", None),
        ] {
            assert_eq!(seen(line), wanted, "{line}");
        }
    }
}
