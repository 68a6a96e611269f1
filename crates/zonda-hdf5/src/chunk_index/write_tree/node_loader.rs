//! Nodes from the file, as they are needed.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::chunk_btree::read_nodes;
use super::super::grid::DimValues;
use super::NAME;
use super::keys::{KeyPacking, NodeKeys};
use super::node::{ChunkEntry, NodeEntries, StoredEntries, WriteLink, WriteNode};
use crate::btree_v1::{self, NodeShape, NodeType};
use crate::tuning::NODES_AT_ONCE;
use crate::{ChunkLocation, File, FileAddr, HdfError, Reader, Result};

/// A number of elements larger than any dimension has.
const FAR: u64 = 1 << 62;

/// Reads the nodes of one tree, and knows their form.
#[derive(Debug)]
pub(super) struct NodeLoader {
    file: Arc<File>,
    /// Shape of a chunk in elements.
    chunk: DimValues,
    pub(super) packing: KeyPacking,
    pub(super) elem_size: u32,
    chunk_bytes: u32,
    /// Whether all chunks have `chunk_bytes`, whatever the index says.
    is_len_fixed: bool,
    pub(super) shape: NodeShape,
    /// Bytes of nodes read so far.
    spent: AtomicU64,
}

fn bad(what: &'static str, value: u64) -> HdfError {
    HdfError::BadValue { structure: NAME, at: 0, what, value }
}

impl NodeLoader {
    pub(super) fn new(file: &Arc<File>, chunk: &[u64], elem_size: u32) -> Result<NodeLoader> {
        let elem = u64::from(elem_size);
        let bytes = chunk.iter().try_fold(elem, |bytes, &dim| bytes.checked_mul(dim));
        if chunk.is_empty() || bytes == Some(0) {
            return Err(bad("the number of elements in a chunk", 0));
        }
        let bytes = bytes.unwrap_or(u64::MAX);
        let too_large = |_| HdfError::TooLarge { structure: NAME, value: bytes };
        let chunk_bytes = u32::try_from(bytes).map_err(too_large)?;
        let k = file.superblock().chunk_k;
        if k == 0 {
            return Err(bad("half of the children of a node", 0));
        }
        let key_len = chunk.len().saturating_add(1).saturating_mul(8).saturating_add(8);
        let most = usize::from(k).saturating_mul(2).min(usize::from(u16::MAX));
        let shape = NodeShape { node_type: NodeType::Chunk, sizes: file.sizes(), key_len, most };
        Ok(NodeLoader {
            file: Arc::clone(file),
            chunk: DimValues::from_slice(chunk),
            packing: KeyPacking::new(chunk.len()),
            elem_size,
            chunk_bytes,
            is_len_fixed: false,
            shape,
            spent: AtomicU64::new(0),
        })
    }

    /// Without filters, all chunks have the same length.
    pub(super) fn fix_len(&mut self) {
        self.is_len_fixed = true;
    }

    /// A key behind all chunks that there can be: each of its words is no less than that of any
    /// chunk.
    pub(super) fn far(&self) -> DimValues {
        self.chunk.iter().map(|&dim| FAR.checked_div(dim).unwrap_or(0)).collect()
    }

    /// Whether an address in a node is aligned, so that it is written at once: it is one word of
    /// memory and lies in one sector.
    pub(super) fn is_one_word(&self, node: FileAddr, at: usize) -> bool {
        let at = self.file.position(node).saturating_add(at as u64);
        at.checked_rem(u64::from(self.shape.sizes.offset)) == Some(0)
    }

    pub(super) fn rank(&self) -> usize {
        self.chunk.len()
    }

    pub(super) fn most(&self) -> usize {
        self.shape.most
    }

    pub(super) fn check(&self, key: &[u64]) -> Result<()> {
        if key.len() == self.rank() {
            return Ok(());
        }
        Err(bad("the number of coordinates of a chunk", key.len() as u64))
    }

    pub(super) fn entry(&self, location: ChunkLocation) -> Result<ChunkEntry> {
        let at = location.at.checked_sub(self.file.position(FileAddr(0)));
        let at = at.ok_or(bad("the place of a chunk", location.at))?;
        let too_large = |_| HdfError::TooLarge { structure: NAME, value: location.len };
        let len = u32::try_from(location.len).map_err(too_large)?;
        Ok(ChunkEntry { at, len, mask: location.mask })
    }

    pub(super) fn location(&self, entry: &ChunkEntry) -> ChunkLocation {
        let at = self.file.position(FileAddr(entry.at));
        ChunkLocation { at, len: u64::from(entry.len), mask: entry.mask }
    }

    /// First elements of a chunk.
    pub(super) fn offsets(&self, key: &[u64]) -> impl Iterator<Item = Result<u64>> {
        key.iter().zip(&self.chunk).map(|(&coord, &dim)| {
            let offset = coord.checked_mul(dim);
            offset.ok_or(HdfError::TooLarge { structure: NAME, value: coord })
        })
    }

    /// The node, from memory where it was read before.
    pub(super) fn node<'a>(&self, child: &'a WriteLink, level: u8) -> Result<&'a WriteNode> {
        if let Some(node) = child.node.get() {
            return Ok(node);
        }
        self.read_all(&[child], level)?;
        child.node.get().map(|node| &**node).ok_or(missing(child.addr))
    }

    /// The same, to be changed.
    pub(super) fn node_mut<'a>(
        &self,
        child: &'a mut WriteLink,
        level: u8,
    ) -> Result<&'a mut WriteNode> {
        self.node(child, level)?;
        let addr = child.addr;
        child.node.get_mut().map(|node| &mut **node).ok_or(missing(addr))
    }

    /// Reads those of the nodes that are not in memory.
    pub(super) fn read_all(&self, children: &[&WriteLink], level: u8) -> Result<()> {
        let missing = children.iter().copied().filter(|child| child.node.get().is_none());
        let wanted: Vec<_> = missing.filter_map(|child| Some((child, child.addr?))).collect();
        for some in wanted.chunks(NODES_AT_ONCE) {
            let len = self.shape.node_len();
            let places: Vec<_> = some.iter().map(|(_, addr)| (*addr, len)).collect();
            for ((child, addr), bytes) in some.iter().zip(read_nodes(&self.file, &places)?) {
                let node = self.parse(*addr, bytes, Some(level))?;
                let node = self.decode(*addr, &node)?;
                // Another thread may have been first, with the same node.
                let _ = child.node.set(Box::new(node));
            }
        }
        Ok(())
    }

    /// Reads a node and those below it at its last (or first) side.
    pub(super) fn read_edge(&self, child: &WriteLink, level: u8, is_last: bool) -> Result<()> {
        let (mut child, mut level) = (child, level);
        while let NodeEntries::Inner(children) = &self.node(child, level)?.body {
            let next = if is_last { children.last() } else { children.first() };
            let Some(next) = next else { return Ok(()) };
            child = next;
            level = level.saturating_sub(1);
        }
        Ok(())
    }

    /// The last keys of a node and of those below it at its last side.
    pub(super) fn last_keys(&self, child: &WriteLink, level: u8) -> Result<Vec<DimValues>> {
        let mut out = Vec::new();
        let (mut child, mut level) = (child, level);
        loop {
            let node = self.node(child, level)?;
            let mut key = DimValues::new();
            if node.keys.read(&self.packing, node.len().wrapping_sub(1), &mut key) {
                out.push(key);
            }
            match &node.body {
                NodeEntries::Inner(children) if let Some(last) = children.last() => child = last,
                _ => return Ok(out),
            }
            level = level.saturating_sub(1);
        }
    }

    /// The root, its level, and the bound behind its last chunk.
    pub(super) fn read_root(&self, addr: FileAddr) -> Result<(WriteLink, u8, DimValues)> {
        let bytes = self.file.read_up_to(NAME, addr, self.shape.node_len())?;
        let node = self.parse(addr, bytes, None)?;
        let level = node.level();
        if usize::from(level) > self.file.limits().tree_depth {
            return Err(node.key(0)?.bad("the level", u64::from(level)));
        }
        let mut end = DimValues::new();
        let mut key = node.key(node.len())?;
        key.skip(8)?;
        for &dim in &self.chunk {
            end.push(key.u64()?.div_ceil(dim));
        }
        let child = WriteLink {
            node: OnceLock::from(Box::new(self.decode(addr, &node)?)),
            ..WriteLink::stored(addr)
        };
        Ok((child, level, end))
    }

    fn parse(
        &self,
        addr: FileAddr,
        bytes: Vec<u8>,
        level: Option<u8>,
    ) -> Result<btree_v1::BtreeV1Node> {
        let key_len = self.shape.key_len;
        let node = btree_v1::BtreeV1Node::from_bytes(
            &self.file,
            addr,
            bytes,
            NodeType::Chunk,
            level,
            key_len,
        )?;
        // All nodes together may have as many bytes as the file. Levels go down, but nodes may be
        // shared.
        let before = self.spent.fetch_add(node.bytes(), Ordering::Relaxed);
        let limit = self.file.len();
        if before.saturating_add(node.bytes()) > limit {
            let what = "bytes in one tree";
            return Err(HdfError::Limit { structure: NAME, at: addr.0, what, limit });
        }
        if node.len() > self.shape.most || (node.is_empty() && node.level() > 0) {
            return Err(node.key(0)?.bad("the number of children", node.len() as u64));
        }
        Ok(node)
    }

    fn decode(&self, addr: FileAddr, node: &btree_v1::BtreeV1Node) -> Result<WriteNode> {
        let mut keys = NodeKeys::new();
        let mut entries = Vec::new();
        let mut children = Vec::new();
        let mut coords = DimValues::new();
        let mut before = DimValues::new();
        for i in 0..node.len() {
            let mut key = node.key(i)?;
            let (len, mask) = (key.u32()?, key.u32()?);
            std::mem::swap(&mut before, &mut coords);
            self.coords(&mut key, &mut coords)?;
            if i > 0 && before >= coords {
                return Err(key.bad("the number of a chunk that is out of order", i as u64));
            }
            keys.insert(&self.packing, i, self.packing.search_key(&coords), node.len());
            let child = node.child(i)?;
            if node.level() == 0 {
                let len = if self.is_len_fixed { self.chunk_bytes } else { len };
                entries.push(ChunkEntry { at: child.0, len, mask });
            } else if child == addr {
                let (structure, at) = (NAME, addr.0);
                return Err(HdfError::Cycle { structure, at });
            } else {
                children.push(WriteLink::stored(child));
            }
        }
        let is_leaf = node.level() == 0;
        let body = if is_leaf { NodeEntries::Leaf(entries) } else { NodeEntries::Inner(children) };
        let mut out = WriteNode::new(keys, body);
        out.stored = StoredEntries::whole(node.len(), false);
        Ok(out)
    }

    /// Coordinates in chunks from offsets in elements.
    fn coords(&self, key: &mut Reader<'_>, out: &mut DimValues) -> Result<()> {
        out.clear();
        for &dim in &self.chunk {
            let offset = key.u64()?;
            if offset.checked_rem(dim) != Some(0) || offset == u64::MAX {
                return Err(key.bad("the offset of a chunk", offset));
            }
            out.push(offset.checked_div(dim).unwrap_or(0));
        }
        Ok(())
    }
}

fn missing(addr: Option<FileAddr>) -> HdfError {
    let at = addr.map_or(0, |addr| addr.0);
    HdfError::Missing { structure: NAME, at, what: "a node" }
}
