//! Nodes of a chunk tree in memory: keys, and for each key a chunk or a node below.
//!
//! Key `i` of an inner node is a lower bound of the chunks under child `i`. Chunks before the first
//! key belong to child 0, so that the bounds at the left edge need not be right until a chunk is
//! put there.

use std::sync::OnceLock;

use super::keys::{KeyPacking, NodeKeys, SearchKey};
use crate::FileAddr;

/// A chunk in the file, in 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkEntry {
    /// Its address.
    pub(super) at: u64,
    /// Stored bytes.
    pub(super) len: u32,
    /// Filters skipped.
    pub(super) mask: u32,
}

/// A node below another.
#[derive(Debug)]
pub(super) struct WriteLink {
    /// The address where the node is stored, or was before it changed.
    pub(super) addr: Option<FileAddr>,
    /// Whether the node in memory differs from the stored one. Then all nodes above are dirty, too.
    pub(super) is_dirty: bool,
    /// Whether the node stays where it is in the commit that is being made, though it changed:
    /// entries were added at its end, or a node below is elsewhere.
    pub(super) stays: bool,
    /// Which of its stored entries then leads to another address.
    pub(super) swapped: Option<usize>,
    /// Filled when the node is needed.
    pub(super) node: OnceLock<Box<WriteNode>>,
}

impl WriteLink {
    /// A node that is only stored.
    pub(super) fn stored(addr: FileAddr) -> WriteLink {
        let node = OnceLock::new();
        WriteLink { addr: Some(addr), is_dirty: false, stays: false, swapped: None, node }
    }

    /// A node that is only in memory.
    pub(super) fn fresh(node: WriteNode) -> WriteLink {
        let node = OnceLock::from(Box::new(node));
        WriteLink { addr: None, is_dirty: true, stays: false, swapped: None, node }
    }

    /// Whether the commit that is being made writes it to a new address.
    pub(super) fn moves(&self) -> bool {
        self.is_dirty && !self.stays
    }
}

#[derive(Debug)]
pub(super) enum NodeEntries {
    /// Of level 0.
    Leaf(Vec<ChunkEntry>),
    /// Of a higher level.
    Inner(Vec<WriteLink>),
}

/// Where the last addition to a node was, which says where the next one will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trend {
    None,
    /// It was at the end.
    Ascending,
    /// It was at the beginning.
    Descending,
}

/// Which entries of a node the file has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StoredEntries {
    /// Entries that are stored.
    pub(super) n: usize,
    /// How many of them, from the first, are in memory as they are stored, except for addresses of
    /// nodes below.
    unchanged: usize,
    /// Whether it was committed with the bound that is far away, so that entries can be added at
    /// its end where it is.
    pub(super) is_open: bool,
}

impl StoredEntries {
    /// All entries are stored.
    pub(super) fn whole(n: usize, is_open: bool) -> StoredEntries {
        StoredEntries { n, unchanged: n, is_open }
    }

    /// Whether a node of `len` entries can stay where it is.
    pub(super) fn can_stay(self, len: usize) -> bool {
        self.n > 0 && self.unchanged == self.n && (len == self.n || self.is_open)
    }
}

/// A node in memory.
#[derive(Debug)]
pub(super) struct WriteNode {
    /// One for each entry.
    pub(super) keys: NodeKeys,
    pub(super) body: NodeEntries,
    trend: Trend,
    pub(super) stored: StoredEntries,
}

/// Whether a node is the first or last of its level.
#[derive(Clone, Copy, Debug)]
pub(super) struct LevelEdges {
    pub(super) left: bool,
    pub(super) right: bool,
}

impl WriteNode {
    pub(super) fn new(keys: NodeKeys, body: NodeEntries) -> WriteNode {
        WriteNode { keys, body, trend: Trend::None, stored: StoredEntries::default() }
    }

    /// Notes that entry `i`, or its key, differs from the stored one from now on.
    pub(super) fn touch(&mut self, i: usize) {
        self.stored.unchanged = self.stored.unchanged.min(i);
    }

    /// Notes that an entry will be inserted before entry `i`.
    fn grows(&mut self, i: usize, most: usize) {
        // A node that is split ends elsewhere, and a bound can be written over only if it is far
        // away.
        let is_split = self.len() >= most;
        self.touch(if is_split && !self.stored.is_open { 0 } else { i });
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        match &self.body {
            NodeEntries::Leaf(entries) => entries.len(),
            NodeEntries::Inner(children) => children.len(),
        }
    }

    /// Adds a chunk at place `at`, and gives the second part of a node that had to be split.
    pub(super) fn add_entry(
        &mut self,
        at: usize,
        key: (&KeyPacking, SearchKey<'_>),
        entry: ChunkEntry,
        edges: LevelEdges,
        most: usize,
    ) -> Option<WriteNode> {
        let (cut, trends) = self.plan(at, 0, edges, most);
        self.grows(at.min(cut), most);
        let NodeEntries::Leaf(entries) = &mut self.body else { return None };
        let split = put(&mut self.keys, entries, at, key, entry, most, cut);
        self.trend = trends[0];
        let second = |(keys, entries)| WriteNode::new(keys, NodeEntries::Leaf(entries));
        split.map(|split| WriteNode { trend: trends[1], ..second(split) })
    }

    /// The same for a child.
    pub(super) fn add_child(
        &mut self,
        at: usize,
        key: (&KeyPacking, SearchKey<'_>),
        child: WriteLink,
        edges: LevelEdges,
        most: usize,
    ) -> Option<WriteNode> {
        // New children are second parts of nodes that were split, so none becomes the first.
        let (cut, trends) = self.plan(at, 1, edges, most);
        self.grows(at.min(cut), most);
        let NodeEntries::Inner(children) = &mut self.body else { return None };
        let split = put(&mut self.keys, children, at, key, child, most, cut);
        self.trend = trends[0];
        let second = |(keys, children)| WriteNode::new(keys, NodeEntries::Inner(children));
        split.map(|split| WriteNode { trend: trends[1], ..second(split) })
    }

    /// Where to split the node if it has no room for one more entry at `at`, and the trends of both
    /// parts. `first` is the first place where an entry may be added.
    ///
    /// Where the next entry is expected behind this one (or before it), a full node stays behind.
    /// It has no trend then, so that an order that only looks ascending makes no more nodes than
    /// any other.
    fn plan(&self, at: usize, first: usize, edges: LevelEdges, most: usize) -> (usize, [Trend; 2]) {
        let n = self.len();
        let trend = match at {
            _ if at == n => Trend::Ascending,
            _ if at == first => Trend::Descending,
            _ => Trend::None,
        };
        let goes_on = trend == self.trend;
        match trend {
            _ if n < most => (n, [trend, Trend::None]),
            Trend::Ascending if goes_on || edges.right => (n, [Trend::None, trend]),
            Trend::Descending if goes_on || edges.left => (1, [trend, Trend::None]),
            _ => (n.div_ceil(2), [Trend::None; 2]),
        }
    }

    /// Removes entry `i` with its key.
    pub(super) fn take(&mut self, packing: &KeyPacking, i: usize) -> Option<RemovedEntry> {
        let taken = match &mut self.body {
            NodeEntries::Leaf(entries) if i < entries.len() => {
                RemovedEntry::Chunk(entries.remove(i))
            }
            NodeEntries::Inner(children) if i < children.len() => {
                RemovedEntry::Child(children.remove(i))
            }
            _ => return None,
        };
        self.keys.remove(packing, i);
        self.touch(i);
        Some(taken)
    }
}

/// An entry that was removed from a node.
#[derive(Debug)]
pub(super) enum RemovedEntry {
    Chunk(ChunkEntry),
    Child(WriteLink),
}

/// Inserts an item and its key at `at`. Where there would be more than `most`, the items are split
/// before place `cut`, the new one counted, and the second part is returned.
#[inline]
fn put<T>(
    keys: &mut NodeKeys,
    items: &mut Vec<T>,
    at: usize,
    (packing, search_key): (&KeyPacking, SearchKey<'_>),
    item: T,
    most: usize,
    cut: usize,
) -> Option<(NodeKeys, Vec<T>)> {
    if items.len() < most {
        insert(keys, items, at, (packing, search_key), item, most);
        return None;
    }
    let is_first = at < cut;
    let from = if is_first { cut.saturating_sub(1) } else { cut }.min(items.len());
    let mut second_keys = keys.split_off(packing, from);
    let mut second = items.split_off(from);
    if is_first {
        insert(keys, items, at, (packing, search_key), item, most);
    } else {
        let at = at.saturating_sub(cut);
        insert(&mut second_keys, &mut second, at, (packing, search_key), item, most);
    }
    Some((second_keys, second))
}

#[inline]
fn insert<T>(
    keys: &mut NodeKeys,
    items: &mut Vec<T>,
    at: usize,
    (packing, search_key): (&KeyPacking, SearchKey<'_>),
    item: T,
    most: usize,
) {
    let n = items.len();
    // No more memory than a full node needs, and little for the many trees of a single chunk.
    let more = n.max(4).min(most.saturating_sub(n)).max(1);
    if n == items.capacity() {
        items.reserve_exact(more);
    }
    let at = at.min(n);
    items.insert(at, item);
    keys.insert(packing, at, search_key, more);
}
