//! A writer of cpio archives in the format `newc`, as the kernel unpacks them.
//!
//! Entries are data; the archive's bytes depend on them alone: no clock, no host inode number,
//! no order of insertion.

use std::collections::BTreeMap;

/// Archives are padded to this, so that they can be concatenated.
const BLOCK: usize = 512;
const MAGIC: &str = "070701";
const TRAILER: &str = "TRAILER!!!";
/// Longest path that Linux takes from an archive, its terminator included.
const PATH_MAX: usize = 4096;

/// What can go wrong in an archive.
#[derive(Debug, thiserror::Error)]
pub enum CpioError {
    /// A path is empty, absolute, too long or has an odd component.
    #[error("`{path}` cannot be a path in an archive")]
    BadPath {
        /// The path as given.
        path: String,
    },
    /// Two entries at one path differ.
    #[error("two different entries for `{path}`")]
    Conflict {
        /// The path.
        path: String,
    },
    /// The format counts in 32 bits.
    #[error("`{path}` is too big for a cpio archive: {bytes} bytes")]
    TooBig {
        /// The path.
        path: String,
        /// Size, bytes.
        bytes: usize,
    },
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// A directory, mode 0755.
    Dir,
    /// A regular file.
    File {
        /// Its bytes.
        data: Vec<u8>,
        /// Whether its mode is 0755, else 0644.
        executable: bool,
    },
    /// A symbolic link.
    Link {
        /// Where it points.
        target: String,
    },
    /// A character device, mode 0600.
    CharDevice {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
}

impl Node {
    fn mode(&self) -> u32 {
        match self {
            Node::Dir => 0o040_755,
            Node::File { executable: true, .. } => 0o100_755,
            Node::File { executable: false, .. } => 0o100_644,
            Node::Link { .. } => 0o120_777,
            Node::CharDevice { .. } => 0o020_600,
        }
    }

    fn data(&self) -> &[u8] {
        match self {
            Node::File { data, .. } => data,
            Node::Link { target } => target.as_bytes(),
            Node::Dir | Node::CharDevice { .. } => &[],
        }
    }
}

/// An archive in the making. Parent directories come by themselves.
#[derive(Debug, Clone, Default)]
pub struct Archive {
    nodes: BTreeMap<String, Node>,
}

impl Archive {
    /// An archive without entries.
    pub fn new() -> Archive {
        Archive::default()
    }

    /// Adds a node at `path`, a relative one (`usr/bin/fio`) or with one leading slash. The same
    /// node twice is one entry.
    ///
    /// # Errors
    ///
    /// [`CpioError::BadPath`], [`CpioError::Conflict`] where something else is at the path.
    pub fn add(&mut self, path: &str, node: Node) -> Result<(), CpioError> {
        let path = checked(path)?;
        for (at, _) in path.match_indices('/') {
            self.insert(&path[..at], Node::Dir)?;
        }
        self.insert(path, node)
    }

    fn insert(&mut self, path: &str, node: Node) -> Result<(), CpioError> {
        match self.nodes.get(path) {
            None => {
                self.nodes.insert(path.to_owned(), node);
                Ok(())
            }
            Some(old) if *old == node => Ok(()),
            // A directory that is a link on the host stays a link: what is put below it would
            // be lost, or end up somewhere else.
            Some(_) => Err(CpioError::Conflict { path: path.to_owned() }),
        }
    }

    /// Paths with what is there, sorted.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.nodes.iter().map(|(path, node)| (path.as_str(), node))
    }

    /// The archive, its length a multiple of 512 bytes.
    ///
    /// # Errors
    ///
    /// [`CpioError::TooBig`] for a file of 4 GiB or more.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CpioError> {
        let mut out = Vec::new();
        // Sorted by path, so that a directory comes before what is in it.
        for (number, (path, node)) in self.nodes.iter().enumerate() {
            let data = node.data();
            let size = u32::try_from(data.len())
                .map_err(|_| CpioError::TooBig { path: path.clone(), bytes: data.len() })?;
            let inode = u32::try_from(number + 1).unwrap_or(u32::MAX);
            header(&mut out, inode, node, size, path);
            out.extend_from_slice(data);
            pad(&mut out, 4);
        }
        trailer(&mut out);
        pad(&mut out, BLOCK);
        Ok(out)
    }
}

fn checked(path: &str) -> Result<&str, CpioError> {
    let relative = path.strip_prefix('/').unwrap_or(path);
    let sound = !relative.contains('\0')
        && relative.len() < PATH_MAX
        && relative.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if sound { Ok(relative) } else { Err(CpioError::BadPath { path: path.to_owned() }) }
}

fn header(out: &mut Vec<u8>, inode: u32, node: &Node, size: u32, path: &str) {
    let links = if matches!(node, Node::Dir) { 2 } else { 1 };
    let device = match node {
        Node::CharDevice { major, minor } => (*major, *minor),
        _ => (0, 0),
    };
    fields(out, [inode, node.mode(), links, size, device.0, device.1], path);
}

fn trailer(out: &mut Vec<u8>) {
    fields(out, [0, 0, 1, 0, 0, 0], TRAILER);
}

/// Thirteen numbers of eight hex digits, then the name. Owner, time and device of the file
/// system are always 0.
fn fields(out: &mut Vec<u8>, values: [u32; 6], name: &str) {
    let [inode, mode, links, size, major, minor] = values;
    let name_len = u32::try_from(name.len() + 1).unwrap_or(u32::MAX);
    out.extend_from_slice(MAGIC.as_bytes());
    for field in [inode, mode, 0, 0, links, 0, size, 0, 0, major, minor, name_len, 0] {
        out.extend_from_slice(format!("{field:08x}").as_bytes());
    }
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    pad(out, 4);
}

fn pad(out: &mut Vec<u8>, to: usize) {
    out.resize(out.len().next_multiple_of(to), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Path, mode, bytes, device.
    type Entry = (String, u32, Vec<u8>, (u32, u32));

    /// A reader that knows the format from its definition, not from the writer.
    fn read(mut bytes: &[u8]) -> Vec<Entry> {
        let mut found = Vec::new();
        let mut at = 0usize;
        let mut take = |n: usize, at: &mut usize| {
            let (head, rest) = bytes.split_at(n);
            bytes = rest;
            *at += n;
            head.to_vec()
        };
        loop {
            let head = String::from_utf8(take(110, &mut at)).unwrap();
            assert_eq!(&head[..6], "070701");
            let field = |i: usize| u32::from_str_radix(&head[6 + 8 * i..14 + 8 * i], 16).unwrap();
            let mut name = take(field(11) as usize, &mut at);
            assert_eq!(name.pop(), Some(0));
            take((4 - at % 4) % 4, &mut at);
            let data = take(field(6) as usize, &mut at);
            take((4 - at % 4) % 4, &mut at);
            let name = String::from_utf8(name).unwrap();
            if name == "TRAILER!!!" {
                return found;
            }
            assert_eq!((field(2), field(3), field(5)), (0, 0, 0), "owner and time");
            found.push((name, field(1), data, (field(9), field(10))));
        }
    }

    fn sample() -> Archive {
        let mut archive = Archive::new();
        let init = Node::File { data: b"#!x".to_vec(), executable: true };
        archive.add("/init", init).unwrap();
        archive.add("dev/console", Node::CharDevice { major: 5, minor: 1 }).unwrap();
        archive.add("usr/lib/a.so", Node::Link { target: "a.so.1".into() }).unwrap();
        archive.add("usr/lib/a.so.1", Node::File { data: vec![7; 5], executable: false }).unwrap();
        archive
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = sample().to_bytes().unwrap();
        assert_eq!(bytes.len() % 512, 0);
        let found = read(&bytes);
        let names: Vec<_> = found.iter().map(|f| f.0.as_str()).collect();
        assert_eq!(
            names,
            ["dev", "dev/console", "init", "usr", "usr/lib", "usr/lib/a.so", "usr/lib/a.so.1"]
        );
        let modes: Vec<_> = found.iter().map(|f| f.1).collect();
        assert_eq!(modes, [0o040755, 0o020600, 0o100755, 0o040755, 0o040755, 0o120777, 0o100644]);
        assert_eq!(found[1].3, (5, 1));
        assert_eq!(found[2].2, b"#!x");
        assert_eq!(found[5].2, b"a.so.1");
        assert_eq!(found[6].2, vec![7; 5]);
    }

    #[test]
    fn bytes_do_not_depend_on_the_order_of_adding() {
        let mut other = Archive::new();
        let all: Vec<_> = sample().nodes.into_iter().collect();
        for (path, node) in all.into_iter().rev() {
            other.add(&path, node).unwrap();
        }
        assert_eq!(other.to_bytes().unwrap(), sample().to_bytes().unwrap());
    }

    #[test]
    fn inode_numbers_are_unique() {
        let bytes = sample().to_bytes().unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let inodes: Vec<_> =
            text.match_indices("070701").map(|(i, _)| &text[i + 6..i + 14]).collect();
        let unique: std::collections::BTreeSet<_> = inodes.iter().collect();
        // The kernel takes equal inode numbers with links above 1 for hard links.
        assert_eq!(unique.len(), inodes.len());
    }

    #[test]
    fn odd_paths_are_refused() {
        for path in ["", "/", "a//b", "../a", "a/./b", "//a", "a/", "a\0b"] {
            assert!(
                matches!(Archive::new().add(path, Node::Dir), Err(CpioError::BadPath { .. })),
                "{path:?}"
            );
        }
    }

    #[test]
    fn a_path_is_one_thing() {
        let mut archive = Archive::new();
        archive.add("lib", Node::Link { target: "usr/lib".into() }).unwrap();
        assert!(matches!(archive.add("lib/x", Node::Dir), Err(CpioError::Conflict { .. })));
        archive.add("lib", Node::Link { target: "usr/lib".into() }).unwrap();
    }
}
