//! Chunks in a version 2 B-tree: datasets with several unlimited dimensions (layout version 4).
//! Spec: HDF5 File Format, "Disk Format: Level 1A2 - Version 2 B-trees", record types 10 and 11.
//! Record: address, for filtered chunks stored bytes and mask u32, coordinates u64 in chunks.

use std::sync::OnceLock;

use super::LocationCoding;
use super::chunk_btree::{ChunkLeaf, ChunkNode, NodeLink};
use super::grid::{ChunkGrid, DimValues};
use super::location_table::{LeafKeys, LocationTableBuilder};
use crate::btree_v2::{BtreeV2, Pointer, record_type};
use crate::{File, FileAddr, HdfError, Reader, Result};

const NAME: &str = "version 2 B-tree of chunks";

/// Reads the nodes of one tree.
#[derive(Debug)]
pub(super) struct NodesV2 {
    addr: FileAddr,
    coding: LocationCoding,
    open: OnceLock<OpenTree>,
}

#[derive(Debug)]
struct OpenTree {
    tree: BtreeV2,
    /// Bytes of the size of a filtered chunk; 0 without filters.
    size_width: usize,
}

impl NodesV2 {
    pub(super) fn new(addr: FileAddr, coding: LocationCoding) -> NodesV2 {
        NodesV2 { addr, coding, open: OnceLock::new() }
    }

    fn open(&self) -> Result<&OpenTree> {
        let (structure, at, what) = (NAME, self.addr.0, "its header");
        self.open.get().ok_or(HdfError::Missing { structure, at, what })
    }

    /// Reads the header.
    pub(super) fn root(&self, file: &File, grid: &ChunkGrid) -> Result<Option<NodeLink>> {
        let filtered = self.coding.filtered;
        let kind = if filtered { record_type::FILTERED_CHUNK } else { record_type::CHUNK };
        let tree = BtreeV2::open(file, self.addr, kind)?;
        let fixed = grid.rank().saturating_mul(8);
        let size_width = self.coding.size_width(
            file,
            NAME,
            self.addr,
            tree.record_len().saturating_sub(fixed) as u64,
        )?;
        let root = match tree.root() {
            None => None,
            Some(root) => Some(child(NAME, root, tree.depth())?),
        };
        // Another thread may have been first, with the same bytes.
        let _ = self.open.set(OpenTree { tree, size_width });
        Ok(root)
    }

    pub(super) fn node_len(&self, child: &NodeLink) -> Result<u64> {
        self.open()?.tree.node_len(pointer(child), level(child))
    }

    /// A node and its bytes in the file.
    pub(super) fn decode(
        &self,
        file: &File,
        grid: &ChunkGrid,
        from: &NodeLink,
        bytes: Vec<u8>,
    ) -> Result<(ChunkNode, u64)> {
        let OpenTree { tree, size_width } = self.open()?;
        let len = bytes.len() as u64;
        let node = tree.decode_node(file, pointer(from), level(from), bytes)?;
        let n = usize::from(from.records);
        let mut keys = Vec::with_capacity(n);
        let mut lower = vec![0];
        let mut table = LocationTableBuilder::with_capacity(n);
        let mut coords = DimValues::from_elem(0, grid.rank());
        let mut before = None;
        for record in node.records.chunks_exact(tree.record_len()) {
            let at = from.addr.0;
            let mut record = Reader::new(NAME, record, at, file.sizes());
            let entry = self.coding.entry(&mut record, *size_width)?;
            for coord in &mut coords {
                *coord = record.u64()?;
            }
            if before.as_ref().is_some_and(|before| *before >= coords) {
                return Err(
                    record.bad("the number of a chunk that is out of order", lower.len() as u64)
                );
            }
            before = Some(coords.clone());
            let from = grid.rank_of(&coords);
            // Nobody asks for a chunk outside the extent, but it separates children nevertheless.
            if let Some(key) = grid.key(&coords) {
                keys.push(key);
                table.push(entry);
                lower.push(from.saturating_add(1));
            } else {
                lower.push(from);
            }
        }
        let chunks = ChunkLeaf { keys: LeafKeys::new(&keys), table: table.finish() };
        if level(from) == 0 {
            return Ok((ChunkNode::Leaf(chunks), len));
        }
        let below = level(from).saturating_sub(1);
        let children: Result<Box<[NodeLink]>> =
            node.children.iter().map(|&pointer| child(NAME, pointer, below)).collect();
        Ok((ChunkNode::Inner { lower: lower.into(), children: children?, chunks }, len))
    }
}

fn child(structure: &'static str, pointer: Pointer, level: usize) -> Result<NodeLink> {
    let (at, what, value) = (pointer.addr.0, "the number of records", pointer.records);
    let bad = HdfError::BadValue { structure, at, what, value };
    match (u16::try_from(pointer.records), u8::try_from(level)) {
        (Ok(records), Ok(level)) => Ok(NodeLink::new(pointer.addr, records, Some(level))),
        _ => Err(bad),
    }
}

fn pointer(child: &NodeLink) -> Pointer {
    Pointer { addr: child.addr, records: u64::from(child.records) }
}

fn level(child: &NodeLink) -> usize {
    usize::from(child.level.unwrap_or(0))
}
