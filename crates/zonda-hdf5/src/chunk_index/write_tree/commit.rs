//! The commit of a chunk tree: changed nodes are encoded.
//!
//! A changed node goes to a new address, and so would all nodes above it, up to the header that has
//! the address of the root. A writer that commits again and again would give back as much space
//! each time, which readers may still use. So nodes stay where they are if one of two things is all
//! that changed:
//!
//! - *One* node below is elsewhere, and none was split. Then its address is written over, which is
//!   one word. If more has changed, all nodes above go to new addresses, so that a reader never
//!   sees some changes without others, such as one half of a node that was split.
//! - Entries were added at the end of the tree. A caller that commits often says so
//!   ([`ChunkTree::commit`]), and nodes at the right edge get a bound that is far away. From then
//!   on, new entries are written behind those that are counted, and then the count, of two bytes. A
//!   reader in between sees what it saw before: the only changed key that it looks at is the bound,
//!   in whose place the next entry begins. The bound changes from the far one to the key of that
//!   entry. Both are behind all entries that are counted, and so is every mixture of their words.

use std::ops::Range;

use super::super::grid::DimValues;
use super::node::{NodeEntries, StoredEntries, WriteLink, WriteNode};
use super::node_loader::NodeLoader;
use super::{ChunkTree, NAME};
use crate::{FileAddr, HdfError, NewBlocks, Result, Writer};

/// Bytes to be written, and their address.
type FileBytes = (FileAddr, Vec<u8>);

/// Where the root is after a commit, for the header of the dataset, and what is to be written over
/// in place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeCommit {
    /// Where the index is now; `None` where there are no chunks.
    pub root: Option<FileAddr>,
    /// Entries behind those that nodes count, and bounds. Like new nodes, they are to be written
    /// and durable before the switches.
    pub appended: Vec<FileBytes>,
    /// Numbers of entries of nodes that stay where they are, and at most one address in such a
    /// node, each within a sector. They are to be written and durable before the header: no reader
    /// asks for chunks that are counted and not yet within the extent.
    pub switches: Vec<FileBytes>,
    /// Addresses of neighbours in nodes that stay where they are. They are to be written with the
    /// header, before or after it: both the tree of the last commit and the new one can be read
    /// with them and without.
    pub patches: Vec<FileBytes>,
}

impl ChunkTree {
    /// Gives changed nodes to `fresh`, at new addresses, and gives their old space back. The small
    /// changes of nodes that stay are in what it returns. `often` says that the next commit will
    /// come soon.
    ///
    /// # Errors Damage in nodes that had to be read, [`HdfError::TooLarge`] for elements or a file
    /// beyond what numbers can say. Nothing refers to what `fresh` was given until then.
    pub fn commit(&mut self, fresh: &mut NewBlocks<'_>, often: bool) -> Result<TreeCommit> {
        let mut out = TreeCommit::default();
        let mut old = Vec::new();
        let far = self.loader.far();
        let is_open = often && self.end <= far && (self.is_open || self.has_new_end);
        let bound = if is_open { &far } else { &self.end };
        if let Some(root) = self.root.as_mut().filter(|root| root.is_dirty) {
            let ends_right = !is_open && !self.has_new_end;
            let (loader, n_swaps, n_new) = (&self.loader, 0, 0);
            let mut planner = StayPlanner { loader, ends_right, may_swap: true, n_swaps, n_new };
            planner.node(root, true);
            if planner.n_swaps > 1 || (planner.n_swaps == 1 && planner.n_new > 0) {
                planner.may_swap = false;
                planner.node(root, true);
            }
            place(root, self.loader.shape.node_len(), fresh, &mut old)?;
        }
        if let Some(root) = &self.root {
            let mut writing = TreeWriter { loader: &self.loader, fresh, out: &mut out };
            let around = NodeWithNeighbours { link: root, left: None, right: None };
            if root.is_dirty {
                writing.node(around, self.level, bound)?;
            }
            out.root = root.addr;
        }
        if let Some(root) = self.root.as_mut().filter(|root| root.is_dirty) {
            clean(root, is_open);
        }
        for addr in old.into_iter().chain(self.dropped.drain(..)) {
            fresh.space().free(addr, self.loader.shape.node_len());
        }
        self.committed = out.root;
        (self.is_open, self.has_new_end) = (is_open, false);
        Ok(out)
    }
}

/// Finds out which changed nodes stay where they are.
struct StayPlanner<'a> {
    loader: &'a NodeLoader,
    /// Whether the bounds at the right edge stay right where they are not far away.
    ends_right: bool,
    /// Whether a node may stay of which one node below moves.
    may_swap: bool,
    /// How many stored links will lead elsewhere, and how many nodes are new.
    n_swaps: usize,
    n_new: usize,
}

impl StayPlanner<'_> {
    /// Decides for a node and all below it. `is_edge` says that the node is the last of its level.
    fn node(&mut self, child: &mut WriteLink, is_edge: bool) {
        let Some(node) = child.node.get_mut() else { return };
        let len = node.len();
        let is_right = !is_edge || node.stored.is_open || self.ends_right;
        let mut stays = child.addr.filter(|_| is_right && node.stored.can_stay(len));
        child.swapped = None;
        if let NodeEntries::Inner(children) = &mut node.body {
            for (i, below) in children.iter_mut().enumerate().filter(|(_, below)| below.is_dirty) {
                self.node(below, is_edge && i.saturating_add(1) == len);
                if below.stays || i >= node.stored.n {
                    continue;
                }
                self.n_swaps = self.n_swaps.saturating_add(1);
                let word = self.loader.shape.child_at(i);
                let may_swap = self.may_swap && child.swapped.is_none();
                stays = stays.filter(|addr| may_swap && self.loader.is_one_word(*addr, word));
                child.swapped = Some(i);
            }
        }
        child.stays = stays.is_some();
        self.n_new = self.n_new.saturating_add(usize::from(child.addr.is_none()));
    }
}

/// Gives new addresses to changed nodes that do not stay.
fn place(
    child: &mut WriteLink,
    len: u64,
    fresh: &mut NewBlocks<'_>,
    old: &mut Vec<FileAddr>,
) -> Result<()> {
    if child.moves() {
        old.extend(child.addr.replace(fresh.space().alloc(len)?));
    }
    let moves = child.moves();
    let Some(node) = child.node.get_mut() else { return Ok(()) };
    if moves {
        node.stored = StoredEntries::default();
    }
    if let NodeEntries::Inner(children) = &mut node.body {
        for child in children.iter_mut().filter(|child| child.is_dirty) {
            place(child, len, fresh, old)?;
        }
    }
    Ok(())
}

/// Marks all nodes as stored as they are in memory. If `is_open`, those at the right edge can grow
/// where they are.
fn clean(child: &mut WriteLink, is_open: bool) {
    let is_dirty = std::mem::replace(&mut child.is_dirty, false);
    child.stays = false;
    let Some(node) = child.node.get_mut() else { return };
    let was_open = node.stored.is_open;
    if !is_dirty && was_open == is_open {
        return;
    }
    // A node that did not change has the bound that it had: it can be closed, not opened.
    node.stored = StoredEntries::whole(node.len(), is_open && (is_dirty || was_open));
    if let NodeEntries::Inner(children) = &mut node.body {
        let last = children.len().saturating_sub(1);
        for (i, child) in children.iter_mut().enumerate() {
            clean(child, is_open && i == last);
        }
    }
}

/// A node and its neighbours.
#[derive(Clone, Copy)]
struct NodeWithNeighbours<'a> {
    link: &'a WriteLink,
    left: Option<&'a WriteLink>,
    right: Option<&'a WriteLink>,
}

struct TreeWriter<'a, 'f, 's> {
    loader: &'a NodeLoader,
    fresh: &'f mut NewBlocks<'s>,
    out: &'f mut TreeCommit,
}

fn place_of(child: &WriteLink) -> Result<FileAddr> {
    let what = "the place of a node";
    child.addr.ok_or(HdfError::Missing { structure: NAME, at: 0, what })
}

impl TreeWriter<'_, '_, '_> {
    /// Encodes a changed node, whose chunks are all before `bound`, and the changed nodes below it.
    fn node(&mut self, around: NodeWithNeighbours<'_>, level: u8, bound: &[u64]) -> Result<()> {
        let NodeWithNeighbours { link, left, right } = around;
        let loader = self.loader;
        let shape = &loader.shape;
        let node = loader.node(link, level)?;
        let addr = place_of(link)?;
        let neighbours = [left, right].map(|child| child.and_then(|child| child.addr));
        let bytes = shape.encode(level, node.len(), neighbours, |writer| {
            self.entries(node, bound, right.is_none(), writer)
        })?;
        if link.stays {
            self.in_place(link, node, &bytes, right.is_none())?;
        } else {
            self.fresh.put_at(addr, bytes);
            for (neighbour, word) in [(left, shape.right_at()), (right, shape.left_at())] {
                if let Some(neighbour) = neighbour.filter(|neighbour| !neighbour.moves()) {
                    let word = FileAddr(place_of(neighbour)?.0.saturating_add(word));
                    self.out.patches.push((word, self.address(addr)?));
                }
            }
        }
        let NodeEntries::Inner(children) = &node.body else { return Ok(()) };
        let below = level.saturating_sub(1);
        let mut after_it = DimValues::new();
        for (i, link) in children.iter().enumerate() {
            let next = i.saturating_add(1);
            let is_last = !node.keys.read(&loader.packing, next, &mut after_it);
            let bound = if is_last { bound } else { &after_it };
            if !link.is_dirty {
                if !is_last || right.is_some() {
                    self.close(link, below, bound)?;
                }
                continue;
            }
            let (mut before, mut after) = (None, children.get(next));
            match i.checked_sub(1) {
                Some(i) => before = children.get(i),
                // The last of the neighbour's children.
                None => {
                    if let Some(left) = left
                        && let NodeEntries::Inner(children) = &loader.node(left, level)?.body
                    {
                        before = children.last();
                    }
                }
            }
            if after.is_none()
                && let Some(right) = right
                && let NodeEntries::Inner(children) = &loader.node(right, level)?.body
            {
                after = children.first();
            }
            self.node(NodeWithNeighbours { link, left: before, right: after }, below, bound)?;
        }
        Ok(())
    }

    /// Encodes what changed of a node that stays: entries behind its stored ones, its bound if that
    /// is not the far one any more, and the address of a node below.
    fn in_place(
        &mut self,
        link: &WriteLink,
        node: &WriteNode,
        bytes: &[u8],
        is_edge: bool,
    ) -> Result<()> {
        let shape = &self.loader.shape;
        let addr = place_of(link)?;
        let at = |offset: usize| FileAddr(addr.0.saturating_add(offset as u64));
        let piece =
            |range: Range<usize>| (at(range.start), bytes.get(range).unwrap_or_default().to_vec());
        let StoredEntries { n, is_open, .. } = node.stored;
        let has_grown = node.len() != n;
        if has_grown || (is_open && !is_edge) {
            let end = shape.key_at(node.len()).saturating_add(shape.key_len);
            self.out.appended.push(piece(shape.key_at(n)..end));
        }
        if has_grown {
            self.out.switches.push(piece(shape.used_at()));
        }
        if let Some(i) = link.swapped {
            let word = shape.child_at(i);
            let width = usize::from(shape.sizes.offset);
            self.out.switches.push(piece(word..word.saturating_add(width)));
        }
        Ok(())
    }

    fn address(&self, addr: FileAddr) -> Result<Vec<u8>> {
        let mut writer = Writer::new(NAME, self.loader.shape.sizes);
        writer.addr(Some(addr))?;
        Ok(writer.finish())
    }

    /// Encodes the new bounds of nodes that were at the right edge and are not any more.
    fn close(&mut self, child: &WriteLink, level: u8, bound: &[u64]) -> Result<()> {
        let Some(node) = child.node.get().filter(|node| node.stored.is_open) else {
            return Ok(());
        };
        let shape = &self.loader.shape;
        let mut writer = Writer::new(NAME, shape.sizes);
        writer.u64(0);
        self.key(bound, 0, &mut writer)?;
        let at = place_of(child)?.0.saturating_add(shape.key_at(node.len()) as u64);
        self.out.appended.push((FileAddr(at), writer.finish()));
        match &node.body {
            NodeEntries::Inner(children) => children
                .last()
                .map_or(Ok(()), |last| self.close(last, level.saturating_sub(1), bound)),
            NodeEntries::Leaf(_) => Ok(()),
        }
    }

    /// Keys and children in turn, and the bound.
    fn entries(
        &self,
        node: &WriteNode,
        bound: &[u64],
        is_end: bool,
        writer: &mut Writer,
    ) -> Result<()> {
        let mut key = DimValues::new();
        for i in 0..node.len() {
            node.keys.read(&self.loader.packing, i, &mut key);
            let addr = match &node.body {
                NodeEntries::Leaf(entries) => {
                    let Some(entry) = entries.get(i) else { break };
                    writer.u32(entry.len).u32(entry.mask);
                    Some(FileAddr(entry.at))
                }
                NodeEntries::Inner(children) => {
                    writer.u64(0);
                    children.get(i).and_then(|child| child.addr)
                }
            };
            self.key(&key, 0, writer)?;
            writer.addr(addr)?;
        }
        writer.u64(0);
        // The bound behind all chunks is behind the element size, too.
        self.key(bound, if is_end { self.loader.elem_size } else { 0 }, writer)
    }

    fn key(&self, key: &[u64], last: u32, writer: &mut Writer) -> Result<()> {
        for offset in self.loader.offsets(key) {
            writer.u64(offset?);
        }
        writer.u64(u64::from(last));
        Ok(())
    }
}
