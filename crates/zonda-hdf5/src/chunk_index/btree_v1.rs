//! Chunks in a version 1 B-tree (layout versions 1 to 3).
//! Spec: HDF5 File Format, "Disk Format: Level 1A1 - Version 1 B-trees", node type 1.
//! Key: stored bytes u32, mask u32, offsets u64 in elements, one per dimension and one for the
//! element size. Child `i` of a leaf is the chunk of key `i`; the last key is only a bound.

use super::LocationCoding;
use super::chunk_btree::{ChunkLeaf, ChunkNode, NodeLink};
use super::grid::{ChunkGrid, DimValues};
use super::location_table::{LeafKeys, LocationEntry, LocationTableBuilder};
use crate::btree_v1::{BtreeV1Node, NodeType};
use crate::{File, FileAddr, Reader, Result};

/// Children that nodes have room for unless the file says otherwise.
const USUAL_CHILDREN: u64 = 64;

/// Reads the nodes of one tree.
#[derive(Debug)]
pub(super) struct NodesV1 {
    addr: FileAddr,
    coding: LocationCoding,
    key_len: usize,
}

impl NodesV1 {
    pub(super) fn new(addr: FileAddr, rank: usize, coding: LocationCoding) -> NodesV1 {
        let key_len = rank.saturating_add(1).saturating_mul(8).saturating_add(8);
        NodesV1 { addr, coding, key_len }
    }

    pub(super) fn root(&self) -> NodeLink {
        NodeLink::new(self.addr, 0, None)
    }

    /// Bytes of a node with the usual number of children.
    pub(super) fn usual_len(&self, file: &File) -> u64 {
        let offset = u64::from(file.sizes().offset);
        let key = self.key_len as u64;
        let head = offset.saturating_mul(2).saturating_add(8);
        let entries = key.saturating_add(offset).saturating_mul(USUAL_CHILDREN);
        head.saturating_add(entries).saturating_add(key)
    }

    /// A node and its bytes in the file.
    pub(super) fn decode(
        &self,
        file: &File,
        grid: &ChunkGrid,
        child: &NodeLink,
        bytes: Vec<u8>,
    ) -> Result<(ChunkNode, u64)> {
        let node = BtreeV1Node::from_bytes(
            file,
            child.addr,
            bytes,
            NodeType::Chunk,
            child.level,
            self.key_len,
        )?;
        let level = node.level();
        if usize::from(level) > file.limits().tree_depth {
            return Err(node.key(0)?.bad("the level", u64::from(level)));
        }
        let decoded = if level == 0 {
            ChunkNode::Leaf(self.decode_leaf(grid, &node)?)
        } else {
            decode_inner(grid, &node)?
        };
        Ok((decoded, node.bytes()))
    }

    fn decode_leaf(&self, grid: &ChunkGrid, node: &BtreeV1Node) -> Result<ChunkLeaf> {
        let mut coords = DimValues::from_elem(0, grid.rank());
        let mut keys = Vec::with_capacity(node.len());
        let mut table = LocationTableBuilder::with_capacity(node.len());
        let mut before = None;
        for i in 0..node.len() {
            let mut key = node.key(i)?;
            let len = u64::from(key.u32()?);
            let mask = key.u32()?;
            scaled(&mut key, grid, &mut coords)?;
            if before.as_ref().is_some_and(|before| *before >= coords) {
                return Err(key.bad("the number of a chunk that is out of order", i as u64));
            }
            // Nobody asks for a chunk outside the extent.
            if let Some(number) = grid.key(&coords) {
                let at = self.coding.at(node.child(i)?);
                keys.push(number);
                table.push(LocationEntry { at: Some(at), len: self.coding.len(len), mask });
            }
            before = Some(coords.clone());
        }
        Ok(ChunkLeaf { keys: LeafKeys::new(&keys), table: table.finish() })
    }
}

fn decode_inner(grid: &ChunkGrid, node: &BtreeV1Node) -> Result<ChunkNode> {
    let mut coords = DimValues::from_elem(0, grid.rank());
    let mut lower = Vec::with_capacity(node.len());
    let mut children = Vec::with_capacity(node.len());
    let below = Some(node.level().saturating_sub(1));
    for i in 0..node.len() {
        let mut key = node.key(i)?;
        key.skip(8)?;
        scaled(&mut key, grid, &mut coords)?;
        let from = grid.rank_of(&coords);
        if lower.last().is_some_and(|&before| before > from) {
            return Err(key.bad("the number of a child that is out of order", i as u64));
        }
        lower.push(from);
        children.push(NodeLink::new(node.child(i)?, 0, below));
    }
    let none = LocationTableBuilder::with_capacity(0).finish();
    let chunks = ChunkLeaf { keys: LeafKeys::new(&[]), table: none };
    Ok(ChunkNode::Inner { lower: lower.into(), children: children.into(), chunks })
}

/// Coordinates in chunks from offsets in elements.
fn scaled(key: &mut Reader<'_>, grid: &ChunkGrid, coords: &mut DimValues) -> Result<()> {
    for (coord, &chunk) in coords.iter_mut().zip(&grid.chunk) {
        let offset = key.u64()?;
        *coord = offset.checked_div(chunk).unwrap_or(0);
        if coord.saturating_mul(chunk) != offset {
            return Err(key.bad("the offset of a chunk", offset));
        }
    }
    Ok(())
}
