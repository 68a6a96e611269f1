//! Changed nodes on their way to the file.

use super::super::grid::Numbers;
use super::load::Source;
use super::node::{Body, Child, Node};
use super::{ChunkTree, NAME};
use crate::{FileAddr, Fresh, HdfError, Result, Writer};

/// What the header of the dataset has to say after a commit, and what changes in place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeCommit {
    /// Where the index is now; `None` where there are no chunks.
    pub root: Option<FileAddr>,
    /// Words of nodes that stay where they are and have got other neighbours. They are to be
    /// written when the header is, before or after it: the tree of the last commit and the new one
    /// can be read with them and without.
    pub patches: Vec<(FileAddr, Vec<u8>)>,
}

impl ChunkTree {
    /// Gives changed nodes to `fresh`, at new places, and gives their old places back.
    ///
    /// # Errors
    /// Damage in nodes that had to be read, [`HdfError::TooLarge`] for elements or a file beyond
    /// what numbers can say. What `fresh` was given by then nothing refers to.
    pub fn commit(&mut self, fresh: &mut Fresh<'_>) -> Result<TreeCommit> {
        let mut out = TreeCommit::default();
        let mut old = Vec::new();
        if let Some(root) = self.root.as_mut().filter(|root| root.is_dirty) {
            place(root, self.source.shape.node_len(), fresh, &mut old)?;
        }
        if let Some(root) = &self.root {
            let writing = Writing { source: &self.source };
            let side = Side { here: root, left: None, right: None };
            if root.is_dirty {
                writing.node(side, self.level, &self.end, fresh, &mut out.patches)?;
            }
            out.root = root.addr;
        }
        if let Some(root) = &mut self.root {
            clean(root);
        }
        for addr in old.into_iter().chain(self.dropped.drain(..)) {
            fresh.space().free(addr, self.source.shape.node_len());
        }
        self.committed = out.root;
        Ok(out)
    }
}

/// Takes new places for changed nodes.
fn place(
    child: &mut Child,
    len: u64,
    fresh: &mut Fresh<'_>,
    old: &mut Vec<FileAddr>,
) -> Result<()> {
    old.extend(child.addr.replace(fresh.space().alloc(len)?));
    if let Some(Body::Inner(children)) = child.node.get_mut().map(|node| &mut node.body) {
        for child in children.iter_mut().filter(|child| child.is_dirty) {
            place(child, len, fresh, old)?;
        }
    }
    Ok(())
}

/// Says that all is stored as it is in memory.
fn clean(child: &mut Child) {
    if !std::mem::replace(&mut child.is_dirty, false) {
        return;
    }
    if let Some(Body::Inner(children)) = child.node.get_mut().map(|node| &mut node.body) {
        children.iter_mut().for_each(clean);
    }
}

/// A node and its neighbours.
#[derive(Clone, Copy)]
struct Side<'a> {
    here: &'a Child,
    left: Option<&'a Child>,
    right: Option<&'a Child>,
}

struct Writing<'a> {
    source: &'a Source,
}

impl Writing<'_> {
    /// Encodes a changed node, whose chunks are all before `bound`, and those below it.
    fn node(
        &self,
        Side { here, left, right }: Side<'_>,
        level: u8,
        bound: &[u64],
        fresh: &mut Fresh<'_>,
        patches: &mut Vec<(FileAddr, Vec<u8>)>,
    ) -> Result<()> {
        let shape = &self.source.shape;
        let node = self.source.node(here, level)?;
        let addr = here.addr.ok_or(HdfError::Missing {
            structure: NAME,
            at: 0,
            what: "the place of a node",
        })?;
        let neighbours = [left, right].map(|child| child.and_then(|child| child.addr));
        let bytes = shape.encode(level, node.len(), neighbours, |writer| {
            self.entries(node, bound, right.is_none(), writer)
        })?;
        fresh.put_at(addr, bytes);
        for (neighbour, word) in [(left, shape.right_at()), (right, shape.left_at())] {
            if let Some(Child { addr: Some(at), is_dirty: false, .. }) = neighbour {
                let mut writer = Writer::new(NAME, shape.sizes);
                writer.addr(Some(addr))?;
                patches.push((FileAddr(at.0.saturating_add(word)), writer.finish()));
            }
        }
        let Body::Inner(children) = &node.body else { return Ok(()) };
        let below = level.saturating_sub(1);
        let mut after_it = Numbers::new();
        for (i, here) in children.iter().enumerate().filter(|(_, child)| child.is_dirty) {
            let next = i.saturating_add(1);
            let (mut before, mut after) = (None, children.get(next));
            match i.checked_sub(1) {
                Some(i) => before = children.get(i),
                // The last of the neighbour's children.
                None => {
                    if let Some(left) = left
                        && let Body::Inner(children) = &self.source.node(left, level)?.body
                    {
                        before = children.last();
                    }
                }
            }
            if after.is_none()
                && let Some(right) = right
                && let Body::Inner(children) = &self.source.node(right, level)?.body
            {
                after = children.first();
            }
            let side = Side { here, left: before, right: after };
            let is_last = !node.keys.read(&self.source.packing, next, &mut after_it);
            let bound = if is_last { bound } else { &after_it };
            self.node(side, below, bound, fresh, patches)?;
        }
        Ok(())
    }

    /// Keys and children in turn, and the bound.
    fn entries(&self, node: &Node, bound: &[u64], is_end: bool, writer: &mut Writer) -> Result<()> {
        let mut key = Numbers::new();
        for i in 0..node.len() {
            node.keys.read(&self.source.packing, i, &mut key);
            let addr = match &node.body {
                Body::Leaf(entries) => {
                    let Some(entry) = entries.get(i) else { break };
                    writer.u32(entry.len).u32(entry.mask);
                    Some(FileAddr(entry.at))
                }
                Body::Inner(children) => {
                    writer.u64(0);
                    children.get(i).and_then(|child| child.addr)
                }
            };
            self.key(&key, 0, writer)?;
            writer.addr(addr)?;
        }
        writer.u64(0);
        // What is behind all chunks is behind the element, too.
        self.key(bound, if is_end { self.source.elem_size } else { 0 }, writer)
    }

    fn key(&self, key: &[u64], last: u32, writer: &mut Writer) -> Result<()> {
        for offset in self.source.offsets(key) {
            writer.u64(offset?);
        }
        writer.u64(u64::from(last));
        Ok(())
    }
}
