//! Attributes of an object that has many or long ones, written: messages in a heap, with indexes
//! over it.

use super::{ATTRIBUTE, Attribute};
use crate::btree_v2::{self, record_type};
use crate::dense::{Messages, by_name, extents};
use crate::fractal_heap::{self, HeapParams};
use crate::message::AttributeInfo;
use crate::sohm::HEAP_ID_LEN;
use crate::{File, FileAddr, Fresh, HdfError, Result, Sizes, Writer};

/// The creation index of attributes in records where their object keeps none.
const NO_ORDER: u32 = 0xffff;

/// Message flags of an attribute that is in its object's own heap.
const FLAGS: u8 = 0;

/// Puts the attributes of an object into a heap of their own, with an index by name, and one by
/// creation order where `info` says that there is one.
///
/// Of `info`, what it says of creation order is kept, the next creation index growing where an
/// attribute has that or a later one; its addresses are replaced. No two attributes have one name.
///
/// # Errors
/// [`HdfError::Missing`] for an attribute without creation order of an object that tracks it;
/// [`HdfError::TooLarge`] where the next creation index would not fit into 16 bits; those of
/// [`Attribute::encode`] and of [`fractal_heap::build`].
pub fn write_dense(
    attributes: &[Attribute],
    info: &AttributeInfo,
    sizes: Sizes,
    fresh: &mut Fresh<'_>,
) -> Result<AttributeInfo> {
    let mut messages = Messages::new(ATTRIBUTE, sizes);
    for attribute in attributes {
        messages.push(|writer| attribute.encode(writer))?;
    }
    let heap = fractal_heap::build(&messages.all(), &HeapParams::ATTRIBUTES, sizes, fresh)?;
    let missing = HdfError::Missing { structure: ATTRIBUTE, at: 0, what: "the creation order" };
    let order = |attribute: &Attribute| match info.tracked {
        true => attribute.creation_order,
        false => Some(NO_ORDER),
    };
    let orders = attributes.iter().map(order).collect::<Option<Vec<u32>>>().ok_or(missing)?;

    let names: Vec<&[u8]> = attributes.iter().map(|attribute| &*attribute.name).collect();
    let order = by_name(&names);
    let mut names = Writer::new(ATTRIBUTE, sizes);
    for (hash, i) in order {
        let order = orders.get(i).copied().unwrap_or(NO_ORDER);
        names.put(heap.id(i)).u8(FLAGS).u32(order).u32(hash);
    }
    let record_len = u16::try_from(HEAP_ID_LEN).unwrap_or(u16::MAX).saturating_add(9);
    let kind = record_type::ATTRIBUTE_NAME;
    let names = btree_v2::build(kind, record_len, names.bytes(), sizes, fresh)?;

    let mut info = AttributeInfo {
        heap: Some(heap.addr()),
        name_index: Some(names),
        order_index: None,
        ..*info
    };
    if info.tracked {
        let next = orders.iter().max().map_or(0, |last| last.saturating_add(1));
        let too_large = HdfError::TooLarge { structure: ATTRIBUTE, value: next.into() };
        let next = u16::try_from(next).map_err(|_| too_large)?;
        info.max_creation_index = Some(info.max_creation_index.unwrap_or(0).max(next));
    }
    if info.indexed {
        let mut places: Vec<_> = orders.iter().zip(0usize..).collect();
        places.sort_unstable();
        let mut records = Writer::new(ATTRIBUTE, sizes);
        for (&order, i) in places {
            records.put(heap.id(i)).u8(FLAGS).u32(order);
        }
        let (kind, record_len) = (record_type::ATTRIBUTE_ORDER, record_len.saturating_sub(4));
        let tree = btree_v2::build(kind, record_len, records.bytes(), sizes, fresh)?;
        info.order_index = Some(tree);
    }
    Ok(info)
}

/// All that the heap of an object's attributes and the indexes over it take of the file; nothing
/// where attributes are in the header.
///
/// # Errors
/// Damage of these structures.
pub fn dense_extents(file: &File, info: &AttributeInfo) -> Result<Vec<(FileAddr, u64)>> {
    let names = (info.name_index, record_type::ATTRIBUTE_NAME);
    let orders = (info.order_index, record_type::ATTRIBUTE_ORDER);
    extents(file, info.heap, [names, orders])
}
