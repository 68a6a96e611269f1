//! A symbol table that is written whole from all links of a group.
//!
//! There are as few nodes as hold the entries, and the entries are spread evenly over them; so are
//! the nodes over those of the B-tree above.

use super::{EntryTarget, SymbolTableEntry, encode_node, most_entries, node_space};
use crate::btree_v1::{NodeShape, NodeType};
use crate::local_heap::NewLocalHeap;
use crate::message::{Link, LinkTarget, SymbolTableMessage};
use crate::{FileAddr, HdfError, NewBlocks, Result, Superblock};

const TABLE: &str = "symbol table";

/// A node that has an address: of symbols, or of the tree above.
#[derive(Clone, Copy, Debug)]
struct PlacedNode {
    addr: FileAddr,
    /// Where the last name in it is in the heap.
    last: u64,
}

/// Puts the links of a group into a symbol table: a local heap with their names, nodes with their
/// entries, and a version 1 B-tree over these.
///
/// A symbol table keeps neither the order of creation nor character sets: these are ignored.
/// `superblock` says how long nodes are.
///
/// # Errors
/// [`HdfError::Unsupported`] for what no symbol table can have: links that are neither hard nor
/// soft, names and paths with a NUL, empty ones, two links of one name. [`HdfError::TooLarge`] where
/// the file's addresses or lengths are too narrow.
pub fn write_symbol_table(
    links: &[Link],
    superblock: &Superblock,
    fresh: &mut NewBlocks<'_>,
) -> Result<SymbolTableMessage> {
    let mut links: Vec<&Link> = links.iter().collect();
    zonda_runtime::sort::sort_by(&mut links, |a, b| a.name.cmp(&b.name));
    if links.iter().zip(links.iter().skip(1)).any(|(one, next)| one.name == next.name) {
        return Err(unsupported("two links of one name"));
    }
    let mut heap = NewLocalHeap::new(superblock.sizes);
    let mut entries = Vec::with_capacity(links.len());
    for link in links {
        let name = heap.insert(checked(&link.name)?);
        let target = match &link.target {
            LinkTarget::Hard(addr) => EntryTarget::Object(*addr),
            LinkTarget::Soft(path) => EntryTarget::Soft(heap.insert(checked(path)?)),
            LinkTarget::External { .. } => return Err(unsupported("an external link")),
            LinkTarget::UserDefined { .. } => return Err(unsupported("a user-defined link")),
        };
        entries.push(SymbolTableEntry { name, target });
    }
    let (heap, bytes) = heap.encode(|len| fresh.space().alloc(len))?;
    fresh.put_at(heap, bytes);

    let mut children = Vec::new();
    for entries in Shares::of(&entries, most_entries(superblock)) {
        let addr = fresh.space().alloc(node_space(superblock))?;
        fresh.put_at(addr, encode_node(entries, superblock)?);
        children.push(PlacedNode { addr, last: entries.last().map_or(0, |entry| entry.name) });
    }
    Ok(SymbolTableMessage { btree: write_tree(children, superblock, fresh)?, heap })
}

/// Writes a tree over these nodes, level by level, and says where its root is.
fn write_tree(
    mut children: Vec<PlacedNode>,
    superblock: &Superblock,
    fresh: &mut NewBlocks<'_>,
) -> Result<FileAddr> {
    let shape = shape(superblock);
    let mut level = 0u8;
    loop {
        let mut shares: Vec<_> = Shares::of(&children, shape.most).collect();
        if shares.is_empty() {
            // A tree has a root though there be nothing in it.
            shares.push(&[]);
        }
        let places = shares.iter().map(|_| fresh.space().alloc(shape.node_len()));
        let places = places.collect::<Result<Vec<_>>>()?;
        let mut before = None;
        // The key before the first child is that behind the last one of the node to the left.
        let mut key = 0;
        let mut above = Vec::with_capacity(places.len());
        for (i, (share, addr)) in shares.into_iter().zip(&places).enumerate() {
            let after = places.get(i.saturating_add(1)).copied();
            let bytes = shape.encode(level, share.len(), [before, after], |writer| {
                writer.length(key)?;
                for child in share {
                    writer.addr(Some(child.addr))?.length(child.last)?;
                }
                Ok(())
            })?;
            fresh.put_at(*addr, bytes);
            before = Some(*addr);
            key = share.last().map_or(key, |child| child.last);
            above.push(PlacedNode { addr: *addr, last: key });
        }
        if let [root] = above.as_slice() {
            return Ok(root.addr);
        }
        children = above;
        let too_large = HdfError::TooLarge { structure: TABLE, value: u64::from(level) };
        level = level.checked_add(1).ok_or(too_large)?;
    }
}

/// What the nodes of the B-trees of a file's groups have in common.
pub(super) fn shape(superblock: &Superblock) -> NodeShape {
    NodeShape {
        node_type: NodeType::Group,
        sizes: superblock.sizes,
        key_len: usize::from(superblock.sizes.length),
        most: usize::from(superblock.group_internal_k).saturating_mul(2),
    }
}

/// A list in as few parts as have at most so many items each, which differ by one at most.
struct Shares<'a, T> {
    remaining: &'a [T],
    parts: usize,
}

impl<'a, T> Shares<'a, T> {
    fn of(all: &'a [T], most: usize) -> Shares<'a, T> {
        // The number of items in a node has two bytes.
        let most = most.clamp(1, usize::from(u16::MAX));
        Shares { remaining: all, parts: all.len().div_ceil(most) }
    }
}

impl<'a, T> Iterator for Shares<'a, T> {
    type Item = &'a [T];

    fn next(&mut self) -> Option<&'a [T]> {
        if self.parts == 0 {
            return None;
        }
        let (part, remaining) =
            self.remaining.split_at_checked(self.remaining.len().div_ceil(self.parts))?;
        self.parts = self.parts.saturating_sub(1);
        self.remaining = remaining;
        Some(part)
    }
}

fn unsupported(what: &'static str) -> HdfError {
    HdfError::Unsupported { structure: TABLE, at: 0, what }
}

/// A name or a path that ends where its NUL will be.
fn checked(name: &[u8]) -> Result<&[u8]> {
    if name.is_empty() {
        Err(unsupported("an empty name or path"))
    } else if name.contains(&0) {
        Err(unsupported("a name or path with a NUL in it"))
    } else {
        Ok(name)
    }
}

#[cfg(test)]
mod tests;
