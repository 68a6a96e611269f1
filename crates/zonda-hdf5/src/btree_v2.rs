//! Version 2 B-tree ("BTHD", "BTIN", "BTLF"): records of fixed length in order, of types 1 to 11.
//! Spec: HDF5 File Format, "Disk Format: Level 1A2 - Version 2 B-trees". Records are given as raw
//! bytes; the caller knows what they mean.
//! Watch: the widths of the counts in internal nodes follow from how many records fit into nodes.
//! Watch: nodes have `node_size` bytes in the file, but the checksum follows the last record.
//! Watch: a header that refers to no root is a tree without records.

use std::cmp::Ordering;

use crate::checksum::verified;
use crate::traversal_budget::TraversalBudget;
use crate::{File, FileAddr, HdfError, Reader, Result, Sizes};

mod build;
mod record_tree;

pub use build::build;
pub(crate) use record_tree::{RecordTree, TreeRecord};

const HEADER: &str = "version 2 B-tree header";
const INTERNAL: &str = "version 2 B-tree internal node";
const LEAF: &str = "version 2 B-tree leaf node";

/// Bytes of a node around its records and pointers: signature, version, type, checksum.
const NODE_FRAME: u64 = 10;

/// The parameters that the HDF5 library gives the trees of groups, attributes and heaps: bytes of a
/// node, and how full nodes are, in percent, when it splits or merges them.
const NODE_SIZE: u32 = 512;
const SPLIT_PERCENT: u8 = 100;
const MERGE_PERCENT: u8 = 40;

const TREE: &str = "version 2 B-tree";

/// What the records are (the specification's "type").
pub mod record_type {
    /// Huge objects of a fractal heap, found by number.
    pub const HUGE_INDIRECT: u8 = 1;
    /// The same, filtered.
    pub const HUGE_INDIRECT_FILTERED: u8 = 2;
    /// Huge objects of a fractal heap, found by place.
    pub const HUGE_DIRECT: u8 = 3;
    /// The same, filtered.
    pub const HUGE_DIRECT_FILTERED: u8 = 4;
    /// Links of a group by the hash of their names.
    pub const LINK_NAME: u8 = 5;
    /// Links of a group by creation order.
    pub const LINK_ORDER: u8 = 6;
    /// Shared object header messages.
    pub const SHARED_MESSAGE: u8 = 7;
    /// Attributes of an object by the hash of their names.
    pub const ATTRIBUTE_NAME: u8 = 8;
    /// Attributes of an object by creation order.
    pub const ATTRIBUTE_ORDER: u8 = 9;
    /// Chunks without filters.
    pub const CHUNK: u8 = 10;
    /// Filtered chunks.
    pub const FILTERED_CHUNK: u8 = 11;
}

/// How nodes of one level are laid out.
#[derive(Clone, Copy, Debug)]
struct LevelLayout {
    /// Records that fit into a node.
    max_records: u64,
    /// Records that fit into a node and everything under it.
    max_total: u64,
    /// Bytes of the total in a pointer to a node of this level; 0 for leaves, which have none.
    total_width: usize,
}

fn node_name(level: usize) -> &'static str {
    if level == 0 { LEAF } else { INTERNAL }
}

/// How the nodes of a tree are laid out.
#[derive(Clone, Debug)]
struct TreeLayout {
    node_size: u64,
    record_len: u64,
    offset_size: u64,
    /// Bytes of the number of records in a pointer.
    count_width: usize,
    /// From the leaves to the root.
    levels: Vec<LevelLayout>,
}

impl TreeLayout {
    /// A tree that is one leaf; `None` where no record fits into it.
    fn leaf(node_size: u64, record_len: u64, offset_size: u8) -> Option<TreeLayout> {
        let room = node_size.saturating_sub(NODE_FRAME);
        let max_records = room.checked_div(record_len).filter(|&max| max > 0)?;
        Some(TreeLayout {
            node_size,
            record_len,
            offset_size: u64::from(offset_size),
            count_width: width_of(max_records),
            levels: vec![LevelLayout { max_records, max_total: max_records, total_width: 0 }],
        })
    }

    /// Adds a level; `None` where no record fits into its nodes.
    fn grow(&mut self) -> Option<LevelLayout> {
        let below = *self.levels.last()?;
        let room = self.node_size.saturating_sub(NODE_FRAME);
        let pointer = self.pointer_len(below) as u64;
        let entry = self.record_len.saturating_add(pointer);
        let max_records = room.saturating_sub(pointer).checked_div(entry).filter(|&max| max > 0)?;
        let max_total = max_records
            .saturating_add(1)
            .saturating_mul(below.max_total)
            .saturating_add(max_records);
        let level = LevelLayout { max_records, max_total, total_width: width_of(max_total) };
        self.levels.push(level);
        Some(level)
    }

    /// Bytes of a pointer to a node of the level `below`.
    fn pointer_len(&self, below: LevelLayout) -> usize {
        usize::try_from(self.offset_size)
            .unwrap_or(usize::MAX)
            .saturating_add(self.count_width)
            .saturating_add(below.total_width)
    }
}

/// An open tree.
#[derive(Clone, Debug)]
pub struct BtreeV2 {
    addr: FileAddr,
    record_type: u8,
    record_len: usize,
    root: Option<Pointer>,
    total: u64,
    layout: TreeLayout,
}

/// A node: its address and its number of records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pointer {
    pub(crate) addr: FileAddr,
    pub(crate) records: u64,
}

/// A node that was read.
pub(crate) struct DecodedNode {
    /// Records, one after the other.
    pub(crate) records: Vec<u8>,
    /// One more than records; none in a leaf.
    pub(crate) children: Vec<Pointer>,
}

/// Bytes of the header.
fn header_len(sizes: Sizes) -> u64 {
    u64::from(sizes.offset).saturating_add(u64::from(sizes.length)).saturating_add(22)
}

/// Bytes that hold numbers up to `max`.
pub(crate) fn width_of(max: u64) -> usize {
    (max.checked_ilog2().unwrap_or(0) / 8).saturating_add(1) as usize
}

impl BtreeV2 {
    /// Reads the header of a tree whose records have to be of type `expected`.
    ///
    /// # Errors
    /// Another type of records; records that do not fit into nodes; a wrong checksum.
    pub fn open(file: &File, addr: FileAddr, expected: u8) -> Result<BtreeV2> {
        let sizes = file.sizes();
        let bytes = file.read(HEADER, addr, header_len(sizes))?;
        let mut reader = verified(file.reader(HEADER, addr, &bytes))?;
        reader.signature(*b"BTHD")?;
        reader.version(0..=0)?;
        let record_type = reader.u8()?;
        if record_type != expected {
            return Err(reader.bad("the record type", u64::from(record_type)));
        }
        let node_size = u64::from(reader.u32()?);
        let record_len = u64::from(reader.u16()?);
        let depth = reader.u16()?;
        let _split_and_merge = reader.u16()?;
        let root = reader.addr()?;
        let root_records = u64::from(reader.u16()?);
        let total = reader.length()?;

        let limit = file.limits().tree_depth;
        if usize::from(depth) > limit {
            let (structure, at) = (HEADER, addr.0);
            return Err(HdfError::Limit { structure, at, what: "levels", limit: limit as u64 });
        }
        let Some(mut layout) = TreeLayout::leaf(node_size, record_len, sizes.offset) else {
            return Err(reader.bad("the length of a record", record_len));
        };
        for _ in 0..depth {
            layout.grow().ok_or_else(|| reader.bad("the size of a node", node_size))?;
        }
        Ok(BtreeV2 {
            addr,
            record_type,
            record_len: usize::try_from(record_len).unwrap_or(usize::MAX),
            root: root
                .filter(|_| root_records > 0)
                .map(|addr| Pointer { addr, records: root_records }),
            total,
            layout,
        })
    }

    /// Bytes of a record.
    #[must_use]
    pub fn record_len(&self) -> usize {
        self.record_len
    }

    /// Records in the tree, as its header says: never a reason to reserve memory.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.total
    }

    /// Whether there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    fn read_node(
        &self,
        file: &File,
        node: Pointer,
        level: usize,
        budget: &mut TraversalBudget,
    ) -> Result<DecodedNode> {
        let len = self.node_len(node, level)?;
        budget.spend(node_name(level), node.addr, len)?;
        let bytes = file.read(node_name(level), node.addr, len)?;
        self.decode_node(file, node, level, bytes)
    }

    /// The level below; `None` for leaves.
    fn below(&self, level: usize) -> Option<LevelLayout> {
        level.checked_sub(1).and_then(|below| self.layout.levels.get(below)).copied()
    }

    /// Bytes of a node up to its checksum.
    pub(crate) fn node_len(&self, node: Pointer, level: usize) -> Result<u64> {
        let structure = node_name(level);
        let impossible =
            |what, value| HdfError::BadValue { structure, at: node.addr.0, what, value };
        let Some(layout) = self.layout.levels.get(level) else {
            return Err(impossible("the level", level as u64));
        };
        if node.records > layout.max_records {
            return Err(impossible("the number of records", node.records));
        }
        let records_len = node.records.saturating_mul(self.record_len as u64);
        let pointers = if level == 0 { 0 } else { node.records.saturating_add(1) };
        let pointer_len =
            self.below(level).map_or(0, |below| self.layout.pointer_len(below)) as u64;
        Ok(records_len
            .saturating_add(pointers.saturating_mul(pointer_len))
            .saturating_add(NODE_FRAME))
    }

    /// A node from its bytes, as many as [`node_len`](BtreeV2::node_len) says.
    pub(crate) fn decode_node(
        &self,
        file: &File,
        node: Pointer,
        level: usize,
        mut bytes: Vec<u8>,
    ) -> Result<DecodedNode> {
        let below = self.below(level);
        let pointer_len = below.map_or(0, |below| self.layout.pointer_len(below));
        let total_width = below.map_or(0, |below| below.total_width);
        let pointers = if level == 0 { 0 } else { node.records.saturating_add(1) };
        let mut reader = verified(file.reader(node_name(level), node.addr, &bytes))?;
        reader.signature(if level == 0 { *b"BTLF" } else { *b"BTIN" })?;
        reader.version(0..=0)?;
        let record_type = reader.u8()?;
        if record_type != self.record_type {
            return Err(reader.bad("the record type", u64::from(record_type)));
        }
        let records_start = bytes.len().saturating_sub(reader.left()).saturating_sub(4);
        let records_len = node.records.saturating_mul(self.record_len as u64);
        let records_len = reader.take_u64(records_len)?.len();
        let mut children = Vec::with_capacity(reader.count(pointers, pointer_len)?);
        for _ in 0..pointers {
            let addr = reader.defined_addr("the child of a node")?;
            let records = reader.uint(self.layout.count_width)?;
            reader.skip(total_width)?;
            children.push(Pointer { addr, records });
        }
        bytes.drain(..records_start.min(bytes.len()));
        bytes.truncate(records_len);
        Ok(DecodedNode { records: bytes, children })
    }

    /// The root, unless there are no records.
    pub(crate) fn root(&self) -> Option<Pointer> {
        self.root
    }

    /// Calls `visit` for each record in the order of the tree, until it says `false`.
    ///
    /// # Errors
    /// Damaged nodes; [`HdfError::Limit`] where nodes overlap; those of `visit`.
    pub fn walk(&self, file: &File, visit: &mut dyn FnMut(&[u8]) -> Result<bool>) -> Result<()> {
        let Some(root) = self.root else { return Ok(()) };
        let mut budget = TraversalBudget::of(file);
        let mut path = vec![(self.read_node(file, root, self.depth(), &mut budget)?, 0usize)];
        loop {
            let level = self.depth().saturating_sub(path.len().saturating_sub(1));
            let Some((node, next)) = path.last_mut() else { return Ok(()) };
            if level == 0 {
                for record in node.records.chunks_exact(self.record_len) {
                    if !visit(record)? {
                        return Ok(());
                    }
                }
                path.pop();
                continue;
            }
            // Child 0, record 0, child 1, and so on: the record stands before all but the first.
            let before = next.checked_sub(1).and_then(|i| self.record(&node.records, i));
            if let Some(record) = before
                && !visit(record)?
            {
                return Ok(());
            }
            match node.children.get(*next).copied() {
                Some(child) => {
                    *next = next.saturating_add(1);
                    let below = level.saturating_sub(1);
                    path.push((self.read_node(file, child, below, &mut budget)?, 0));
                }
                None => {
                    path.pop();
                }
            }
        }
    }

    /// Reads the nodes of a remote file's tree level by level, so that each level comes in one go; the leaves are told of and not read.
    /// Does nothing where a read is a system call.
    ///
    /// # Errors
    /// As [`BtreeV2::extents`].
    pub(crate) fn fetch_levels(&self, file: &File) -> Result<()> {
        if !file.is_remote() {
            return Ok(());
        }
        let mut budget = TraversalBudget::of(file);
        let mut nodes: Vec<Pointer> = self.root.into_iter().collect();
        for level in (0..=self.depth()).rev() {
            let wanted = nodes.iter().map(|&node| Ok((node.addr, self.node_len(node, level)?)));
            file.will_read(wanted.collect::<Result<Vec<_>>>()?);
            if level == 0 {
                break;
            }
            let mut below = Vec::new();
            for node in nodes {
                below.extend(self.read_node(file, node, level, &mut budget)?.children);
            }
            nodes = below;
        }
        Ok(())
    }

    /// All that the tree takes of the file: its header and its nodes, whole ones.
    ///
    /// # Errors
    /// Damaged nodes; [`HdfError::Limit`] where nodes overlap.
    pub fn extents(&self, file: &File) -> Result<Vec<(FileAddr, u64)>> {
        let mut out = vec![(self.addr, header_len(file.sizes()))];
        let mut budget = TraversalBudget::of(file);
        let mut nodes: Vec<_> = self.root.into_iter().map(|root| (root, self.depth())).collect();
        while let Some((node, level)) = nodes.pop() {
            out.push((node.addr, self.layout.node_size));
            // Leaves refer to nothing, so they need not be read.
            if let Some(below) = level.checked_sub(1) {
                let children = self.read_node(file, node, level, &mut budget)?.children;
                nodes.extend(children.into_iter().map(|child| (child, below)));
            }
        }
        Ok(out)
    }

    /// Level of the root.
    pub(crate) fn depth(&self) -> usize {
        self.layout.levels.len().saturating_sub(1)
    }

    fn record<'a>(&self, records: &'a [u8], i: usize) -> Option<&'a [u8]> {
        let start = i.checked_mul(self.record_len)?;
        records.get(start..start.checked_add(self.record_len)?)
    }

    /// The record that `compare` finds equal, by descent.
    ///
    /// `compare` says how a record stands to what is looked for: `Less` for one that comes before.
    ///
    /// # Errors
    /// Damaged nodes on the way; those of `compare`.
    pub fn find(
        &self,
        file: &File,
        compare: &mut dyn FnMut(&[u8]) -> Result<Ordering>,
    ) -> Result<Option<Vec<u8>>> {
        let Some(mut at) = self.root else { return Ok(None) };
        let mut budget = TraversalBudget::of(file);
        for level in (0..=self.depth()).rev() {
            let node = self.read_node(file, at, level, &mut budget)?;
            let (mut low, mut high) =
                (0, node.records.len().checked_div(self.record_len).unwrap_or(0));
            while low < high {
                let middle = low.midpoint(high);
                let Some(record) = self.record(&node.records, middle) else { break };
                match compare(record)? {
                    Ordering::Less => low = middle.saturating_add(1),
                    Ordering::Greater => high = middle,
                    Ordering::Equal => return Ok(Some(record.to_vec())),
                }
            }
            match node.children.get(low) {
                Some(&child) => at = child,
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// A reader over a record of this tree, for messages without a place in the file.
    #[must_use]
    pub fn reader<'a>(&self, file: &File, record: &'a [u8]) -> Reader<'a> {
        let at = self.root.map_or(0, |root| root.addr.0);
        Reader::new("version 2 B-tree record", record, at, file.sizes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::built_file::{BuiltFile, at, le};

    const SMALL_NODE: u64 = 64;
    const KIND: u64 = 6;

    /// A tree of records of 8 bytes, numbers from 0 on, as full as nodes of 64 bytes get: 6
    /// records in a leaf, 2 in an internal node.
    struct NumberTree {
        built: BuiltFile,
        next: u64,
    }

    /// Bytes of a total that a full node of 2 records and everything under it can have.
    fn total_width(level: usize) -> usize {
        let full = (0..level).fold(6u64, |below, _| 3 * below + 2);
        if full > 255 { 2 } else { 1 }
    }

    impl NumberTree {
        fn leaf(&mut self) -> (u64, u64, u64) {
            let mut bytes = b"BTLF".to_vec();
            bytes.extend(le(&[(0, 1), (KIND, 1)]));
            for _ in 0..6 {
                bytes.extend(self.next.to_le_bytes());
                self.next += 1;
            }
            (self.built.put_checked(&bytes), 6, 6)
        }

        /// Address, records and total of a node of a level.
        fn node(&mut self, level: usize) -> (u64, u64, u64) {
            if level == 0 {
                return self.leaf();
            }
            let mut records = Vec::new();
            let mut children = Vec::new();
            for i in 0..3 {
                children.push(self.node(level - 1));
                if i < 2 {
                    records.push(self.next);
                    self.next += 1;
                }
            }
            let mut bytes = b"BTIN".to_vec();
            bytes.extend(le(&[(0, 1), (KIND, 1)]));
            records.iter().for_each(|record| bytes.extend(record.to_le_bytes()));
            for (addr, records, total) in &children {
                bytes.extend(le(&[(*addr, 8), (*records, 1)]));
                if level > 1 {
                    bytes.extend(le(&[(*total, total_width(level - 1))]));
                }
            }
            let total = children.iter().map(|child| child.2).sum::<u64>() + 2;
            (self.built.put_checked(&bytes), 2, total)
        }

        fn build(depth: usize) -> (NumberTree, u64) {
            let mut tree = NumberTree { built: BuiltFile::default(), next: 0 };
            let root = tree.node(depth);
            let mut bytes = b"BTHD".to_vec();
            bytes.extend(le(&[(0, 1), (KIND, 1), (SMALL_NODE, 4), (8, 2), (depth as u64, 2)]));
            bytes.extend(le(&[(100, 1), (40, 1), (root.0, 8), (root.1, 2), (root.2, 8)]));
            let header = tree.built.put_checked(&bytes);
            (tree, header)
        }
    }

    fn number(record: &[u8]) -> u64 {
        u64::from_le_bytes(record.try_into().unwrap())
    }

    fn list(file: &File, header: u64) -> Result<Vec<u64>> {
        let mut found = Vec::new();
        BtreeV2::open(file, at(header), 6)?.walk(file, &mut |record| {
            found.push(number(record));
            Ok(true)
        })?;
        Ok(found)
    }

    #[test]
    fn walk_and_find_at_depths_0_to_5() {
        for depth in 0..=5 {
            let (tree, header) = NumberTree::build(depth);
            let file = tree.built.file();
            let want: Vec<u64> = (0..tree.next).collect();
            assert_eq!(list(&file, header).unwrap(), want, "depth {depth}");
            let open = BtreeV2::open(&file, at(header), 6).unwrap();
            assert_eq!(open.len(), tree.next);
            for wanted in 0..tree.next + 2 {
                let found = open.find(&file, &mut |record| Ok(number(record).cmp(&wanted)));
                let found = found.unwrap().map(|record| number(&record));
                assert_eq!(found, (wanted < tree.next).then_some(wanted), "depth {depth}");
            }
        }
    }

    #[test]
    fn any_flipped_byte_is_noticed() {
        let (tree, header) = NumberTree::build(2);
        let whole = list(&tree.built.file(), header).unwrap();
        for i in 0..tree.built.bytes.len() {
            let mut damaged = BuiltFile { bytes: tree.built.bytes.clone() };
            damaged.bytes[i] ^= 0x10;
            match list(&damaged.file(), header) {
                Err(_) => {}
                // Between the structures, which begin at multiples of 8.
                Ok(found) => assert_eq!(found, whole, "byte {i}"),
            }
        }
    }

    #[test]
    fn shared_branches_end_in_an_error() {
        // Each level refers twice to the one below: 2^29 leaves in a few kilobytes.
        let header = |root: u64| {
            let mut bytes = b"BTHD".to_vec();
            bytes.extend(le(&[(0, 1), (KIND, 1), (SMALL_NODE, 4), (8, 2), (29, 2)]));
            bytes.extend(le(&[(100, 1), (40, 1), (root, 8), (1, 2), (1, 8)]));
            bytes
        };
        let mut tree = NumberTree { built: BuiltFile::default(), next: 0 };
        let layout = tree.built.put_checked(&header(0));
        let layout = BtreeV2::open(&tree.built.file(), at(layout), 6).unwrap();
        let mut below = (tree.leaf().0, 6u64);
        for width in layout.layout.levels.iter().map(|level| level.total_width).take(29) {
            let mut bytes = b"BTIN".to_vec();
            bytes.extend(le(&[(0, 1), (KIND, 1), (1, 8)]));
            for _ in 0..2 {
                bytes.extend(le(&[(below.0, 8), (below.1, 1), (0, width)]));
            }
            below = (tree.built.put_checked(&bytes), 1);
        }
        let root = tree.built.put_checked(&header(below.0));
        let error = list(&tree.built.file(), root).unwrap_err();
        assert!(matches!(error, HdfError::Limit { .. }), "{error}");
    }

    #[test]
    fn impossible_headers_are_errors() {
        for (node_size, record_len) in [(64, 0), (64, 60), (9, 8), (0, 0)] {
            let mut built = BuiltFile::default();
            let mut bytes = b"BTHD".to_vec();
            bytes.extend(le(&[(0, 1), (KIND, 1), (node_size, 4), (record_len, 2), (1, 2)]));
            bytes.extend(le(&[(100, 1), (40, 1), (0, 8), (1, 2), (1, 8)]));
            let header = built.put_checked(&bytes);
            let error = BtreeV2::open(&built.file(), at(header), 6).unwrap_err();
            assert!(matches!(error, HdfError::BadValue { .. }), "{error}");
        }
    }
}
