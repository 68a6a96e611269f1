//! The extents of a symbol table, for giving them back.

use super::write::shape;
use super::{NODE, node_space};
use crate::btree_v1::{BtreeV1Node, NodeType, read_root};
use crate::local_heap::LocalHeap;
use crate::message::SymbolTableMessage;
use crate::traversal_budget::TraversalBudget;
use crate::{File, FileAddr, HdfError, Result};

const TREE: &str = "version 1 B-tree node";
const TABLE: &str = "symbol table";

/// The extents of a symbol table: the nodes of its B-tree and those of its entries, each with its
/// unused bytes, and its local heap. None overlaps another.
///
/// # Errors
/// Damage of these structures; [`HdfError::OutOfFile`] where one is not wholly in the file;
/// [`HdfError::Limit`] and [`HdfError::BadValue`] where they overlap.
pub fn symbol_table_extents(
    file: &File,
    message: &SymbolTableMessage,
) -> Result<Vec<(FileAddr, u64)>> {
    let superblock = file.superblock();
    let shape = shape(superblock);
    let mut out = LocalHeap::read(file, message.heap)?.extents().to_vec();
    let mut budget = TraversalBudget::of(file);
    let level = read_root(file, message.btree, NodeType::Group, shape.key_len)?.level();
    let mut pending = vec![(message.btree, level)];
    while let Some((addr, level)) = pending.pop() {
        budget.spend(TREE, addr, shape.node_len())?;
        out.push((addr, shape.node_len()));
        let node = BtreeV1Node::read(file, addr, NodeType::Group, Some(level), shape.key_len)?;
        if node.len() > shape.most {
            let (at, what, value) = (file.position(addr), "number of children", node.len() as u64);
            return Err(HdfError::BadValue { structure: TREE, at, what, value });
        }
        for i in 0..node.len() {
            let child = node.child(i)?;
            if let Some(below) = level.checked_sub(1) {
                pending.push((child, below));
            } else {
                budget.spend(NODE, child, node_space(superblock))?;
                out.push((child, node_space(superblock)));
            }
        }
    }
    for &(addr, len) in &out {
        file.locate(TABLE, addr, len)?;
    }
    zonda_runtime::sort::sort(&mut out);
    let mut pairs = out.iter().zip(out.iter().skip(1));
    if let Some((_, (addr, len))) =
        pairs.find(|((one, len), (next, _))| one.0.saturating_add(*len) > next.0)
    {
        let (at, what, value) = (file.position(*addr), "bytes that two parts cover", *len);
        return Err(HdfError::BadValue { structure: TABLE, at, what, value });
    }
    Ok(out)
}
