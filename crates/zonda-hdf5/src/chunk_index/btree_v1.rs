//! Chunks in a version 1 B-tree (layout versions 1 to 3).
//! Spec: HDF5 File Format, "Disk Format: Level 1A1 - Version 1 B-trees", node type 1.
//! Key: stored bytes u32, mask u32, offsets u64 in elements, one per dimension and one for the
//! element size. Child `i` of a leaf is the chunk of key `i`; the last key is only a bound.

use super::Stored;
use super::grid::{Grid, Numbers};
use super::table::{Builder, Entry, Keys};
use super::tree::{Child, Leaf, Node};
use crate::btree_v1::{self as nodes, NodeType};
use crate::{File, FileAddr, Reader, Result};

/// Children that nodes have room for unless the file says otherwise.
const USUAL_CHILDREN: u64 = 64;

/// Reads the nodes of one tree.
#[derive(Debug)]
pub(super) struct Nodes {
    addr: FileAddr,
    stored: Stored,
    key_len: usize,
}

impl Nodes {
    pub(super) fn new(addr: FileAddr, rank: usize, stored: Stored) -> Nodes {
        let key_len = rank.saturating_add(1).saturating_mul(8).saturating_add(8);
        Nodes { addr, stored, key_len }
    }

    pub(super) fn root(&self) -> Child {
        Child::new(self.addr, 0, None)
    }

    /// Bytes of a node in practically every file.
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
        grid: &Grid,
        child: &Child,
        bytes: Vec<u8>,
    ) -> Result<(Node, u64)> {
        let node = nodes::Node::from_bytes(
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
        let mut coords = Numbers::from_elem(0, grid.rank());
        if level == 0 {
            let mut keys = Vec::with_capacity(node.len());
            let mut table = Builder::with_capacity(node.len());
            let mut before = None;
            for i in 0..node.len() {
                let mut key = node.key(i)?;
                let len = u64::from(key.u32()?);
                let mask = key.u32()?;
                scaled(&mut key, grid, &mut coords)?;
                if before.as_ref().is_some_and(|before| *before >= coords) {
                    return Err(key.bad("the order of chunks, seen at chunk", i as u64));
                }
                // Outside the extent: nobody asks for it.
                if let Some(number) = grid.key(&coords) {
                    let at = self.stored.at(node.child(i)?);
                    let len = self.stored.len(len);
                    keys.push(number);
                    table.push(Entry { at: Some(at), len, mask });
                }
                before = Some(coords.clone());
            }
            let leaf = Leaf { keys: Keys::new(&keys), table: table.finish() };
            return Ok((Node::Leaf(leaf), node.bytes()));
        }
        let mut lower = Vec::with_capacity(node.len());
        let mut children = Vec::with_capacity(node.len());
        let below = Some(level.saturating_sub(1));
        for i in 0..node.len() {
            let mut key = node.key(i)?;
            key.skip(8)?;
            scaled(&mut key, grid, &mut coords)?;
            let from = grid.rank_of(&coords);
            if lower.last().is_some_and(|&before| before > from) {
                return Err(key.bad("the order of children, seen at child", i as u64));
            }
            lower.push(from);
            children.push(Child::new(node.child(i)?, 0, below));
        }
        let chunks = Leaf { keys: Keys::new(&[]), table: Builder::with_capacity(0).finish() };
        let (lower, children) = (lower.into(), children.into());
        Ok((Node::Inner { lower, children, chunks }, node.bytes()))
    }
}

/// Coordinates in chunks from offsets in elements.
fn scaled(key: &mut Reader<'_>, grid: &Grid, coords: &mut Numbers) -> Result<()> {
    for (coord, &chunk) in coords.iter_mut().zip(&grid.chunk) {
        let offset = key.u64()?;
        *coord = offset.checked_div(chunk).unwrap_or(0);
        if coord.saturating_mul(chunk) != offset {
            return Err(key.bad("the offset of a chunk", offset));
        }
    }
    Ok(())
}
