//! The links of a group that has many are written: messages in a heap, with indexes over it.

use super::GROUP;
use crate::btree_v2::{self, record_type};
use crate::dense::{EncodedMessages, by_name, extents};
use crate::fractal_heap::{self, HeapParams};
use crate::message::{Link, LinkInfo};
use crate::{File, FileAddr, HdfError, NewBlocks, Result, Sizes, Writer};

/// Bytes of an id in the heap of a group.
const ID_LEN: u16 = 7;

/// Puts the links of a group into a heap of their own, with an index by name, and one by creation
/// order where `info` says that there is one.
///
/// The result keeps what `info` says of creation order, and gets new addresses. The next creation
/// index grows where a link has that or a later one. No two links may have one name.
///
/// # Errors
/// [`HdfError::Missing`] for a link without creation order in a group that tracks it; those of
/// [`Link::encode`] and of [`fractal_heap::build`].
pub fn write_dense(
    links: &[Link],
    info: &LinkInfo,
    sizes: Sizes,
    fresh: &mut NewBlocks<'_>,
) -> Result<LinkInfo> {
    let mut messages = EncodedMessages::new(GROUP, sizes);
    for link in links {
        messages.push(|writer| link.encode(writer))?;
    }
    let heap = fractal_heap::build(&messages.all(), &HeapParams::LINKS, sizes, fresh)?;

    let names: Vec<&[u8]> = links.iter().map(|link| &*link.name).collect();
    let order = by_name(&names);
    let mut names = Writer::new(GROUP, sizes);
    for (hash, i) in order {
        names.u32(hash).put(heap.id(i));
    }
    let record_len = ID_LEN.saturating_add(4);
    let names = btree_v2::build(record_type::LINK_NAME, record_len, names.bytes(), sizes, fresh)?;

    let mut info =
        LinkInfo { heap: Some(heap.addr()), name_index: Some(names), order_index: None, ..*info };
    if !info.tracked {
        return Ok(info);
    }
    let missing = HdfError::Missing { structure: GROUP, at: 0, what: "the order of a link" };
    let order = |(i, link): (usize, &Link)| Some((link.creation_order?, i));
    let orders = links.iter().enumerate().map(order).collect::<Option<Vec<_>>>();
    let mut orders = orders.ok_or(missing)?;
    zonda_runtime::sort::sort(&mut orders);
    let next = orders.last().map_or(0, |(last, _)| last.saturating_add(1));
    info.max_creation_index = Some(info.max_creation_index.unwrap_or(0).max(next));
    if info.indexed {
        let mut records = Writer::new(GROUP, sizes);
        for (order, i) in orders {
            records.put(&order.to_le_bytes()).put(heap.id(i));
        }
        let (kind, record_len) = (record_type::LINK_ORDER, ID_LEN.saturating_add(8));
        let tree = btree_v2::build(kind, record_len, records.bytes(), sizes, fresh)?;
        info.order_index = Some(tree);
    }
    Ok(info)
}

/// The extents of the heap of a group's links and of the indexes over it; none where links are in
/// the header.
///
/// # Errors
/// Damage of these structures.
pub fn dense_extents(file: &File, info: &LinkInfo) -> Result<Vec<(FileAddr, u64)>> {
    let names = (info.name_index, record_type::LINK_NAME);
    let orders = (info.order_index, record_type::LINK_ORDER);
    extents(file, info.heap, [names, orders])
}
