//! A tree in memory that is edited. It knows which of its nodes the file has, and where.
//!
//! A changed node goes to a new address when the tree is written, and so do all nodes above it and
//! the header: the tree under a header that was written before stays whole. The other nodes stay
//! where they are. So a change costs one node for each level.
//!
//! Copies of a tree share their nodes until one of them changes, so that a copy costs nothing: a
//! caller that edits keeps the old tree until the new one is written.
//!
//! No node but the root has fewer records than the HDF5 library merges nodes at. The library relies
//! on that when it removes records.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{MERGE_PERCENT, NODE_SIZE, SPLIT_PERCENT, TREE, TreeLayout, header_len};
use crate::{FileAddr, FileRange, HdfError, NewBlocks, Result, Sizes, Writer};

/// A record of a tree.
pub(crate) trait TreeRecord: Clone {
    /// Writes its bytes. All records of a tree have equally many.
    fn encode(&self, writer: &mut Writer) -> Result<()>;
}

/// Compares a record with the one that is looked for: `Less` for a record that comes before.
pub(crate) type CompareToTarget<'a, R> = &'a dyn Fn(&R) -> Ordering;

/// A tree.
#[derive(Clone, Debug)]
pub(crate) struct RecordTree<R> {
    record_type: u8,
    record_len: u16,
    sizes: Sizes,
    layout: TreeLayout,
    root: Option<Arc<RecordNode<R>>>,
    /// The address of its header when it was last written.
    header: Option<FileAddr>,
    is_changed: bool,
    /// Nodes of the file that the tree has no more.
    dropped: Vec<FileAddr>,
}

#[derive(Clone, Debug)]
struct RecordNode<R> {
    records: Vec<R>,
    /// One more than records; none in a leaf.
    children: Vec<Arc<RecordNode<R>>>,
    /// Records here and in all nodes below.
    total: u64,
    /// Its address in the file; `None` where the file does not have it as it is.
    addr: Option<FileAddr>,
}

impl<R: TreeRecord> RecordNode<R> {
    fn new(records: Vec<R>, children: Vec<Arc<RecordNode<R>>>) -> RecordNode<R> {
        let below = children.iter().map(|child| child.total);
        let total = below.fold(records.len() as u64, u64::saturating_add);
        RecordNode { records, children, total, addr: None }
    }

    fn len(&self) -> usize {
        self.records.len()
    }

    fn find(&self, compare: CompareToTarget<'_, R>) -> std::result::Result<usize, usize> {
        self.records.binary_search_by(compare)
    }
}

/// How the records of one level are spread over its nodes. The others are in nodes above.
struct LevelShares {
    /// Nodes of the level.
    nodes: usize,
    /// Records in them: all that are left but one between each two nodes.
    records: usize,
}

impl LevelShares {
    /// Spreads `records` over as few nodes as hold them, with one record between two nodes.
    fn new(records: usize, max: usize) -> LevelShares {
        let nodes = records.saturating_add(1).div_ceil(max.saturating_add(1)).max(1);
        LevelShares { nodes, records: records.saturating_sub(nodes.saturating_sub(1)) }
    }

    /// Records of node `i`.
    fn share(&self, i: usize) -> usize {
        let each = self.records.checked_div(self.nodes).unwrap_or(0);
        let more = self.records.checked_rem(self.nodes).unwrap_or(0);
        each.saturating_add(usize::from(i < more))
    }
}

fn too_large(value: u64) -> HdfError {
    HdfError::TooLarge { structure: TREE, value }
}

impl<R: TreeRecord> RecordTree<R> {
    /// A tree without records.
    ///
    /// # Errors
    /// [`HdfError::TooLarge`] for records that do not fit into nodes.
    pub(crate) fn new(record_type: u8, record_len: u16, sizes: Sizes) -> Result<RecordTree<R>> {
        let layout = TreeLayout::leaf(u64::from(NODE_SIZE), u64::from(record_len), sizes.offset);
        let layout = layout.ok_or_else(|| too_large(u64::from(record_len)))?;
        let (root, header, dropped) = (None, None, Vec::new());
        Ok(RecordTree {
            record_type,
            record_len,
            sizes,
            layout,
            root,
            header,
            is_changed: true,
            dropped,
        })
    }

    /// A tree of these records, which are in its order. There are as few nodes as hold them, and the
    /// records of a level are spread evenly over its nodes, so that all but a root are nearly half full.
    ///
    /// # Errors
    /// As [`RecordTree::new`].
    pub(crate) fn of(
        record_type: u8,
        record_len: u16,
        sizes: Sizes,
        records: Vec<R>,
    ) -> Result<RecordTree<R>> {
        let mut tree = RecordTree::new(record_type, record_len, sizes)?;
        let (mut left, mut children) = (records, Vec::new());
        while !left.is_empty() || children.len() > 1 {
            if !children.is_empty() {
                tree.grow()?;
            }
            // If nodes had room for one record only, some would have none.
            let max = tree.most(tree.depth());
            if max < 2 {
                return Err(too_large(u64::from(record_len)));
            }
            let plan = LevelShares::new(left.len(), max);
            let (mut records, mut below) = (left.into_iter(), children.into_iter());
            (left, children) = (Vec::new(), Vec::with_capacity(plan.nodes));
            for i in 0..plan.nodes {
                let n = plan.share(i);
                let own = records.by_ref().take(n).collect();
                let under = below.by_ref().take(n.saturating_add(1)).collect();
                children.push(Arc::new(RecordNode::new(own, under)));
                left.extend(records.next());
            }
        }
        tree.root = children.pop();
        Ok(tree)
    }

    /// Records in all nodes.
    pub(crate) fn len(&self) -> u64 {
        self.root.as_ref().map_or(0, |root| root.total)
    }

    /// Level of the root.
    fn depth(&self) -> usize {
        self.layout.levels.len().saturating_sub(1)
    }

    fn grow(&mut self) -> Result<()> {
        // A file has fewer records than so many levels hold.
        let grown = self.layout.grow().filter(|_| self.layout.levels.len() <= 64);
        grown.map(|_| ()).ok_or_else(|| too_large(u64::from(self.record_len)))
    }

    /// Most records of a node.
    fn most(&self, level: usize) -> usize {
        let max = self.layout.levels.get(level).map_or(0, |level| level.max_records);
        usize::try_from(max).unwrap_or(usize::MAX)
    }

    /// Least records of a node that is no root.
    fn least(&self, level: usize) -> usize {
        self.most(level).saturating_mul(usize::from(MERGE_PERCENT)).checked_div(100).unwrap_or(0)
    }

    /// The record that `compare` is equal for.
    pub(crate) fn find(&self, compare: CompareToTarget<'_, R>) -> Option<&R> {
        let mut node = self.root.as_deref()?;
        loop {
            match node.find(compare) {
                Ok(i) => return node.records.get(i),
                Err(i) => node = node.children.get(i)?,
            }
        }
    }

    /// Inserts a record. It replaces the one that `compare` is equal for, if there is one, which is
    /// returned.
    ///
    /// # Errors
    /// [`HdfError::TooLarge`] for more levels than there can be.
    pub(crate) fn insert(
        &mut self,
        record: R,
        compare: CompareToTarget<'_, R>,
    ) -> Result<Option<R>> {
        self.is_changed = true;
        let Some(mut root) = self.root.take() else {
            self.root = Some(Arc::new(RecordNode::new(vec![record], Vec::new())));
            return Ok(None);
        };
        let depth = self.depth();
        let before = self.insert_below(&mut root, depth, record, compare, true);
        if root.len() > self.most(depth) {
            let n = root.len() / 2;
            let mut above = RecordNode::new(Vec::new(), vec![root]);
            self.divide(&mut above, 0, n);
            self.root = Some(Arc::new(above));
            self.grow()?;
            return Ok(before);
        }
        self.root = Some(root);
        Ok(before)
    }

    /// `is_edge`: all that comes behind this node is above it.
    fn insert_below(
        &mut self,
        node: &mut Arc<RecordNode<R>>,
        level: usize,
        record: R,
        compare: CompareToTarget<'_, R>,
        is_edge: bool,
    ) -> Option<R> {
        let node = self.change(node);
        let i = match node.find(compare) {
            Ok(i) => return node.records.get_mut(i).map(|slot| std::mem::replace(slot, record)),
            Err(i) => i,
        };
        let Some(below) = level.checked_sub(1) else {
            node.records.insert(i.min(node.records.len()), record);
            node.total = node.total.saturating_add(1);
            return None;
        };
        let is_edge = is_edge && i.saturating_add(1) == node.children.len();
        let child = node.children.get_mut(i)?;
        let (before, n) = (self.insert_below(child, below, record, compare, is_edge), child.len());
        node.total = node.total.saturating_add(u64::from(before.is_none()));
        if n > self.most(below) {
            self.make_room(node, i, below, is_edge);
        }
        before
    }

    /// Child `i` has more records than a node can have: some are moved to a neighbour, or to a new
    /// node.
    fn make_room(&mut self, node: &mut RecordNode<R>, i: usize, below: usize, is_edge: bool) {
        let max = self.most(below);
        // A neighbour that is nearly full would soon have too many.
        let has_room = |child: Option<&Arc<RecordNode<R>>>| {
            child.is_some_and(|child| child.len().saturating_add(max / 8) < max)
        };
        let left = i.checked_sub(1).filter(|&left| has_room(node.children.get(left)));
        if let Some(left) = left {
            self.level_out(node, left, below, is_edge);
        } else if has_room(node.children.get(i.saturating_add(1))) {
            self.level_out(node, i, below, false);
        } else {
            let n = node.children.get(i).map_or(0, |child| child.len());
            self.divide(node, i, n / 2);
        }
    }

    /// Removes the record that `compare` is equal for.
    pub(crate) fn remove(&mut self, compare: CompareToTarget<'_, R>) -> Option<R> {
        self.find(compare)?;
        self.is_changed = true;
        let (mut root, depth) = (self.root.take()?, self.depth());
        let removed = self.remove_below(&mut root, depth, Some(compare));
        if root.records.is_empty() {
            // Its only child is the root now, or the tree is empty.
            let child = root.children.first().cloned();
            if child.is_some() {
                self.layout.levels.pop();
            }
            self.root = child;
        } else {
            self.root = Some(root);
        }
        removed
    }

    /// Removes a record that is in the tree: the one that `compare` is equal for, or without
    /// `compare` the last one.
    fn remove_below(
        &mut self,
        node: &mut Arc<RecordNode<R>>,
        level: usize,
        compare: Option<CompareToTarget<'_, R>>,
    ) -> Option<R> {
        let node = self.change(node);
        node.total = node.total.saturating_sub(1);
        let found = compare.map(|compare| node.find(compare));
        let Some(below) = level.checked_sub(1) else {
            return match found {
                Some(Ok(i)) if i < node.len() => Some(node.records.remove(i)),
                Some(_) => None,
                None => node.records.pop(),
            };
        };
        let i = match found {
            Some(Ok(i) | Err(i)) => i,
            None => node.len(),
        };
        let child = node.children.get_mut(i)?;
        let removed = if let Some(Ok(_)) = found {
            // The record before it, which is the last one below, takes its place.
            let last = self.remove_below(child, below, None)?;
            node.records.get_mut(i).map(|slot| std::mem::replace(slot, last))
        } else {
            self.remove_below(child, below, compare)
        };
        if node.children.get(i).is_some_and(|child| child.len() < self.least(below)) {
            self.level_out(node, i.saturating_sub(1), below, false);
        }
        removed
    }

    /// Joins child `i` and the next one. Where one node cannot have all of their records, these are
    /// spread over both.
    fn level_out(&mut self, node: &mut RecordNode<R>, i: usize, below: usize, fills_left: bool) {
        let next = i.saturating_add(1);
        if next >= node.children.len() || i >= node.records.len() {
            return;
        }
        let (mut right, between) = (node.children.remove(next), node.records.remove(i));
        let Some(left) = node.children.get_mut(i) else { return };
        let (left, right) = (self.change(left), self.change(&mut right));
        left.records.push(between);
        left.records.append(&mut right.records);
        left.children.append(&mut right.children);
        left.total = left.total.saturating_add(right.total).saturating_add(1);
        let (n, max) = (left.len(), self.most(below));
        if n > max {
            // Where a record was added at the end, more will be: the left node is filled.
            let most_left = n.saturating_sub(1).saturating_sub(self.least(below)).min(max);
            self.divide(node, i, if fills_left { most_left } else { n / 2 });
        }
    }

    /// Splits child `i` in two, the left one with `n` records.
    fn divide(&mut self, node: &mut RecordNode<R>, i: usize, n: usize) {
        let Some(child) = node.children.get_mut(i) else { return };
        let child = self.change(child);
        let mut behind = child.records.split_off(n.min(child.records.len())).into_iter();
        let under = child.children.split_off(n.saturating_add(1).min(child.children.len()));
        let Some(between) = behind.next() else { return };
        let right = RecordNode::new(behind.collect(), under);
        child.total = child.total.saturating_sub(right.total).saturating_sub(1);
        node.records.insert(i, between);
        node.children.insert(i.saturating_add(1), Arc::new(right));
    }

    /// A node to be changed, which then differs from the one in the file.
    fn change<'a>(&mut self, node: &'a mut Arc<RecordNode<R>>) -> &'a mut RecordNode<R> {
        let node = Arc::make_mut(node);
        self.dropped.extend(node.addr.take());
        node
    }

    /// Gives what changed to `fresh`, at new addresses, and the space of what it replaces to
    /// `freed`. Gives the address of the header.
    ///
    /// # Errors
    /// [`HdfError::TooLarge`] where the file would become too long.
    pub(crate) fn write(
        &mut self,
        fresh: &mut NewBlocks<'_>,
        freed: &mut Vec<FileRange>,
    ) -> Result<FileAddr> {
        if let Some(addr) = self.header.filter(|_| !self.is_changed) {
            return Ok(addr);
        }
        let depth = self.depth();
        let mut root = self.root.take();
        let placed = root.as_mut().map(|root| self.write_node(root, depth, fresh)).transpose();
        self.root = root;
        let (addr, root) = (placed?, self.root.as_ref());
        let mut header = Writer::new(TREE, self.sizes);
        header.put(b"BTHD").u8(0).u8(self.record_type).u32(NODE_SIZE).u16(self.record_len);
        header.uint(depth as u64, 2)?.u8(SPLIT_PERCENT).u8(MERGE_PERCENT);
        header.addr(addr)?.uint(root.map_or(0, |root| root.len() as u64), 2)?;
        header.length(root.map_or(0, |root| root.total))?;
        let addr = fresh.put_passing(header.finish_checked())?;
        let before = self.header.replace(addr);
        freed.extend(before.map(|addr| (addr, header_len(self.sizes))));
        freed.extend(self.dropped.drain(..).map(|addr| (addr, u64::from(NODE_SIZE))));
        self.is_changed = false;
        Ok(addr)
    }

    fn write_node(
        &self,
        node: &mut Arc<RecordNode<R>>,
        level: usize,
        fresh: &mut NewBlocks<'_>,
    ) -> Result<FileAddr> {
        if let Some(addr) = node.addr {
            return Ok(addr);
        }
        let node = Arc::make_mut(node);
        let below = level.checked_sub(1).and_then(|below| self.layout.levels.get(below)).copied();
        let mut out = Writer::with_room(TREE, self.sizes, NODE_SIZE as usize);
        out.put(if below.is_none() { b"BTLF" } else { b"BTIN" }).u8(0).u8(self.record_type);
        node.records.iter().try_for_each(|record| record.encode(&mut out))?;
        if let Some(below) = below {
            for child in &mut node.children {
                let addr = self.write_node(child, level.saturating_sub(1), fresh)?;
                out.addr(Some(addr))?.uint(child.len() as u64, byte(self.layout.count_width))?;
                // A pointer to a leaf has no total: it is the number of records.
                if below.total_width > 0 {
                    out.uint(child.total, byte(below.total_width))?;
                }
            }
        }
        let mut bytes = out.finish_checked();
        if bytes.len() > NODE_SIZE as usize {
            return Err(too_large(bytes.len() as u64));
        }
        bytes.resize(NODE_SIZE as usize, 0);
        let addr = fresh.put_passing(bytes)?;
        node.addr = Some(addr);
        Ok(addr)
    }

    /// Adds the extents of what the file has of it.
    pub(crate) fn extents(&self, out: &mut Vec<FileRange>) {
        out.extend(self.header.map(|addr| (addr, header_len(self.sizes))));
        let mut nodes: Vec<_> = self.root.iter().collect();
        while let Some(node) = nodes.pop() {
            out.extend(node.addr.map(|addr| (addr, u64::from(NODE_SIZE))));
            nodes.extend(&node.children);
        }
    }
}

/// A width of at most 8 bytes.
fn byte(width: usize) -> u8 {
    u8::try_from(width).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests;
