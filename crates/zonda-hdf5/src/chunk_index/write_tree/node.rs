//! Nodes in memory: keys, and for each a chunk or a node below.
//!
//! Key `i` of an inner node is a lower bound of what is under child `i`. Keys before the first go to
//! child 0, so that bounds at the left edge need not be right until something is put there.

use std::sync::OnceLock;

use super::keys::{Keys, Packing, Probe};
use crate::FileAddr;

/// A chunk in the file, as small as it can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its address.
    pub(super) at: u64,
    /// Stored bytes.
    pub(super) len: u32,
    /// Filters skipped.
    pub(super) mask: u32,
}

/// A node below another.
#[derive(Debug)]
pub(super) struct Child {
    /// Where it is stored, or was before it changed.
    pub(super) addr: Option<FileAddr>,
    /// Whether what is in memory differs from what is stored. If so, that holds for all nodes above.
    pub(super) is_dirty: bool,
    /// Whether it stays where it is in the commit that is being made, though it changed: by what was
    /// added at its end, and by the place of a node below.
    pub(super) stays: bool,
    /// Which of its stored entries then leads to another place.
    pub(super) swapped: Option<usize>,
    /// Filled when the node is needed.
    pub(super) node: OnceLock<Box<Node>>,
}

impl Child {
    /// A node that is only stored.
    pub(super) fn stored(addr: FileAddr) -> Child {
        let node = OnceLock::new();
        Child { addr: Some(addr), is_dirty: false, stays: false, swapped: None, node }
    }

    /// A node that is only in memory.
    pub(super) fn fresh(node: Node) -> Child {
        let node = OnceLock::from(Box::new(node));
        Child { addr: None, is_dirty: true, stays: false, swapped: None, node }
    }

    /// Whether it is to be written at a place of its own by the commit that is being made.
    pub(super) fn moves(&self) -> bool {
        self.is_dirty && !self.stays
    }
}

#[derive(Debug)]
pub(super) enum Body {
    /// Of level 0.
    Leaf(Vec<Entry>),
    /// Of a higher level.
    Inner(Vec<Child>),
}

/// What the last addition to a node says of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trend {
    None,
    /// It was at the end.
    Ascending,
    /// It was at the beginning.
    Descending,
}

/// What the file has of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OnFile {
    /// Entries that are stored.
    pub(super) n: usize,
    /// How many of them, from the first, are as they are stored, but for where a node below is.
    kept: usize,
    /// It was committed with the bound that is far away: it can take more at its end where it is.
    pub(super) is_open: bool,
}

impl OnFile {
    /// All entries are stored.
    pub(super) fn whole(n: usize, is_open: bool) -> OnFile {
        OnFile { n, kept: n, is_open }
    }

    /// Whether a node of `len` entries can stay where it is.
    pub(super) fn can_stay(self, len: usize) -> bool {
        self.n > 0 && self.kept == self.n && (len == self.n || self.is_open)
    }
}

/// A node in memory.
#[derive(Debug)]
pub(super) struct Node {
    /// One for each entry.
    pub(super) keys: Keys,
    pub(super) body: Body,
    trend: Trend,
    pub(super) on_file: OnFile,
}

/// Whether a node is the first or last of its level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edges {
    pub(super) left: bool,
    pub(super) right: bool,
}

impl Node {
    pub(super) fn new(keys: Keys, body: Body) -> Node {
        Node { keys, body, trend: Trend::None, on_file: OnFile::default() }
    }

    /// Says that entry `i`, or its key, is not as it is stored any more.
    pub(super) fn touch(&mut self, i: usize) {
        self.on_file.kept = self.on_file.kept.min(i);
    }

    /// Says that there will be one more from entry `i` on.
    fn grows(&mut self, i: usize, most: usize) {
        // One that is split ends elsewhere, and only from a bound far away can that be written over.
        let is_split = self.len() >= most;
        self.touch(if is_split && !self.on_file.is_open { 0 } else { i });
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        match &self.body {
            Body::Leaf(entries) => entries.len(),
            Body::Inner(children) => children.len(),
        }
    }

    /// Adds a chunk at place `at`, and gives the second part of a node that had to be split.
    pub(super) fn add_entry(
        &mut self,
        at: usize,
        key: (&Packing, Probe<'_>),
        entry: Entry,
        edges: Edges,
        most: usize,
    ) -> Option<Node> {
        let (cut, trends) = self.plan(at, 0, edges, most);
        self.grows(at.min(cut), most);
        let Body::Leaf(entries) = &mut self.body else { return None };
        let split = put(&mut self.keys, entries, at, key, entry, most, cut);
        self.trend = trends[0];
        let second = |(keys, entries)| Node::new(keys, Body::Leaf(entries));
        split.map(|split| Node { trend: trends[1], ..second(split) })
    }

    /// The same for a child.
    pub(super) fn add_child(
        &mut self,
        at: usize,
        key: (&Packing, Probe<'_>),
        child: Child,
        edges: Edges,
        most: usize,
    ) -> Option<Node> {
        // Children are second parts of nodes that were split, so none becomes the first.
        let (cut, trends) = self.plan(at, 1, edges, most);
        self.grows(at.min(cut), most);
        let Body::Inner(children) = &mut self.body else { return None };
        let split = put(&mut self.keys, children, at, key, child, most, cut);
        self.trend = trends[0];
        let second = |(keys, children)| Node::new(keys, Body::Inner(children));
        split.map(|split| Node { trend: trends[1], ..second(split) })
    }

    /// Where to split if there is no room for one more at place `at`, and the trends of both parts.
    /// `first` is the first place where one may be added.
    ///
    /// Where the next will come behind this one (or before it), a full node stays behind. It then
    /// has no trend, so that an order that only looks like one makes no more nodes than any other.
    fn plan(&self, at: usize, first: usize, edges: Edges, most: usize) -> (usize, [Trend; 2]) {
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

    /// Takes entry `i` out, with its key.
    pub(super) fn take(&mut self, packing: &Packing, i: usize) -> Option<Taken> {
        let taken = match &mut self.body {
            Body::Leaf(entries) if i < entries.len() => Taken::Entry(entries.remove(i)),
            Body::Inner(children) if i < children.len() => Taken::Child(children.remove(i)),
            _ => return None,
        };
        self.keys.remove(packing, i);
        self.touch(i);
        Some(taken)
    }
}

/// What was in a node.
#[derive(Debug)]
pub(super) enum Taken {
    Entry(Entry),
    Child(Child),
}

/// Puts an item and its key at place `at`. Where there is no room for more than `most`, the items
/// are split before place `cut`, counted with the new one, and the second part is given back.
#[inline]
fn put<T>(
    keys: &mut Keys,
    items: &mut Vec<T>,
    at: usize,
    (packing, probe): (&Packing, Probe<'_>),
    item: T,
    most: usize,
    cut: usize,
) -> Option<(Keys, Vec<T>)> {
    if items.len() < most {
        insert(keys, items, at, (packing, probe), item, most);
        return None;
    }
    let is_first = at < cut;
    let from = if is_first { cut.saturating_sub(1) } else { cut }.min(items.len());
    let mut second_keys = keys.split_off(packing, from);
    let mut second = items.split_off(from);
    if is_first {
        insert(keys, items, at, (packing, probe), item, most);
    } else {
        let at = at.saturating_sub(cut);
        insert(&mut second_keys, &mut second, at, (packing, probe), item, most);
    }
    Some((second_keys, second))
}

#[inline]
fn insert<T>(
    keys: &mut Keys,
    items: &mut Vec<T>,
    at: usize,
    (packing, probe): (&Packing, Probe<'_>),
    item: T,
    most: usize,
) {
    let n = items.len();
    // No more room than a full node needs, and little for the many trees of a single chunk.
    let more = n.max(4).min(most.saturating_sub(n)).max(1);
    if n == items.capacity() {
        items.reserve_exact(more);
    }
    let at = at.min(n);
    items.insert(at, item);
    keys.insert(packing, at, probe, more);
}
