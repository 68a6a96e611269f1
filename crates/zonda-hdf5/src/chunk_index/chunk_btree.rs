//! B-trees of chunks that are read: nodes stay in memory, as compact leaves.
//!
//! Both versions are read into the same form. In version 1, key `i` of an internal node is the
//! first chunk of child `i`; in version 2, internal nodes have chunks themselves, which separate
//! their children. Either may be outside the extent, so a child is known by where its keys begin. A
//! node is read when a box needs it, once; the first thread that reads it publishes it, so that
//! finding a chunk takes no lock. When at least a quarter of the chunks is asked for, all are read
//! into one flat table instead, which is smaller than the nodes and has a chunk at once.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use zonda_storage::ReadRange;

use super::grid::{ChunkGrid, Region};
use super::location_table::{LeafKeys, LocationEntry, LocationTable, LocationTableBuilder};
use super::{ChunkLocation, KeySegment, SegmentChunks, btree_v1, btree_v2};
use crate::tuning::NODES_AT_ONCE;
use crate::{File, FileAddr, HdfError, Result};
use zonda_model::memory;

const NAME: &str = "B-tree of chunks";

/// Chunks in ascending order of keys.
#[derive(Debug)]
pub(super) struct ChunkLeaf {
    pub(super) keys: LeafKeys,
    pub(super) table: LocationTable,
}

impl ChunkLeaf {
    /// Chunks with keys from `low` up to, not including, `high`.
    pub(super) fn iter(&self, low: u64, high: u64) -> impl Iterator<Item = (u64, ChunkLocation)> {
        (self.keys.below(low)..)
            .map_while(move |i| Some((self.keys.get(i).filter(|&key| key < high)?, i)))
            .filter_map(|(key, i)| Some((key, self.table.get(i)?)))
    }
}

/// A node in the file, and in memory once it was read.
#[derive(Debug)]
pub(super) struct NodeLink {
    pub(super) addr: FileAddr,
    /// Records in it; of version 2 only, where pointers have their number.
    pub(super) records: u16,
    /// Distance from the leaves; `None` for the root in version 1, which has it itself.
    pub(super) level: Option<u8>,
    node: OnceLock<Box<ChunkNode>>,
}

impl NodeLink {
    pub(super) fn new(addr: FileAddr, records: u16, level: Option<u8>) -> NodeLink {
        NodeLink { addr, records, level, node: OnceLock::new() }
    }

    /// The same node, not in memory.
    fn unread(&self) -> NodeLink {
        NodeLink::new(self.addr, self.records, self.level)
    }
}

/// A node in memory.
#[derive(Debug)]
pub(super) enum ChunkNode {
    /// Of level 0.
    Leaf(ChunkLeaf),
    /// Of a higher level.
    Inner {
        /// Where the keys of each child begin; they end where the next chunk or child begins.
        lower: Box<[u64]>,
        children: Box<[NodeLink]>,
        /// Chunks between the children; version 2 only.
        chunks: ChunkLeaf,
    },
}

/// All chunks of a tree.
#[derive(Debug)]
enum FlatChunks {
    /// By key: where at least half of them exist.
    Dense(LocationTable),
    Sparse(ChunkLeaf),
}

/// All chunks of a tree, while they are read.
#[derive(Debug, Default)]
struct GatheredChunks {
    /// Ascending.
    keys: Vec<u64>,
    table: LocationTableBuilder,
    /// Chunks of internal nodes, all of which are read before the leaves.
    between: Vec<(u64, ChunkLocation)>,
    /// How many of them are in the table.
    taken: usize,
}

impl GatheredChunks {
    fn push(&mut self, key: u64, ChunkLocation { at, len, mask }: ChunkLocation) {
        self.keys.push(key);
        self.table.push(LocationEntry { at: Some(at), len, mask });
    }

    /// Adds the chunks of internal nodes that come before a key.
    fn take_between(&mut self, key: u64) {
        while let Some(&(before, location)) = self.between.get(self.taken).filter(|c| c.0 < key) {
            self.push(before, location);
            self.taken = self.taken.saturating_add(1);
        }
    }

    /// Adds the chunks of the next leaf.
    fn take(&mut self, leaf: &ChunkLeaf, low: u64, high: u64) {
        self.take_between(low);
        leaf.iter(low, high).for_each(|(key, location)| self.push(key, location));
    }
}

/// Reads nodes of one of the versions.
#[derive(Debug)]
pub(super) enum NodeReader {
    V1(btree_v1::NodesV1),
    V2(btree_v2::NodesV2),
}

/// A tree.
#[derive(Debug)]
pub(super) struct ChunkBtree {
    file: Arc<File>,
    version: NodeReader,
    root: OnceLock<Option<NodeLink>>,
    /// Bytes of the nodes in memory as they were in the file. The nodes of a sound tree do not
    /// overlap, so they are not longer than the file.
    spent: AtomicU64,
    /// Chunks in the nodes in memory.
    n_chunks: AtomicU64,
    flat: OnceLock<FlatChunks>,
    /// Whether a node is damaged, so that there will be no flat table.
    is_damaged: AtomicBool,
}

impl ChunkBtree {
    pub(super) fn new(file: Arc<File>, version: NodeReader) -> ChunkBtree {
        ChunkBtree {
            file,
            version,
            root: OnceLock::new(),
            spent: AtomicU64::new(0),
            n_chunks: AtomicU64::new(0),
            flat: OnceLock::new(),
            is_damaged: AtomicBool::new(false),
        }
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    fn root(&self, grid: &ChunkGrid) -> Result<Option<&NodeLink>> {
        if let Some(root) = self.root.get() {
            return Ok(root.as_ref());
        }
        let root = match &self.version {
            NodeReader::V1(nodes) => Some(nodes.root()),
            NodeReader::V2(nodes) => nodes.root(&self.file, grid)?,
        };
        Ok(self.root.get_or_init(|| root).as_ref())
    }

    /// The node of a child, read if need be.
    fn node<'a>(&self, grid: &ChunkGrid, child: &'a NodeLink) -> Result<&'a ChunkNode> {
        if let Some(node) = child.node.get() {
            return Ok(node);
        }
        let len = self.read_len(child)?;
        let bytes = self.file.read_up_to(NAME, child.addr, len)?;
        self.publish(grid, child, bytes)
    }

    /// How many bytes of a node to read: all of it, or in version 1 as many as nodes usually have.
    pub(super) fn read_len(&self, child: &NodeLink) -> Result<u64> {
        match &self.version {
            NodeReader::V1(nodes) => Ok(nodes.usual_len(&self.file)),
            NodeReader::V2(nodes) => nodes.node_len(child),
        }
    }

    /// A node and its bytes in the file.
    pub(super) fn decode(
        &self,
        grid: &ChunkGrid,
        child: &NodeLink,
        bytes: Vec<u8>,
    ) -> Result<(ChunkNode, u64)> {
        match &self.version {
            NodeReader::V1(nodes) => nodes.decode(&self.file, grid, child, bytes),
            NodeReader::V2(nodes) => nodes.decode(&self.file, grid, child, bytes),
        }
    }

    fn check_spent(&self, spent: u64, child: &NodeLink) -> Result<()> {
        let (structure, at, limit) = (NAME, child.addr.0, self.file.len());
        if spent > limit {
            return Err(HdfError::Limit { structure, at, what: "bytes in one tree", limit });
        }
        Ok(())
    }

    fn publish<'a>(
        &self,
        grid: &ChunkGrid,
        child: &'a NodeLink,
        bytes: Vec<u8>,
    ) -> Result<&'a ChunkNode> {
        let (node, len) = self.decode(grid, child, bytes)?;
        let n = match &node {
            ChunkNode::Leaf(chunks) | ChunkNode::Inner { chunks, .. } => chunks.table.len() as u64,
        };
        // Several threads may have read the same node: only one is kept and counted.
        let spent = match child.node.set(Box::new(node)) {
            Ok(()) => {
                self.n_chunks.fetch_add(n, Ordering::Relaxed);
                self.spent.fetch_add(len, Ordering::Relaxed).saturating_add(len)
            }
            Err(_) => self.spent.load(Ordering::Relaxed),
        };
        self.check_spent(spent, child)?;
        let (structure, at, what) = (NAME, child.addr.0, "the node that was just read");
        child.node.get().map(|node| &**node).ok_or(HdfError::Missing { structure, at, what })
    }

    /// The segment that begins at `key`.
    pub(super) fn segment(&self, grid: &ChunkGrid, key: u64) -> Result<KeySegment<'_>> {
        match self.flat.get() {
            Some(FlatChunks::Dense(table)) => {
                return Ok(KeySegment {
                    high: grid.total,
                    chunks: SegmentChunks::Linear { low: 0, table },
                });
            }
            Some(FlatChunks::Sparse(leaf)) => {
                return Ok(KeySegment { high: u64::MAX, chunks: SegmentChunks::Sorted(leaf) });
            }
            None => {}
        }
        let mut high = u64::MAX;
        let Some(mut child) = self.root(grid)? else {
            return Ok(KeySegment { high, chunks: SegmentChunks::Nothing });
        };
        loop {
            match self.node(grid, child)? {
                ChunkNode::Leaf(leaf) => {
                    return Ok(KeySegment { high, chunks: SegmentChunks::Sorted(leaf) });
                }
                ChunkNode::Inner { lower, children, chunks } => {
                    let next = chunks.keys.below(key);
                    match chunks.keys.get(next) {
                        Some(chunk) if chunk == key => {
                            let chunks = SegmentChunks::One(chunks.table.get(next));
                            return Ok(KeySegment { high: key.saturating_add(1), chunks });
                        }
                        Some(above) => high = high.min(above),
                        None => {}
                    }
                    let next = lower.partition_point(|&lower| lower <= key);
                    if let Some(&above) = lower.get(next) {
                        high = high.min(above);
                    }
                    match next.checked_sub(1).and_then(|i| children.get(i)) {
                        Some(below) => child = below,
                        None => return Ok(KeySegment { high, chunks: SegmentChunks::Nothing }),
                    }
                }
            }
        }
    }

    /// Reads all nodes that a box needs, level by level, many at a time.
    pub(super) fn prepare(&self, grid: &ChunkGrid, region: &Region<'_>) -> Result<()> {
        if self.flat.get().is_some() {
            return Ok(());
        }
        let loaded = self.n_chunks.load(Ordering::Relaxed);
        let quarter = grid.total.div_ceil(4);
        // Of a remote file no node is asked for before it is needed, or twice.
        let is_flat = match self.file.is_remote() {
            true => region.len() >= grid.total && loaded < quarter,
            false => region.len().max(loaded) >= quarter,
        };
        if is_flat && !self.is_damaged.load(Ordering::Relaxed) {
            match self.flatten(grid) {
                Ok(flat) => {
                    // Another thread may have been first, with the same chunks.
                    let _ = self.flat.set(flat);
                    return Ok(());
                }
                // A request that failed says nothing of the tree.
                Err(error) if error.is_remote() => return Err(error),
                // The box may not need what is damaged.
                Err(_) => self.is_damaged.store(true, Ordering::Relaxed),
            }
        }
        let Some(root) = self.root(grid)? else { return Ok(()) };
        // Children with the keys they may hold: from the first up to, not including, the second.
        let mut level = vec![(root, 0, u64::MAX)];
        while !level.is_empty() {
            let children = level.iter().map(|(child, ..)| *child).collect();
            self.read_all(grid, children, region.len())?;
            let mut below = Vec::new();
            for &(child, low, high) in &level {
                match self.node(grid, child)? {
                    ChunkNode::Leaf(_) => {}
                    ChunkNode::Inner { lower, children, chunks } => {
                        let mut key = low.max(lower.first().copied().unwrap_or(u64::MAX));
                        while let Some((next, _)) = region.next(key).filter(|run| run.0 < high) {
                            let after = lower.partition_point(|&lower| lower <= next);
                            let mut end = lower.get(after).copied().unwrap_or(high).min(high);
                            let chunk = chunks.keys.get(chunks.keys.below(next));
                            if chunk == Some(next) {
                                key = next.saturating_add(1);
                                continue;
                            }
                            end = chunk.map_or(end, |chunk| end.min(chunk));
                            let child = after.checked_sub(1).and_then(|i| children.get(i));
                            below.extend(child.map(|child| (child, next, end)));
                            key = end.max(next.saturating_add(1));
                        }
                    }
                }
            }
            level = below;
        }
        Ok(())
    }

    /// Reads the places of all chunks, keeping no nodes. Of a remote file all chunks themselves will be read, too.
    fn flatten(&self, grid: &ChunkGrid) -> Result<FlatChunks> {
        let mut all = GatheredChunks::default();
        let mut spent = 0u64;
        // As in `prepare`, but these children belong to no node.
        let mut level: Vec<(NodeLink, u64, u64)> = Vec::new();
        level.extend(self.root(grid)?.map(|root| (root.unread(), 0, u64::MAX)));
        while !level.is_empty() {
            zonda_runtime::sort::sort_by_key(&mut all.between, |(key, _)| *key);
            let nodes: Vec<&NodeLink> = level.iter().map(|(child, ..)| child).collect();
            self.foretell(grid, &nodes, grid.total)?;
            let mut below = Vec::new();
            for some in level.chunks(NODES_AT_ONCE) {
                let children: Vec<&NodeLink> = some.iter().map(|(child, ..)| child).collect();
                for ((child, low, high), bytes) in some.iter().zip(self.read_many(&children)?) {
                    let (node, len) = self.decode(grid, child, bytes)?;
                    spent = spent.saturating_add(len);
                    self.check_spent(spent, child)?;
                    match node {
                        ChunkNode::Leaf(leaf) => all.take(&leaf, *low, *high),
                        ChunkNode::Inner { lower, children, chunks } => {
                            all.between.extend(chunks.iter(*low, *high));
                            for (i, child) in children.into_iter().enumerate() {
                                let from = lower.get(i).copied().unwrap_or(0).max(*low);
                                let next = i.checked_add(1).and_then(|i| lower.get(i).copied());
                                let chunk = chunks.keys.get(chunks.keys.below(from));
                                let end = [next, chunk].into_iter().flatten().min();
                                let end = end.unwrap_or(u64::MAX).min(*high);
                                if from < end {
                                    below.push((child, from, end));
                                }
                            }
                        }
                    }
                }
            }
            level = below;
        }
        all.take_between(u64::MAX);
        let GatheredChunks { keys, mut table, .. } = all;
        match usize::try_from(grid.total) {
            Ok(total) if keys.len() >= total / 2 => {
                table.spread(&keys, total);
                Ok(FlatChunks::Dense(table.finish()))
            }
            _ => Ok(FlatChunks::Sparse(ChunkLeaf {
                keys: LeafKeys::new(&keys),
                table: table.finish(),
            })),
        }
    }

    /// Reads the nodes that are not in memory yet, for a box of so many chunks.
    fn read_all(
        &self,
        grid: &ChunkGrid,
        mut children: Vec<&NodeLink>,
        n_chunks: u64,
    ) -> Result<()> {
        children.retain(|child| child.node.get().is_none());
        if children.len() < 2 {
            return Ok(());
        }
        self.foretell(grid, &children, n_chunks)?;
        for some in children.chunks(NODES_AT_ONCE) {
            for (child, bytes) in some.iter().zip(self.read_many(some)?) {
                self.publish(grid, child, bytes)?;
            }
        }
        Ok(())
    }

    /// Tells a remote file of all nodes of a level that are to be read, and, where these are leaves among their chunks, of the chunks, of which
    /// `n_chunks` will be read.
    fn foretell(&self, grid: &ChunkGrid, nodes: &[&NodeLink], n_chunks: u64) -> Result<()> {
        if !self.file.is_remote() || self.foretell_with_chunks(grid, nodes, n_chunks)? {
            return Ok(());
        }
        self.foretell_nodes(nodes)
    }

    /// Tells a remote file of nodes that are to be read.
    pub(super) fn foretell_nodes(&self, nodes: &[&NodeLink]) -> Result<()> {
        let wanted = nodes.iter().map(|node| Ok((node.addr, self.read_len(node)?)));
        self.file.will_read(wanted.collect::<Result<Vec<_>>>()?);
        Ok(())
    }

    /// The bytes of nodes, as many as [`read_len`](ChunkBtree::read_len) says of each.
    pub(super) fn read_many(&self, children: &[&NodeLink]) -> Result<Vec<Vec<u8>>> {
        let wanted = children.iter().map(|child| Ok((child.addr, self.read_len(child)?)));
        read_nodes(&self.file, &wanted.collect::<Result<Vec<_>>>()?)
    }
}

/// The bytes of nodes: where each is, and how many bytes are wanted; fewer where the file ends.
pub(super) fn read_nodes(file: &File, wanted: &[(FileAddr, u64)]) -> Result<Vec<Vec<u8>>> {
    if file.has_cache_image() {
        // The bytes that a cache image covers are not in the storage.
        return wanted.iter().map(|&(addr, len)| file.read_up_to(NAME, addr, len)).collect();
    }
    let mut buffers = Vec::with_capacity(wanted.len());
    for &(addr, len) in wanted {
        let at = file.locate(NAME, addr, 1)?;
        let len = len.min(file.len().saturating_sub(at));
        buffers.push((at, memory::filled(usize::try_from(len).unwrap_or(usize::MAX), 0)?));
    }
    let mut ranges: Vec<ReadRange<'_>> =
        buffers.iter_mut().map(|(at, buffer)| ReadRange::new(*at, buffer)).collect();
    zonda_runtime::sort::sort_by_key(&mut ranges, |range| range.at);
    file.storage().read_ranges(&mut ranges)?;
    if ranges.iter().any(|range| range.got < range.buf.len()) {
        let (structure, at, end) = (NAME, file.len(), file.len());
        return Err(HdfError::OutOfFile { structure, at, len: 1, end });
    }
    Ok(buffers.into_iter().map(|(_, bytes)| bytes).collect())
}
