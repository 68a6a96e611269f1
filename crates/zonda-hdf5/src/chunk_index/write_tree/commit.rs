//! Changed nodes on their way to the file.
//!
//! A node that changed goes to a new place, and all above it would have to, up to the header that says
//! where the root is. Whoever commits again and again would give back as much space each time, which
//! readers may still look at. So nodes stay where they are if one of two things is all that changed:
//!
//! - *One* node below is elsewhere, and none was split. Then its address is written over, one word.
//!   If there is more, all above go to new places, so that a reader never meets some changes without
//!   others: of a node that was split, one half without the other.
//! - There is more at the end of the tree. Who commits often says so ([`ChunkTree::commit`]), and nodes
//!   at the right edge get a bound that is far away. From then on entries are written behind those
//!   that are counted, and then the count, of two bytes. Readers who come in between see what they
//!   saw before: the one key that they look at is the bound, where the next entry begins. It passes
//!   from the far one to the key of that entry; both are behind all that is counted, and so is every
//!   mixture of their words.

use std::ops::Range;

use super::super::grid::Numbers;
use super::node::{NodeEntries, StoredEntries, WriteLink, WriteNode};
use super::node_loader::NodeLoader;
use super::{ChunkTree, NAME};
use crate::{FileAddr, Fresh, HdfError, Result, Writer};

/// Bytes and where they go.
type FileBytes = (FileAddr, Vec<u8>);

/// What the header of the dataset has to say after a commit, and what changes in place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeCommit {
    /// Where the index is now; `None` where there are no chunks.
    pub root: Option<FileAddr>,
    /// Entries behind those that nodes count, and bounds. They are to be written, and to be durable
    /// as new nodes are, before the switches.
    pub appended: Vec<FileBytes>,
    /// Numbers of entries of nodes that stay where they are, and at most one address in them, each
    /// within a sector. They are to be written, and to be durable, before the header is: what is
    /// counted and not yet within the extent nobody asks for.
    pub switches: Vec<FileBytes>,
    /// Words of nodes that stay where they are and have got other neighbours. They are to be
    /// written when the header is, before or after it: the tree of the last commit and the new one
    /// can be read with them and without.
    pub patches: Vec<FileBytes>,
}

impl ChunkTree {
    /// Gives changed nodes to `fresh`, at new places, and gives their old places back; what little
    /// changed of others is in what it returns. `often` says that the next commit will come soon.
    ///
    /// # Errors
    /// Damage in nodes that had to be read, [`HdfError::TooLarge`] for elements or a file beyond
    /// what numbers can say. What `fresh` was given by then nothing refers to.
    pub fn commit(&mut self, fresh: &mut Fresh<'_>, often: bool) -> Result<TreeCommit> {
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
            let side = NodeWithNeighbours { here: root, left: None, right: None };
            if root.is_dirty {
                writing.node(side, self.level, bound)?;
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
    /// Whether bounds at the edge are right that are not far away.
    ends_right: bool,
    /// Whether nodes may stay of which one below does not.
    may_swap: bool,
    /// Stored nodes of which one below will be elsewhere, and nodes that are new.
    n_swaps: usize,
    n_new: usize,
}

impl StayPlanner<'_> {
    /// `is_edge`: there is nothing behind this node at its level.
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

/// Takes new places for the other changed nodes.
fn place(
    child: &mut WriteLink,
    len: u64,
    fresh: &mut Fresh<'_>,
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

/// Says that all is stored as it is in memory, and which nodes can grow where they are: those at the
/// right edge, if `is_open`.
fn clean(child: &mut WriteLink, is_open: bool) {
    let is_dirty = std::mem::replace(&mut child.is_dirty, false);
    child.stays = false;
    let Some(node) = child.node.get_mut() else { return };
    let was_open = node.stored.is_open;
    if !is_dirty && was_open == is_open {
        return;
    }
    // One that did not change has the bound that it had: it can be closed, not opened.
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
    here: &'a WriteLink,
    left: Option<&'a WriteLink>,
    right: Option<&'a WriteLink>,
}

struct TreeWriter<'a, 'f, 's> {
    loader: &'a NodeLoader,
    fresh: &'f mut Fresh<'s>,
    out: &'f mut TreeCommit,
}

fn place_of(child: &WriteLink) -> Result<FileAddr> {
    let what = "the place of a node";
    child.addr.ok_or(HdfError::Missing { structure: NAME, at: 0, what })
}

impl TreeWriter<'_, '_, '_> {
    /// Encodes a changed node, whose chunks are all before `bound`, and those below it.
    fn node(&mut self, side: NodeWithNeighbours<'_>, level: u8, bound: &[u64]) -> Result<()> {
        let NodeWithNeighbours { here, left, right } = side;
        let loader = self.loader;
        let shape = &loader.shape;
        let node = loader.node(here, level)?;
        let addr = place_of(here)?;
        let neighbours = [left, right].map(|child| child.and_then(|child| child.addr));
        let bytes = shape.encode(level, node.len(), neighbours, |writer| {
            self.entries(node, bound, right.is_none(), writer)
        })?;
        if here.stays {
            self.in_place(here, node, &bytes, right.is_none())?;
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
        let mut after_it = Numbers::new();
        for (i, here) in children.iter().enumerate() {
            let next = i.saturating_add(1);
            let is_last = !node.keys.read(&loader.packing, next, &mut after_it);
            let bound = if is_last { bound } else { &after_it };
            if !here.is_dirty {
                if !is_last || right.is_some() {
                    self.close(here, below, bound)?;
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
            self.node(NodeWithNeighbours { here, left: before, right: after }, below, bound)?;
        }
        Ok(())
    }

    /// Writes what changed of a node that stays: what is behind its stored entries, its bound if that
    /// is not the far one any more, and the place of a node below.
    fn in_place(
        &mut self,
        here: &WriteLink,
        node: &WriteNode,
        bytes: &[u8],
        is_edge: bool,
    ) -> Result<()> {
        let shape = &self.loader.shape;
        let addr = place_of(here)?;
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
        if let Some(i) = here.swapped {
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

    /// Gives nodes at what was the right edge the bound that they have now.
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
        let mut key = Numbers::new();
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
        // What is behind all chunks is behind the element, too.
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
