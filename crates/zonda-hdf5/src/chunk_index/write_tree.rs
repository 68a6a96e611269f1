//! The index of the chunks of a dataset that is being written: a version 1 B-tree in memory.
//!
//! Stored nodes are read one by one when they are needed. Changes stay in memory until
//! [`ChunkTree::commit`], which writes changed nodes and those above them to new addresses: nothing
//! that the last commit refers to is written over (but see there what only grows at its end). Nodes
//! have the addresses of their neighbours, and the neighbours of a changed node cannot all be
//! written anew. So these addresses are changed in place. A reader that looks for chunks goes from
//! the root to the leaves and never uses them.

mod commit;
mod keys;
mod node;
mod node_loader;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tree_test;

use std::sync::Arc;

use smallvec::SmallVec;

use self::keys::{KeyPacking, NodeKeys, SearchKey};
use self::node::{ChunkEntry, LevelEdges, NodeEntries, RemovedEntry, WriteLink, WriteNode};
use self::node_loader::NodeLoader;
use super::grid::DimValues;
use super::{ChunkIndex, ChunkLocation};
use crate::message::{ChunkIndexKind, ChunkedLayout};
use crate::{File, FileAddr, HdfError, Result};

pub use self::commit::TreeCommit;

const NAME: &str = "version 1 B-tree of chunks";

/// The chunks of one dataset, in memory as they are or will be in the file.
///
/// Keys are coordinates of chunks, counted in chunks, slowest dimension first. Methods on `&self`
/// may be called from any thread. An error leaves the tree as it was.
#[derive(Debug)]
pub struct ChunkTree {
    loader: NodeLoader,
    root: Option<WriteLink>,
    /// Level of the root.
    level: u8,
    /// The coordinates behind the last chunk that there ever was.
    end: DimValues,
    /// Whether the bounds of the last commit are before `end`.
    has_new_end: bool,
    /// Whether the bounds of the last commit are far away.
    is_open: bool,
    /// The root of the last commit.
    committed: Option<FileAddr>,
    /// Nodes of the last commit that the tree has no more.
    dropped: Vec<FileAddr>,
}

impl ChunkTree {
    /// The index of a dataset without chunks in this file.
    ///
    /// `chunk_dims` is the shape of a chunk in elements, `elem_size` the bytes of an element.
    ///
    /// # Errors
    /// [`HdfError::BadValue`] for chunks of no elements and for a file whose nodes have no room,
    /// [`HdfError::TooLarge`] for chunks of 4 GiB or more.
    pub fn new(file: &Arc<File>, chunk_dims: &[u64], elem_size: u32) -> Result<ChunkTree> {
        let loader = NodeLoader::new(file, chunk_dims, elem_size)?;
        let end = DimValues::from_elem(0, chunk_dims.len());
        Ok(ChunkTree {
            loader,
            root: None,
            level: 0,
            end,
            has_new_end: false,
            is_open: false,
            committed: None,
            dropped: Vec::new(),
        })
    }

    /// The index that a dataset has, of which only the nodes on the way to the last chunk are read
    /// here. `filtered` says whether the dataset has a filter pipeline.
    ///
    /// # Errors
    /// [`HdfError::Unsupported`] for an index that is not a version 1 B-tree; as
    /// [`ChunkTree::new`]; damage in these nodes.
    pub fn load(file: &Arc<File>, layout: &ChunkedLayout, filtered: bool) -> Result<ChunkTree> {
        let mut tree = ChunkTree::new(file, &layout.chunk_dims, layout.elem_size)?;
        let Some(addr) = layout.addr else { return Ok(tree) };
        if layout.index != ChunkIndexKind::BtreeV1 {
            let what = "changing a chunk index other than a version 1 B-tree";
            return Err(HdfError::Unsupported { structure: NAME, at: addr.0, what });
        }
        if !filtered {
            tree.loader.fix_len();
        }
        let (root, level, end) = tree.loader.read_root(addr)?;
        tree.end = end;
        // The bounds that other writers wrote may be wrong.
        for key in tree.loader.last_keys(&root, level)? {
            tree.reach(&key);
        }
        tree.level = level;
        tree.root = Some(root);
        tree.committed = Some(addr);
        Ok(tree)
    }

    /// A tree, not in the file yet, of the chunks of an index of any kind.
    ///
    /// # Errors
    /// As [`ChunkTree::new`]; damage in the index.
    pub fn from_other(
        file: &Arc<File>,
        chunk_dims: &[u64],
        elem_size: u32,
        index: &ChunkIndex,
    ) -> Result<ChunkTree> {
        let mut tree = ChunkTree::new(file, chunk_dims, elem_size)?;
        let mut result = Ok(());
        index.for_each(&mut |key, at| {
            if result.is_ok() {
                result = tree.insert(key, at).map(drop);
            }
        })?;
        result.map(|()| tree)
    }

    /// Whether there are no chunks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let node = self.root.as_ref().map(|root| root.node.get());
        node.is_none_or(|node| node.is_some_and(|node| node.len() == 0))
    }

    /// How many chunks there are. Reads all nodes that were not read yet.
    ///
    /// # Errors
    /// Damage in the index.
    pub fn len(&self) -> Result<u64> {
        let rank = self.loader.rank();
        let mut n = 0u64;
        let (first, last) = (DimValues::from_elem(0, rank), DimValues::from_elem(u64::MAX, rank));
        self.for_each_in(&first, &last, &mut |_, _| n = n.saturating_add(1))?;
        Ok(n)
    }

    /// Whether something changed since the last commit.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        match &self.root {
            Some(root) => root.is_dirty || root.addr != self.committed,
            None => self.committed.is_some(),
        }
    }

    /// Where a chunk is.
    ///
    /// # Errors
    /// Damage in the nodes on the way to it.
    pub fn get(&self, key: &[u64]) -> Result<Option<ChunkLocation>> {
        self.loader.check(key)?;
        let Some(mut child) = self.root.as_ref() else { return Ok(None) };
        let mut level = self.level;
        let search_key = self.loader.packing.search_key(key);
        loop {
            let node = self.loader.node(child, level)?;
            let (at, is_there) = node.keys.search(&self.loader.packing, search_key);
            match &node.body {
                NodeEntries::Leaf(entries) => {
                    let entry = entries.get(at).filter(|_| is_there);
                    return Ok(entry.map(|entry| self.loader.location(entry)));
                }
                NodeEntries::Inner(children) => {
                    let at = if is_there { at } else { at.saturating_sub(1) };
                    let Some(next) = children.get(at) else { return Ok(None) };
                    child = next;
                    level = level.saturating_sub(1);
                }
            }
        }
    }

    /// Sets where a chunk is; gives where it was before.
    ///
    /// # Errors
    /// [`HdfError::BadValue`] for a key of another number of dimensions and for a place before the
    /// file's first byte, [`HdfError::TooLarge`] for 4 GiB or more and for coordinates beyond what
    /// bounds can say; damage in the index.
    pub fn insert(&mut self, key: &[u64], at: ChunkLocation) -> Result<Option<ChunkLocation>> {
        self.loader.check(key)?;
        if key.contains(&u64::MAX) {
            // There would be no bound behind it.
            return Err(HdfError::TooLarge { structure: NAME, value: u64::MAX });
        }
        let entry = self.loader.entry(at)?;
        let edges = LevelEdges { left: true, right: true };
        let packing = &self.loader.packing;
        let mut search_key = packing.search_key(key);
        if key >= self.end.as_slice() {
            search_key = search_key.behind();
        }
        let Some(root) = &mut self.root else {
            let mut leaf = WriteNode::new(NodeKeys::new(), NodeEntries::Leaf(Vec::new()));
            leaf.add_entry(0, (packing, search_key), entry, edges, self.loader.most());
            self.root = Some(WriteLink::fresh(leaf));
            self.level = 0;
            self.reach(key);
            return Ok(None);
        };
        let (before, split) =
            insert_below(&self.loader, root, self.level, search_key, entry, edges)?;
        if let Some(second) = split
            && let Some(root) = self.root.take()
        {
            let mut keys = NodeKeys::new();
            let mut key = DimValues::new();
            for (i, node) in
                root.node.get().map(|node| &**node).into_iter().chain([&second]).enumerate()
            {
                node.keys.read(packing, 0, &mut key);
                keys.insert(packing, i, packing.search_key(&key), 2);
            }
            let second = WriteLink::fresh(second);
            let node = WriteNode::new(keys, NodeEntries::Inner(vec![root, second]));
            self.root = Some(WriteLink::fresh(node));
            self.level = self.level.saturating_add(1);
        }
        self.reach(key);
        Ok(before.map(|before| self.loader.location(&before)))
    }

    /// Moves the end behind a chunk.
    fn reach(&mut self, key: &[u64]) {
        if key >= self.end.as_slice() {
            self.end = key.iter().map(|coord| coord.saturating_add(1)).collect();
            self.has_new_end = true;
        }
    }

    /// Removes a chunk; gives where it was. The caller gives its space back.
    ///
    /// # Errors
    /// Damage in the index.
    pub fn remove(&mut self, key: &[u64]) -> Result<Option<ChunkLocation>> {
        self.loader.check(key)?;
        let Some(root) = &mut self.root else { return Ok(None) };
        let search_key = self.loader.packing.search_key(key);
        let removed = remove_below(&self.loader, root, self.level, search_key, &mut self.dropped)?;
        if root.node.get().is_some_and(|node| node.len() == 0) && removed.is_some() {
            self.dropped.extend(root.addr);
            self.root = None;
        }
        // The only child of a root takes its place.
        while let Some(root) = &mut self.root
            && let Some(NodeEntries::Inner(children)) =
                root.node.get_mut().map(|node| &mut node.body)
            && children.len() == 1
            && let Some(child) = children.pop()
        {
            self.dropped.extend(root.addr);
            self.root = Some(child);
            self.level = self.level.saturating_sub(1);
        }
        Ok(removed.map(|removed| self.loader.location(&removed)))
    }

    /// Tells `found` of the chunks in a box, both corners included, in ascending order. Reads what
    /// the box needs and was not read yet, many nodes at a time.
    ///
    /// # Errors
    /// Damage in the index, before any chunk is told of.
    pub fn for_each_in(
        &self,
        first: &[u64],
        last: &[u64],
        found: &mut dyn FnMut(&[u64], ChunkLocation),
    ) -> Result<()> {
        self.loader.check(first)?;
        self.loader.check(last)?;
        let area = ChunkBox { packing: &self.loader.packing, first, last };
        let Some(root) = self.root.as_ref().filter(|_| area.next(first).is_some()) else {
            return Ok(());
        };
        let mut nodes: SmallVec<[&WriteLink; 8]> = SmallVec::new();
        nodes.push(root);
        let mut level = self.level;
        loop {
            self.loader.read_all(&nodes, level)?;
            if level == 0 {
                break;
            }
            let mut below = SmallVec::new();
            for child in nodes {
                area.children(self.loader.node(child, level)?, &mut below);
            }
            nodes = below;
            level = level.saturating_sub(1);
        }
        for child in nodes {
            let node = self.loader.node(child, 0)?;
            area.entries(node, &mut |key, entry| found(key, self.loader.location(entry)));
        }
        Ok(())
    }
}

/// Inserts a chunk under a node; gives where the chunk was before, and the second part of the node
/// if it had to be split.
fn insert_below(
    loader: &NodeLoader,
    child: &mut WriteLink,
    level: u8,
    search_key: SearchKey<'_>,
    entry: ChunkEntry,
    edges: LevelEdges,
) -> Result<(Option<ChunkEntry>, Option<WriteNode>)> {
    let packing = &loader.packing;
    let node = loader.node_mut(child, level)?;
    let (at, is_there) = node.keys.search(packing, search_key);
    let (before, second) = match &mut node.body {
        NodeEntries::Leaf(entries) if is_there => {
            let before = entries.get_mut(at).map(|place| std::mem::replace(place, entry));
            node.touch(at);
            (before, None)
        }
        NodeEntries::Leaf(_) => {
            (None, node.add_entry(at, (packing, search_key), entry, edges, loader.most()))
        }
        NodeEntries::Inner(children) => {
            let i = if is_there { at } else { at.saturating_sub(1) };
            let next = i.saturating_add(1);
            let is_last = next == children.len();
            let Some(below) = children.get_mut(i) else { return Ok((None, None)) };
            let edges_below =
                LevelEdges { left: edges.left && i == 0, right: edges.right && is_last };
            let (before, split) = insert_below(
                loader,
                below,
                level.saturating_sub(1),
                search_key,
                entry,
                edges_below,
            )?;
            if at == 0 && !is_there {
                // A chunk before all others goes to the first child.
                node.keys.put(packing, 0, search_key);
                node.touch(0);
            }
            let second = split.and_then(|second| {
                let mut first = DimValues::new();
                second.keys.read(packing, 0, &mut first);
                let key = (packing, packing.search_key(&first));
                let second = WriteLink::fresh(second);
                node.add_child(next, key, second, edges, loader.most())
            });
            (before, second)
        }
    };
    child.is_dirty = true;
    Ok((before, second))
}

/// Removes a chunk from under a node, which may be empty then.
fn remove_below(
    loader: &NodeLoader,
    child: &mut WriteLink,
    level: u8,
    search_key: SearchKey<'_>,
    dropped: &mut Vec<FileAddr>,
) -> Result<Option<ChunkEntry>> {
    let packing = &loader.packing;
    let node = loader.node_mut(child, level)?;
    let (at, is_there) = node.keys.search(packing, search_key);
    let removed = match &mut node.body {
        NodeEntries::Leaf(_) => match is_there.then(|| node.take(packing, at)).flatten() {
            Some(RemovedEntry::Chunk(entry)) => Some(entry),
            _ => None,
        },
        NodeEntries::Inner(children) => {
            let at = if is_there { at } else { at.saturating_sub(1) };
            let below = level.saturating_sub(1);
            // The node beside a child that is removed gets another neighbour, and a node ends where
            // the next one begins. It is read before anything changes.
            let beside = if at == 0 { 1 } else { at.saturating_sub(1) };
            if let Some(beside) = children.get(beside) {
                loader.read_edge(beside, below, at > 0)?;
            }
            let Some(next) = children.get_mut(at) else { return Ok(None) };
            let removed = remove_below(loader, next, below, search_key, dropped)?;
            let (mut first, mut first_was) = (DimValues::new(), DimValues::new());
            let is_left = loader.node(next, below)?.keys.read(packing, 0, &mut first);
            node.keys.read(packing, at, &mut first_was);
            if removed.is_none() || (is_left && first == first_was) {
                child.is_dirty |= removed.is_some();
                return Ok(removed);
            }
            if is_left {
                node.keys.put(packing, at, packing.search_key(&first));
                node.touch(at);
            } else if let Some(RemovedEntry::Child(gone)) = node.take(packing, at) {
                dropped.extend(gone.addr);
            }
            // Nothing in this node ends where its first child begins.
            if let NodeEntries::Inner(children) = &mut node.body
                && let Some(beside) = children.get_mut(at.saturating_sub(1))
                && !(is_left && at == 0)
            {
                touch_edge(beside, at > 0);
            }
            removed
        }
    };
    child.is_dirty |= removed.is_some();
    Ok(removed)
}

/// Marks a node and those below it at its last (or first) side as changed.
fn touch_edge(child: &mut WriteLink, is_last: bool) {
    child.is_dirty = true;
    let Some(node) = child.node.get_mut() else { return };
    node.touch(0);
    if let NodeEntries::Inner(children) = &mut node.body {
        let next = if is_last { children.last_mut() } else { children.first_mut() };
        if let Some(next) = next {
            touch_edge(next, is_last);
        }
    }
}

/// A box of chunks, both corners included.
struct ChunkBox<'a> {
    packing: &'a KeyPacking,
    first: &'a [u64],
    last: &'a [u64],
}

impl ChunkBox<'_> {
    /// The first key of the box at or after `key`.
    fn next(&self, key: &[u64]) -> Option<DimValues> {
        let mut next = DimValues::new();
        for ((&coord, &first), &last) in key.iter().zip(self.first).zip(self.last) {
            if first > last {
                return None;
            }
            if coord < first {
                break;
            }
            if coord > last {
                // The slower dimensions go on by one where they can; the faster ones begin again.
                loop {
                    let before = next.pop()?;
                    if self.last.get(next.len()).is_some_and(|&last| before < last) {
                        next.push(before.saturating_add(1));
                        break;
                    }
                }
                break;
            }
            next.push(coord);
        }
        let faster = self.first.get(next.len()..).unwrap_or_default();
        next.extend_from_slice(faster);
        Some(next)
    }

    /// The children of a node that may have chunks of the box.
    fn children<'n>(&self, node: &'n WriteNode, out: &mut SmallVec<[&'n WriteLink; 8]>) {
        let NodeEntries::Inner(children) = &node.body else { return };
        let mut from = Some(DimValues::from_slice(self.first));
        let mut bound = DimValues::new();
        while let Some(key) = from {
            let (at, is_there) = node.keys.search(self.packing, self.packing.search_key(&key));
            let at = if is_there { at } else { at.saturating_sub(1) };
            out.extend(children.get(at));
            // Go on where the next child begins, or where the box begins behind that.
            let is_last = !node.keys.read(self.packing, at.saturating_add(1), &mut bound);
            from = if is_last { None } else { self.next(&bound) };
        }
    }

    /// The chunks of a leaf that are in the box.
    fn entries(&self, node: &WriteNode, found: &mut dyn FnMut(&[u64], &ChunkEntry)) {
        let NodeEntries::Leaf(entries) = &node.body else { return };
        let (mut at, _) = node.keys.search(self.packing, self.packing.search_key(self.first));
        let mut key = DimValues::new();
        while let Some(entry) = entries.get(at) {
            node.keys.read(self.packing, at, &mut key);
            let is_in = |((coord, first), last)| first <= coord && coord <= last;
            if key.iter().zip(self.first).zip(self.last).all(is_in) {
                found(&key, entry);
                at = at.saturating_add(1);
            } else {
                let Some(next) = self.next(&key) else { return };
                (at, _) = node.keys.search(self.packing, self.packing.search_key(&next));
            }
        }
    }
}
