//! One inode: attributes, extended attributes, and what its kind holds.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::abi::reply::Attr;
use crate::fs::Caller;

use super::content::Content;

/// What an inode is.
#[derive(Debug)]
pub(super) enum Kind {
    File(Content),
    Directory(Directory),
    Link(Vec<u8>),
    /// A device, pipe or socket: a name for the kernel to act on.
    Special,
}

/// Names of a directory, in the order they were made, which is also the order of listing:
/// a position stays good while other names come and go.
#[derive(Debug, Default)]
pub(super) struct Directory {
    pub(super) parent: u64,
    by_name: HashMap<Vec<u8>, u64>,
    by_position: BTreeMap<u64, (Vec<u8>, u64)>,
    next: u64,
}

/// Positions below are those of `.` and `..`.
pub(super) const FIRST_POSITION: u64 = 3;

impl Directory {
    pub(super) fn new(parent: u64) -> Directory {
        Directory { parent, next: FIRST_POSITION, ..Directory::default() }
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<u64> {
        let position = self.by_name.get(name)?;
        self.by_position.get(position).map(|(_, ino)| *ino)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Sets a name that is not there, or changes what it stands for.
    pub(super) fn set(&mut self, name: &[u8], ino: u64) {
        if let Some(position) = self.by_name.get(name) {
            self.by_position.insert(*position, (name.to_vec(), ino));
            return;
        }
        self.by_name.insert(name.to_vec(), self.next);
        self.by_position.insert(self.next, (name.to_vec(), ino));
        self.next += 1;
    }

    pub(super) fn remove(&mut self, name: &[u8]) {
        if let Some(position) = self.by_name.remove(name) {
            self.by_position.remove(&position);
        }
    }

    /// Names after a position.
    pub(super) fn after(&self, position: u64) -> impl Iterator<Item = (u64, &[u8], u64)> {
        let range = self.by_position.range(position.max(FIRST_POSITION - 1) + 1..);
        range.map(|(position, (name, ino))| (*position, name.as_slice(), *ino))
    }
}

/// An inode.
#[derive(Debug)]
pub(super) struct Inode {
    pub(super) attr: Attr,
    pub(super) kind: Kind,
    pub(super) xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Lookups the kernel holds.
    pub(super) lookups: u64,
    /// Open handles.
    pub(super) opens: u64,
}

impl Inode {
    pub(super) fn new(ino: u64, mode: u32, by: Caller, kind: Kind) -> Inode {
        let nlink = if matches!(kind, Kind::Directory(_)) { 2 } else { 1 };
        let mut attr = Attr { ino, mode, nlink, uid: by.uid, gid: by.gid, ..Attr::default() };
        attr.blksize = 4096;
        let mut inode = Inode { attr, kind, xattrs: BTreeMap::new(), lookups: 0, opens: 0 };
        let now = now();
        inode.set_atime(now);
        inode.modified(now);
        inode
    }

    /// Attributes with the size and blocks of now.
    pub(super) fn attr(&self) -> Attr {
        let (size, blocks) = match &self.kind {
            Kind::File(content) => (content.size(), content.blocks()),
            Kind::Link(target) => (target.len() as u64, 0),
            Kind::Directory(_) | Kind::Special => (0, 0),
        };
        Attr { size, blocks, ..self.attr }
    }

    pub(super) fn set_atime(&mut self, (seconds, nanos): (i64, u32)) {
        (self.attr.atime, self.attr.atimensec) = (seconds as u64, nanos);
    }

    pub(super) fn set_mtime(&mut self, (seconds, nanos): (i64, u32)) {
        (self.attr.mtime, self.attr.mtimensec) = (seconds as u64, nanos);
    }

    /// The inode itself changed.
    pub(super) fn changed(&mut self, (seconds, nanos): (i64, u32)) {
        (self.attr.ctime, self.attr.ctimensec) = (seconds as u64, nanos);
    }

    /// Its content changed.
    pub(super) fn modified(&mut self, at: (i64, u32)) {
        self.set_mtime(at);
        self.changed(at);
    }
}

/// Seconds and nanoseconds since the epoch.
pub(super) fn now() -> (i64, u32) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    (since.as_secs() as i64, since.subsec_nanos())
}
