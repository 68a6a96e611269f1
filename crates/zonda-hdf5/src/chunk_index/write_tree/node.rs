//! Nodes in memory: keys side by side, and for each a chunk or a node below.
//!
//! Key `i` of an inner node is a lower bound of what is under child `i`. Keys before the first go to
//! child 0, so that bounds at the left edge need not be right until something is put there.

use std::cmp::Ordering;
use std::sync::OnceLock;

use super::super::grid::Numbers;
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
    /// Filled when the node is needed.
    pub(super) node: OnceLock<Box<Node>>,
}

impl Child {
    /// A node that is only stored.
    pub(super) fn stored(addr: FileAddr) -> Child {
        Child { addr: Some(addr), is_dirty: false, node: OnceLock::new() }
    }

    /// A node that is only in memory.
    pub(super) fn fresh(node: Node) -> Child {
        Child { addr: None, is_dirty: true, node: OnceLock::from(Box::new(node)) }
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

/// A node in memory.
#[derive(Debug)]
pub(super) struct Node {
    /// As many numbers as there are dimensions for each entry.
    pub(super) keys: Vec<u64>,
    pub(super) body: Body,
    trend: Trend,
}

/// Whether a node is the first or last of its level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edges {
    pub(super) left: bool,
    pub(super) right: bool,
}

impl Node {
    pub(super) fn new(keys: Vec<u64>, body: Body) -> Node {
        Node { keys, body, trend: Trend::None }
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        match &self.body {
            Body::Leaf(entries) => entries.len(),
            Body::Inner(children) => children.len(),
        }
    }

    /// Key `i`.
    #[inline]
    pub(super) fn key(&self, rank: usize, i: usize) -> Option<&[u64]> {
        key_of(&self.keys, rank, i)
    }

    /// How many keys come before this one.
    pub(super) fn before(&self, key: &[u64]) -> usize {
        count(&self.keys, key.len(), |other| cmp(other, key).is_lt())
    }

    /// How many keys come before this one or are it.
    pub(super) fn up_to(&self, key: &[u64]) -> usize {
        count(&self.keys, key.len(), |other| cmp(other, key).is_le())
    }

    /// Adds a chunk at place `at`, and gives the second part of a node that had to be split.
    pub(super) fn add_entry(
        &mut self,
        at: usize,
        key: &[u64],
        entry: Entry,
        edges: Edges,
        most: usize,
    ) -> Option<Node> {
        let (cut, trends) = self.plan(at, 0, edges, most);
        let Body::Leaf(entries) = &mut self.body else { return None };
        let split = put(&mut self.keys, entries, at, key, entry, most, cut);
        self.trend = trends[0];
        split.map(|(keys, entries)| Node { keys, body: Body::Leaf(entries), trend: trends[1] })
    }

    /// The same for a child.
    pub(super) fn add_child(
        &mut self,
        at: usize,
        key: &[u64],
        child: Child,
        edges: Edges,
        most: usize,
    ) -> Option<Node> {
        // Children are second parts of nodes that were split, so none becomes the first.
        let (cut, trends) = self.plan(at, 1, edges, most);
        let Body::Inner(children) = &mut self.body else { return None };
        let split = put(&mut self.keys, children, at, key, child, most, cut);
        self.trend = trends[0];
        split.map(|(keys, children)| Node { keys, body: Body::Inner(children), trend: trends[1] })
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
    pub(super) fn take(&mut self, rank: usize, i: usize) -> Option<Taken> {
        let taken = match &mut self.body {
            Body::Leaf(entries) if i < entries.len() => Taken::Entry(entries.remove(i)),
            Body::Inner(children) if i < children.len() => Taken::Child(children.remove(i)),
            _ => return None,
        };
        let from = i.saturating_mul(rank).min(self.keys.len());
        let to = from.saturating_add(rank).min(self.keys.len());
        self.keys.drain(from..to);
        Some(taken)
    }
}

/// What was in a node.
#[derive(Debug)]
pub(super) enum Taken {
    Entry(Entry),
    Child(Child),
}

/// A key that outlives its node.
pub(super) fn owned(key: &[u64]) -> Numbers {
    Numbers::from_slice(key)
}

#[inline]
fn key_of(keys: &[u64], rank: usize, i: usize) -> Option<&[u64]> {
    let from = i.checked_mul(rank)?;
    keys.get(from..from.checked_add(rank)?)
}

/// Slowest dimension first.
#[inline]
fn cmp(a: &[u64], b: &[u64]) -> Ordering {
    for (a, b) in a.iter().zip(b) {
        if a != b {
            return a.cmp(b);
        }
    }
    Ordering::Equal
}

/// Keys looked at in one round of a search.
const SAMPLES: usize = 7;

/// How many keys from the first on are such; all others are not.
///
/// The keys of a large tree are not in the processor's cache, and a search by halves waits for one
/// after the other. Several looked at together take hardly longer than one.
#[inline]
fn count(keys: &[u64], rank: usize, is_such: impl Fn(&[u64]) -> bool) -> usize {
    let n = keys.len().checked_div(rank).unwrap_or(0);
    let is_such = |i| key_of(keys, rank, i).is_some_and(&is_such);
    // Mostly keys come in ascending order.
    let Some(mut high) = n.checked_sub(1).filter(|&last| !is_such(last)) else { return n };
    let mut low = 0usize;
    while low < high {
        let step = high.wrapping_sub(low).div_ceil(SAMPLES.wrapping_add(1));
        let mut such = 0usize;
        let mut at = low;
        for _ in 0..SAMPLES {
            at = at.wrapping_add(step);
            such = such.wrapping_add(usize::from(at <= high && is_such(at.wrapping_sub(1))));
        }
        low = low.wrapping_add(such.wrapping_mul(step));
        if such < SAMPLES {
            // The sample that was not, or what is behind the last one.
            high = high.min(low.wrapping_add(step).wrapping_sub(1));
        }
    }
    low
}

/// Puts an item and its key at place `at`. Where there is no room for more than `most`, the items
/// are split before place `cut`, counted with the new one, and the second part is given back.
fn put<T>(
    keys: &mut Vec<u64>,
    items: &mut Vec<T>,
    at: usize,
    key: &[u64],
    item: T,
    most: usize,
    cut: usize,
) -> Option<(Vec<u64>, Vec<T>)> {
    if items.len() < most {
        insert(keys, items, at, key, item, most);
        return None;
    }
    let is_first = at < cut;
    let from = if is_first { cut.saturating_sub(1) } else { cut }.min(items.len());
    let mut second_keys = keys.split_off(from.saturating_mul(key.len()).min(keys.len()));
    let mut second = items.split_off(from);
    if is_first {
        insert(keys, items, at, key, item, most);
    } else {
        insert(&mut second_keys, &mut second, at.saturating_sub(cut), key, item, most);
    }
    Some((second_keys, second))
}

fn insert<T>(
    keys: &mut Vec<u64>,
    items: &mut Vec<T>,
    at: usize,
    key: &[u64],
    item: T,
    most: usize,
) {
    let n = items.len();
    if n == items.capacity() {
        // No more than a full node needs, and few bytes for the many trees of a single chunk.
        let room = n.saturating_mul(2).max(4).min(most).max(n.saturating_add(1));
        items.reserve_exact(room.saturating_sub(n));
        keys.reserve_exact(room.saturating_mul(key.len()).saturating_sub(keys.len()));
    }
    let at = at.min(n);
    items.insert(at, item);
    let (from, end) = (at.saturating_mul(key.len()), keys.len());
    let to = from.saturating_add(key.len());
    keys.extend_from_slice(key);
    if from < end {
        keys.copy_within(from..end, to);
        if let Some(place) = keys.get_mut(from..to) {
            place.copy_from_slice(key);
        }
    }
}
