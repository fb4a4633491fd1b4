//! Which node ids are alive, the descriptor that holds each, and how often each was given out.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rustix::fs::Stat;

use crate::abi::header::ROOT;
use crate::errno::{Errno, Result};

/// What makes two names one node.
type Key = (u64, u64);

/// A node of the backing file system, held by an O_PATH descriptor, so that its inode number
/// is not used again while it is known here.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) fd: OwnedFd,
    /// S_IFMT bits.
    pub(super) kind: u32,
    key: Key,
    lookups: AtomicU64,
}

#[derive(Debug, Default)]
struct Tables {
    by_id: HashMap<u64, Arc<Node>>,
    by_key: HashMap<Key, u64>,
    next: u64,
}

/// All nodes known to the kernel. Ids are given in ascending order and never used again.
#[derive(Debug, Default)]
pub(super) struct Nodes(RwLock<Tables>);

impl Nodes {
    /// With the root alone.
    pub(super) fn new(root: OwnedFd, stat: &Stat) -> Nodes {
        let nodes = Nodes(RwLock::new(Tables { next: ROOT, ..Tables::default() }));
        nodes.found(root, stat);
        nodes
    }

    /// A node by id.
    pub(super) fn get(&self, id: u64) -> Result<Arc<Node>> {
        self.read().by_id.get(&id).cloned().ok_or(Errno::new(libc::ESTALE))
    }

    /// Counts a lookup of what `fd` refers to, and returns its id.
    pub(super) fn found(&self, fd: OwnedFd, stat: &Stat) -> u64 {
        let key = (stat.st_dev, stat.st_ino);
        // Counting up needs the read lock only: `forget` removes under the write lock.
        if let Some(id) = self.read().count(key) {
            return id;
        }
        let mut tables = self.write();
        if let Some(id) = tables.count(key) {
            return id;
        }
        let id = tables.next;
        let node = Node { fd, kind: stat.st_mode & libc::S_IFMT, key, lookups: AtomicU64::new(1) };
        tables.next += 1;
        tables.by_id.insert(id, Arc::new(node));
        tables.by_key.insert(key, id);
        id
    }

    /// Takes back lookups; the last one closes the node.
    pub(super) fn forget(&self, id: u64, count: u64) {
        if id == ROOT {
            return;
        }
        let mut tables = self.write();
        let Some(node) = tables.by_id.get(&id) else { return };
        let left = node.lookups.load(Ordering::Relaxed).saturating_sub(count);
        node.lookups.store(left, Ordering::Relaxed);
        if left == 0 {
            let key = node.key;
            tables.by_id.remove(&id);
            tables.by_key.remove(&key);
        }
    }

    /// Nodes alive, the root included.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.read().by_id.len()
    }

    fn read(&self) -> RwLockReadGuard<'_, Tables> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tables> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tables {
    fn count(&self, key: Key) -> Option<u64> {
        let id = *self.by_key.get(&key)?;
        self.by_id.get(&id)?.lookups.fetch_add(1, Ordering::Relaxed);
        Some(id)
    }
}
