//! Version 1 B-tree ("TREE"): the index of old groups (type 0) and of chunks (type 1).
//! Spec: HDF5 File Format, "Disk Format: Level 1A1 - Version 1 B-trees".
//! Watch: a node has one key more than children; for groups child `i` holds the names after key `i`
//! up to and including key `i + 1`, for chunks key `i` belongs to child `i` itself.
//! Watch: nodes are allocated for 2K children whatever their number, but only the used part is read.
//! libhdf5 reads them whole, so they are written whole.

use crate::traversal_budget::TraversalBudget;
use crate::tuning::BTREE_V1_READ_BYTES;
use crate::{File, FileAddr, HdfError, Reader, Result, Sizes, Writer};

const NAME: &str = "version 1 B-tree node";

/// What a tree is an index of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeType {
    /// Symbol table nodes of a group.
    Group = 0,
    /// Chunks of a dataset.
    Chunk = 1,
}

/// One node, its keys as raw bytes.
#[derive(Clone, Debug)]
pub struct BtreeV1Node {
    /// Keys and children, from the first key to the last.
    entries: Vec<u8>,
    /// Byte of the file where `entries` begins.
    at: u64,
    sizes: Sizes,
    key_len: usize,
    len: usize,
    level: u8,
    right: Option<FileAddr>,
}

impl BtreeV1Node {
    /// Reads the node at `addr`, which has to be of the type given and, where a level is given, of
    /// that level.
    ///
    /// `key_len` is the length of a key in bytes: that of a length for groups, 8 + 8 x (rank + 1)
    /// for chunks.
    ///
    /// # Errors
    /// A wrong type or level; a node that goes on after the end of the file.
    pub fn read(
        file: &File,
        addr: FileAddr,
        node_type: NodeType,
        level_expected: Option<u8>,
        key_len: usize,
    ) -> Result<BtreeV1Node> {
        let bytes = file.read_up_to(NAME, addr, BTREE_V1_READ_BYTES)?;
        BtreeV1Node::from_bytes(file, addr, bytes, node_type, level_expected, key_len)
    }

    /// The same from bytes that were read at `addr`; those that they lack are read here.
    pub(crate) fn from_bytes(
        file: &File,
        addr: FileAddr,
        mut bytes: Vec<u8>,
        node_type: NodeType,
        level_expected: Option<u8>,
        key_len: usize,
    ) -> Result<BtreeV1Node> {
        let mut reader = file.reader(NAME, addr, &bytes);
        reader.signature(*b"TREE")?;
        let found = reader.u8()?;
        if found != node_type as u8 {
            return Err(reader.bad("the node type", u64::from(found)));
        }
        let level = reader.u8()?;
        if level_expected.is_some_and(|expected| expected != level) {
            return Err(reader.bad("the level", u64::from(level)));
        }
        let used = reader.u16()?;
        let _left = reader.addr()?;
        let right = reader.addr()?;
        let sizes = reader.sizes();
        let at = reader.at();
        let head_len = bytes.len().saturating_sub(reader.left());
        let step = key_len.saturating_add(usize::from(sizes.offset));
        let entries_len = step.saturating_mul(usize::from(used)).saturating_add(key_len);
        let have = reader.left();
        bytes.drain(..head_len);
        if let Some(missing) = entries_len.checked_sub(have).filter(|&missing| missing > 0) {
            let next = addr.0.saturating_add(head_len as u64).saturating_add(have as u64);
            bytes.extend_from_slice(&file.read(NAME, FileAddr(next), missing as u64)?);
        }
        bytes.truncate(entries_len);
        Ok(BtreeV1Node { entries: bytes, at, sizes, key_len, len: usize::from(used), level, right })
    }

    /// Distance from the leaves, which are level 0.
    #[must_use]
    pub fn level(&self) -> u8 {
        self.level
    }

    /// Number of children.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no children.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The next node of the same level, if there is one.
    #[must_use]
    pub fn right(&self) -> Option<FileAddr> {
        self.right
    }

    /// Bytes of the used part.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.entries.len() as u64)
            .saturating_add(8)
            .saturating_add(2 * u64::from(self.sizes.offset))
    }

    fn reader_at(&self, offset: usize) -> Reader<'_> {
        let entries = self.entries.get(offset..).unwrap_or_default();
        Reader::new(NAME, entries, self.at.saturating_add(offset as u64), self.sizes)
    }

    fn step(&self) -> usize {
        self.key_len.saturating_add(usize::from(self.sizes.offset))
    }

    /// A reader over key `i`, of which there are [`len`](BtreeV1Node::len) + 1.
    ///
    /// # Errors
    /// [`HdfError::Truncated`] beyond the last.
    pub fn key(&self, i: usize) -> Result<Reader<'_>> {
        self.reader_at(self.step().saturating_mul(i)).sub(self.key_len)
    }

    /// Where child `i` is.
    ///
    /// # Errors
    /// An undefined address; [`HdfError::Truncated`] beyond the last child.
    pub fn child(&self, i: usize) -> Result<FileAddr> {
        let offset = self.step().saturating_mul(i).saturating_add(self.key_len);
        self.reader_at(offset).defined_addr("the child of a node")
    }
}

/// Calls `visit` for each leaf entry (the leaf node, the index of the entry in it) in the order of
/// the tree, until it says `false`.
///
/// Levels have to go down one by one, and all nodes together may not be longer than the file, so
/// the walk ends whatever the bytes say.
///
/// # Errors
/// Those of [`BtreeV1Node::read`]; [`HdfError::Limit`]; those of `visit`.
pub fn walk(
    file: &File,
    root: FileAddr,
    node_type: NodeType,
    key_len: usize,
    visit: &mut dyn FnMut(&BtreeV1Node, usize) -> Result<bool>,
) -> Result<()> {
    let mut budget = TraversalBudget::of(file);
    let node = read_root(file, root, node_type, key_len)?;
    budget.spend(NAME, root, node.bytes())?;
    let mut path = vec![(node, 0usize)];
    while let Some((node, next)) = path.last_mut() {
        if node.level == 0 {
            for i in 0..node.len {
                if !visit(node, i)? {
                    return Ok(());
                }
            }
            path.pop();
        } else if *next == node.len {
            path.pop();
        } else {
            let addr = node.child(*next)?;
            *next = next.saturating_add(1);
            let below = node.level.saturating_sub(1);
            let child = BtreeV1Node::read(file, addr, node_type, Some(below), key_len)?;
            budget.spend(NAME, addr, child.bytes())?;
            path.push((child, 0));
        }
    }
    Ok(())
}

/// Reads the nodes of a remote file's tree level by level, so that each level comes in one go, and tells of what the leaves lead to, of
/// `child_bytes` each. Does nothing where a read is a system call.
///
/// # Errors
/// As [`walk`].
pub(crate) fn fetch_levels(
    file: &File,
    root: FileAddr,
    node_type: NodeType,
    key_len: usize,
    child_bytes: u64,
) -> Result<()> {
    if !file.is_remote() {
        return Ok(());
    }
    let mut budget = TraversalBudget::of(file);
    let mut nodes = vec![read_root(file, root, node_type, key_len)?];
    while let Some(level) = nodes.first().map(BtreeV1Node::level) {
        let children = nodes.iter().flat_map(|node| (0..node.len()).map(|i| node.child(i)));
        let children = children.collect::<Result<Vec<FileAddr>>>()?;
        let below = level.checked_sub(1);
        let bytes = if below.is_some() { BTREE_V1_READ_BYTES } else { child_bytes };
        file.will_read(children.iter().map(|&child| (child, bytes)));
        if below.is_none() {
            break;
        }
        nodes.clear();
        for addr in children {
            let node = BtreeV1Node::read(file, addr, node_type, below, key_len)?;
            budget.spend(NAME, addr, node.bytes())?;
            nodes.push(node);
        }
    }
    Ok(())
}

/// Reads a root, whose level says how deep the tree is.
///
/// # Errors
/// Those of [`BtreeV1Node::read`]; [`HdfError::Limit`] for a tree deeper than any real one.
pub fn read_root(
    file: &File,
    root: FileAddr,
    node_type: NodeType,
    key_len: usize,
) -> Result<BtreeV1Node> {
    let node = BtreeV1Node::read(file, root, node_type, None, key_len)?;
    let limit = file.limits().tree_depth;
    if usize::from(node.level) > limit {
        let limit = limit as u64;
        return Err(HdfError::Limit { structure: NAME, at: root.0, what: "levels", limit });
    }
    Ok(node)
}

/// Where the number of children is in a node.
const USED_AT: std::ops::Range<usize> = 6..8;
/// Bytes from the beginning of a node up to the address of its left neighbour.
const LEFT_AT: usize = 8;

/// What nodes of a tree have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeShape {
    /// What the tree is an index of.
    pub node_type: NodeType,
    /// Widths of addresses and lengths.
    pub sizes: Sizes,
    /// Bytes of a key.
    pub key_len: usize,
    /// Children that a node has room for: twice the K of the specification.
    pub most: usize,
}

impl NodeShape {
    /// Bytes that a node takes in the file, whatever the number of its children.
    #[must_use]
    pub fn node_len(&self) -> u64 {
        (self.key_at(self.most) as u64).saturating_add(self.key_len as u64)
    }

    /// Where in a node the number of its children is.
    #[must_use]
    pub fn used_at(&self) -> std::ops::Range<usize> {
        USED_AT
    }

    /// Where in a node key `i` begins.
    #[must_use]
    pub fn key_at(&self, i: usize) -> usize {
        let offset = usize::from(self.sizes.offset);
        let head = offset.saturating_mul(2).saturating_add(LEFT_AT);
        head.saturating_add(offset.saturating_add(self.key_len).saturating_mul(i))
    }

    /// Where in a node the address of child `i` is.
    #[must_use]
    pub fn child_at(&self, i: usize) -> usize {
        self.key_at(i).saturating_add(self.key_len)
    }

    /// Where in a node the address of its left neighbour is.
    #[must_use]
    pub fn left_at(&self) -> u64 {
        LEFT_AT as u64
    }

    /// Where in a node the address of its right neighbour is.
    #[must_use]
    pub fn right_at(&self) -> u64 {
        (LEFT_AT as u64).saturating_add(u64::from(self.sizes.offset))
    }

    /// Encodes a node of `used` children: its head, then what `entries` puts, which are keys and
    /// children in turn and a last key, then zeros up to the length of a node.
    ///
    /// # Errors
    /// [`HdfError::TooLarge`] for more children than there is room for, and for addresses and
    /// lengths that are too wide; those of `entries`.
    pub fn encode(
        &self,
        level: u8,
        used: usize,
        [left, right]: [Option<FileAddr>; 2],
        entries: impl FnOnce(&mut Writer) -> Result<()>,
    ) -> Result<Vec<u8>> {
        let too_large = |value| HdfError::TooLarge { structure: NAME, value };
        let used = u16::try_from(used).ok().filter(|_| used <= self.most);
        let used = used.ok_or(too_large(self.most as u64))?;
        let mut writer = Writer::new(NAME, self.sizes);
        writer.put(b"TREE").u8(self.node_type as u8).u8(level).u16(used);
        writer.addr(left)?.addr(right)?;
        entries(&mut writer)?;
        let mut bytes = writer.finish();
        let len = usize::try_from(self.node_len()).ok().filter(|&len| len >= bytes.len());
        bytes.resize(len.ok_or(too_large(bytes.len() as u64))?, 0);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::built_file::{BuiltFile, at, le};

    const UNDEFINED: u64 = u64::MAX;

    /// A group's node: keys and children take turns.
    fn node(level: u64, entries: &[u64]) -> Vec<u8> {
        let mut bytes = b"TREE".to_vec();
        let used = entries.len() as u64 / 2;
        bytes.extend(le(&[(0, 1), (level, 1), (used, 2), (UNDEFINED, 8), (UNDEFINED, 8)]));
        entries.iter().for_each(|entry| bytes.extend(entry.to_le_bytes()));
        bytes
    }

    fn leaves(file: &File, root: u64) -> Result<Vec<u64>> {
        let mut found = Vec::new();
        walk(file, at(root), NodeType::Group, 8, &mut |node, i| {
            found.push(node.child(i)?.0);
            Ok(true)
        })?;
        Ok(found)
    }

    #[test]
    fn walk_goes_through_leaves_in_order() {
        let mut built = BuiltFile::default();
        let first = built.put(&node(0, &[0, 101, 8, 102, 16]));
        let entries: Vec<u64> = (0..200).flat_map(|i| [16 + i, 1000 + i]).chain([500]).collect();
        let second = built.put(&node(0, &entries));
        let root = built.put(&node(1, &[0, first, 16, second, 500]));
        let file = built.file();
        let want: Vec<u64> = [101, 102].into_iter().chain(1000..1200).collect();
        assert_eq!(leaves(&file, root).unwrap(), want);
        let node = BtreeV1Node::read(&file, at(second), NodeType::Group, Some(0), 8).unwrap();
        assert_eq!(node.len(), 200);
        assert_eq!(node.key(200).unwrap().u64().unwrap(), 500, "one key more than children");
        assert!(node.key(201).is_err() && node.child(200).is_err());
        assert!(BtreeV1Node::read(&file, at(second), NodeType::Chunk, None, 8).is_err());
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        for sizes in [Sizes::EIGHT, Sizes { offset: 4, length: 2 }] {
            let key_len = usize::from(sizes.length);
            let shape = NodeShape { node_type: NodeType::Group, sizes, key_len, most: 5 };
            let encode = |used: u64| {
                let neighbours = [Some(at(0x11)), Some(at(0x22))];
                shape.encode(3, usize::try_from(used).unwrap(), neighbours, |writer| {
                    for i in 0..used {
                        writer.length(100 + i)?.addr(Some(at(200 + i)))?;
                    }
                    writer.length(999)?;
                    Ok(())
                })
            };
            for used in 0..=5 {
                let bytes = encode(used).unwrap();
                assert_eq!(bytes.len() as u64, shape.node_len());
                let word = |at: u64| u64::from(bytes[usize::try_from(at).unwrap()]);
                assert_eq!([word(shape.left_at()), word(shape.right_at())], [0x11, 0x22]);
                let storage = crate::testing::storage(&bytes);
                let file = File::bare(storage, sizes, crate::ReadLimits::default());
                let node =
                    BtreeV1Node::read(&file, at(0), NodeType::Group, Some(3), key_len).unwrap();
                assert_eq!((node.len() as u64, node.right()), (used, Some(at(0x22))));
                for i in 0..used {
                    let place = usize::try_from(i).unwrap();
                    assert_eq!(node.key(place).unwrap().length().unwrap(), 100 + i);
                    assert_eq!(node.child(place).unwrap(), at(200 + i));
                }
                assert_eq!(node.key(node.len()).unwrap().length().unwrap(), 999);
            }
            assert!(matches!(encode(6), Err(HdfError::TooLarge { .. })));
        }
        // As the specification counts for a chunk of one dimension and K = 32.
        let (node_type, sizes) = (NodeType::Chunk, Sizes::EIGHT);
        assert_eq!(NodeShape { node_type, sizes, key_len: 24, most: 64 }.node_len(), 2096);
    }

    #[test]
    fn a_level_that_does_not_go_down_is_an_error() {
        let mut built = BuiltFile::default();
        let root = built.put(&node(1, &[0, 0, 8]));
        assert!(matches!(leaves(&built.file(), root), Err(HdfError::BadValue { .. })));
    }

    #[test]
    fn shared_branches_end_in_an_error() {
        // Each level refers twice to the one below: 2^40 leaves in a few kilobytes.
        let mut built = BuiltFile::default();
        let mut below = built.put(&node(0, &[0, 7, 8]));
        for level in 1..40 {
            below = built.put(&node(level, &[0, below, 8, below, 16]));
        }
        assert!(matches!(leaves(&built.file(), below), Err(HdfError::Limit { .. })));
    }

    #[test]
    fn a_node_cut_off_is_an_error() {
        let mut built = BuiltFile::default();
        let root = built.put(&node(0, &[0, 101, 8, 102, 16]));
        built.bytes.pop();
        assert!(matches!(leaves(&built.file(), root), Err(HdfError::OutOfFile { .. })));
    }
}
