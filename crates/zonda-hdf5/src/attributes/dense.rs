//! Attributes of an object that has many or long ones, written: messages in a heap, with indexes
//! over it.
//!
//! Such a list is written whole first. Later, only changes are written: new messages to the end of
//! the heap, new nodes of the indexes and their headers to new addresses. The header of the heap is
//! the exception, since all blocks of the heap have its address: it is written over, within one
//! sector, when all else is in the file, and before the object's header has the addresses of the
//! new indexes. In between, the old indexes find all that they found before: the objects of a heap
//! keep their bytes, even those of removed attributes. Removed attributes still count as objects of
//! the heap, until [`DenseAttributes::can_take`] says no and the list is written anew.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{ATTRIBUTE, Attribute};
use crate::btree_v2::{RecordTree, TreeRecord, record_type};
use crate::checksum::lookup3;
use crate::dense::{EncodedMessages, by_name, extents};
use crate::fractal_heap::{GrowingHeap, HeapParams};
use crate::message::AttributeInfo;
use crate::sohm::HEAP_ID_LEN;
use crate::tuning::{REMOVED_ATTRIBUTES_BYTES, REMOVED_ATTRIBUTES_DIVISOR};
use crate::{File, FileAddr, FileRange, HdfError, NewBlocks, Result, Sizes, Writer};

/// The creation index of attributes in records where their object keeps none.
const NO_ORDER: u32 = 0xffff;

/// Message flags of an attribute that is in its object's own heap.
const FLAGS: u8 = 0;

/// Bytes of records of the indexes by name and by creation order.
const NAME_LEN: u16 = 17;
const ORDER_LEN: u16 = 13;

/// An id in the heap.
type HeapObjectId = [u8; HEAP_ID_LEN];

/// A record of the index by name.
#[derive(Clone, Debug)]
struct AttributeNameRecord {
    id: HeapObjectId,
    order: u32,
    hash: u32,
    name: Arc<[u8]>,
    /// Bytes of the message.
    len: u64,
}

impl AttributeNameRecord {
    fn stands(&self, hash: u32, name: &[u8]) -> Ordering {
        self.hash.cmp(&hash).then_with(|| (*self.name).cmp(name))
    }
}

impl TreeRecord for AttributeNameRecord {
    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.put(&self.id).u8(FLAGS).u32(self.order).u32(self.hash);
        Ok(())
    }
}

/// A record of the index by creation order.
#[derive(Clone, Debug)]
struct OrderRecord {
    id: HeapObjectId,
    order: u32,
}

impl TreeRecord for OrderRecord {
    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.put(&self.id).u8(FLAGS).u32(self.order);
        Ok(())
    }
}

/// An attribute to be put into a list.
#[derive(Clone, Copy, Debug)]
pub struct NewAttribute<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Its message.
    pub message: &'a [u8],
    /// Its creation index; `None` where the object keeps no order.
    pub order: Option<u32>,
}

/// The changes of a list, which are to be written.
#[derive(Clone, Debug, Default)]
pub struct DenseChange {
    /// The address and the new bytes of the heap's header, which lies within one sector. To be
    /// written when all that is new is in the file, and before the object's header. `None` for a
    /// new list.
    pub heap_header: Option<(FileAddr, Vec<u8>)>,
    /// Space that nothing refers to when the object's header is in the file.
    pub freed: Vec<(FileAddr, u64)>,
}

/// The attributes of an object in a heap of their own, with an index by name, and one by creation order
/// where the object has one. Copies share what is the same in both.
#[derive(Clone, Debug)]
pub struct DenseAttributes {
    info: AttributeInfo,
    sizes: Sizes,
    heap: GrowingHeap,
    names: RecordTree<AttributeNameRecord>,
    orders: Option<RecordTree<OrderRecord>>,
    /// The next creation index.
    next: u32,
    /// Bytes of messages, and bytes in the heap of messages that were removed.
    live: u64,
    dead: u64,
}

impl DenseAttributes {
    /// A list of these attributes, of which no two have one name. Of `info`, what it says of creation
    /// order is kept, the next creation index growing where an attribute has that or a later one.
    ///
    /// # Errors
    /// [`HdfError::Missing`] for an attribute without creation order of an object that tracks it;
    /// [`HdfError::TooLarge`] where the next creation index would not fit into 16 bits, and for more
    /// than heap, indexes or file can hold.
    pub fn new(
        attributes: &[NewAttribute<'_>],
        info: &AttributeInfo,
        sizes: Sizes,
        fresh: &mut NewBlocks<'_>,
    ) -> Result<DenseAttributes> {
        let mut heap = GrowingHeap::new(&HeapParams::ATTRIBUTES, sizes, fresh)?;
        let mut next = u32::from(info.max_creation_index.unwrap_or(0));
        let (mut ids, mut live) = (Vec::with_capacity(attributes.len()), 0u64);
        for attribute in attributes {
            let missing =
                HdfError::Missing { structure: ATTRIBUTE, at: 0, what: "the creation order" };
            let order = if info.tracked { attribute.order } else { Some(NO_ORDER) };
            let order = order.ok_or(missing)?;
            next = next.max(order.saturating_add(1));
            live = live.saturating_add(attribute.message.len() as u64);
            ids.push(OrderRecord { id: put(&mut heap, attribute.message, sizes, fresh)?, order });
        }
        let all: Vec<&[u8]> = attributes.iter().map(|attribute| attribute.name).collect();
        let named = |(hash, i): (u32, usize)| {
            let (attribute, OrderRecord { id, order }) = (attributes.get(i)?, ids.get(i)?);
            let (name, len) = (attribute.name.into(), attribute.message.len() as u64);
            Some(AttributeNameRecord { id: *id, order: *order, hash, name, len })
        };
        let named = by_name(&all).into_iter().filter_map(named).collect();
        let names = RecordTree::of(record_type::ATTRIBUTE_NAME, NAME_LEN, sizes, named)?;
        let mut orders = None;
        if info.indexed {
            zonda_runtime::sort::sort_by_key(&mut ids, |record| record.order);
            orders = Some(RecordTree::of(record_type::ATTRIBUTE_ORDER, ORDER_LEN, sizes, ids)?);
        }
        let mut list =
            DenseAttributes { info: *info, sizes, heap, names, orders, next, live, dead: 0 };
        let _all_is_new = list.write(fresh)?;
        Ok(list)
    }

    /// Where it is, for the header of the object.
    #[must_use]
    pub fn info(&self) -> &AttributeInfo {
        &self.info
    }

    /// How many attributes there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.names.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.len() == 0
    }

    /// Whether `n` attributes may be added or changed: there are creation indexes for them, and
    /// removed attributes have few bytes beside the others. Else the list is to be written anew,
    /// which costs no more than what was put since it was written.
    #[must_use]
    pub fn can_take(&self, n: usize) -> bool {
        let next = u64::from(self.next).saturating_add(n as u64);
        let has_orders = !self.info.tracked || next <= u64::from(u16::MAX);
        has_orders
            && self.dead <= REMOVED_ATTRIBUTES_BYTES.max(self.live / REMOVED_ATTRIBUTES_DIVISOR)
    }

    /// Whether the heap has removed attributes.
    #[must_use]
    pub fn has_dead(&self) -> bool {
        self.dead > 0
    }

    /// Puts an attribute. It replaces one of its name: it takes the place of that in the order if
    /// `stays_in_place`, else the last one.
    ///
    /// # Errors
    /// As [`DenseAttributes::new`].
    pub fn set(
        &mut self,
        name: &[u8],
        message: &[u8],
        stays_in_place: bool,
        fresh: &mut NewBlocks<'_>,
    ) -> Result<()> {
        let before = self.take(name);
        let id = put(&mut self.heap, message, self.sizes, fresh)?;
        let len = message.len() as u64;
        self.live = self.live.saturating_add(len);
        let order = match before {
            _ if !self.info.tracked => NO_ORDER,
            Some(order) if stays_in_place => order,
            _ => {
                let order = self.next;
                self.next = order.saturating_add(1);
                order
            }
        };
        let hash = lookup3(name, 0);
        let record = AttributeNameRecord { id, order, hash, name: name.into(), len };
        self.names.insert(record, &|other| other.stands(hash, name))?;
        if let Some(orders) = &mut self.orders {
            orders.insert(OrderRecord { id, order }, &|other| other.order.cmp(&order))?;
        }
        Ok(())
    }

    /// Removes an attribute from the list, if it is there.
    pub fn remove(&mut self, name: &[u8]) {
        let _order = self.take(name);
    }

    /// Removes an attribute from the indexes, and gives its creation index.
    fn take(&mut self, name: &[u8]) -> Option<u32> {
        let hash = lookup3(name, 0);
        let AttributeNameRecord { order, len, .. } =
            self.names.remove(&|other| other.stands(hash, name))?;
        if let Some(orders) = &mut self.orders {
            orders.remove(&|other| other.order.cmp(&order));
        }
        (self.live, self.dead) = (self.live.saturating_sub(len), self.dead.saturating_add(len));
        Some(order)
    }

    /// Gives what changed to `fresh`, at new addresses.
    ///
    /// # Errors
    /// As [`DenseAttributes::new`].
    pub fn write(&mut self, fresh: &mut NewBlocks<'_>) -> Result<DenseChange> {
        let mut freed = Vec::new();
        let heap_header = self.heap.write(fresh, &mut freed)?;
        self.info.heap = Some(self.heap.addr());
        self.info.name_index = Some(self.names.write(fresh, &mut freed)?);
        let orders = self.orders.as_mut().map(|orders| orders.write(fresh, &mut freed));
        self.info.order_index = orders.transpose()?;
        if self.info.tracked {
            let too_large = HdfError::TooLarge { structure: ATTRIBUTE, value: self.next.into() };
            self.info.max_creation_index = Some(u16::try_from(self.next).map_err(|_| too_large)?);
        }
        Ok(DenseChange { heap_header, freed })
    }

    /// The extents of the heap and of the indexes.
    #[must_use]
    pub fn extents(&self) -> Vec<(FileAddr, u64)> {
        let mut out: Vec<FileRange> = Vec::new();
        self.heap.extents(&mut out);
        self.names.extents(&mut out);
        if let Some(orders) = &self.orders {
            orders.extents(&mut out);
        }
        out
    }
}

/// Puts a message into the heap, and gives its id.
fn put(
    heap: &mut GrowingHeap,
    message: &[u8],
    sizes: Sizes,
    fresh: &mut NewBlocks<'_>,
) -> Result<HeapObjectId> {
    let mut id = Writer::with_room(ATTRIBUTE, sizes, HEAP_ID_LEN);
    heap.put(message, &mut id, fresh)?;
    let too_long = HdfError::TooLarge { structure: ATTRIBUTE, value: id.len() as u64 };
    id.bytes().try_into().map_err(|_| too_long)
}

/// Puts the attributes of an object into a heap of their own, as [`DenseAttributes::new`] does, and
/// gives its address and those of its indexes.
///
/// # Errors
/// Those of [`DenseAttributes::new`] and of [`Attribute::encode`].
pub fn write_dense(
    attributes: &[Attribute],
    info: &AttributeInfo,
    sizes: Sizes,
    fresh: &mut NewBlocks<'_>,
) -> Result<AttributeInfo> {
    let mut messages = EncodedMessages::new(ATTRIBUTE, sizes);
    for attribute in attributes {
        messages.push(|writer| attribute.encode(writer))?;
    }
    let new = attributes.iter().zip(messages.all()).map(|(attribute, message)| NewAttribute {
        name: &attribute.name,
        message,
        order: attribute.creation_order,
    });
    let new: Vec<_> = new.collect();
    Ok(DenseAttributes::new(&new, info, sizes, fresh)?.info)
}

/// The extents of the heap of an object's attributes and of the indexes over it; none where
/// attributes are in the header.
///
/// # Errors
/// Damage of these structures.
pub fn dense_extents(file: &File, info: &AttributeInfo) -> Result<Vec<(FileAddr, u64)>> {
    let names = (info.name_index, record_type::ATTRIBUTE_NAME);
    let orders = (info.order_index, record_type::ATTRIBUTE_ORDER);
    extents(file, info.heap, [names, orders])
}

#[cfg(test)]
mod tests;
