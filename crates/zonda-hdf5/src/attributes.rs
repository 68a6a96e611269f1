//! The attributes of an object, whichever way it stores them.
//! Spec: HDF5 File Format, "The Attribute Message", "The Attribute Info Message".
//! Few attributes are messages in the header; many are in a fractal heap with version 2 B-trees
//! over it ("dense"). Either may instead be in the heap of shared messages.
//! A list keeps attributes as the file has them, those in the header by a reference to its bytes,
//! and decodes one when it is asked for.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::btree_v2::{BtreeV2, record_type};
use crate::checksum::lookup3;
use crate::fractal_heap::FractalHeap;
use crate::message::{
    AttributeInfo, AttributeMessage, AttributeParts, Charset, Dataspace, Datatype, kind,
};
use crate::object_header::Message;
use crate::shared::SharedReference;
use crate::sohm::{self, HEAP_ID_LEN};
use crate::traversal_budget::TraversalBudget;
use crate::tuning::{DAMAGED_ATTRIBUTE_BYTES, DAMAGED_ATTRIBUTES_BYTES};
use crate::{File, FileAddr, HdfError, Object, Reader, Result, Sizes};

mod dense;
mod in_header;

pub use in_header::HeaderAttribute;

pub use dense::{DenseAttributes, DenseChange, NewAttribute, dense_extents, write_dense};

const ATTRIBUTE: &str = "attribute message";

const NO_ATTRIBUTE: HdfError =
    HdfError::Missing { structure: ATTRIBUTE, at: 0, what: "the attribute" };

/// Message flag: what is here is a reference to a message elsewhere.
const SHARED: u8 = 2;

/// A decoded attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Name.
    pub name: Box<[u8]>,
    /// Its character set.
    pub charset: Charset,
    /// Its rank in the order in which the object's attributes were made, where the object keeps
    /// that.
    pub creation_order: Option<u32>,
    /// Type of an element.
    pub datatype: Datatype,
    /// The committed type that it refers to.
    pub committed: Option<FileAddr>,
    /// Shape.
    pub dataspace: Dataspace,
    /// All elements in file form.
    pub data: Vec<u8>,
}

/// The attributes of an object, as the file has them.
///
/// In the order in which they were made where the object keeps that; otherwise in the order of the
/// header, or of the index of names, which is that of the names' hashes. This is the order in
/// which the HDF5 library gives them by creation.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    items: Vec<AttributeItem>,
}

/// One attribute.
#[derive(Clone, Debug)]
struct AttributeItem {
    /// Where the message is in `bytes`.
    start: u32,
    len: u32,
    /// Where the name is in the message.
    name: u8,
    name_len: u16,
    /// Where the elements are in the message.
    elements: u32,
    creation_order: Option<u32>,
    source: MessageSource,
}

/// The bytes of a message, or why there are none.
#[derive(Clone, Debug)]
enum MessageSource {
    /// In these bytes, which are at byte `at` of the file where they are a part of it.
    Bytes { bytes: Arc<[u8]>, at: u64 },
    /// Nowhere, because of this error.
    Damaged(Box<HdfError>),
}

impl AttributeItem {
    /// An item for a message of `len` bytes in `bytes`.
    fn new(
        bytes: Arc<[u8]>,
        start: usize,
        len: usize,
        at: u64,
        creation_order: Option<u32>,
        sizes: Sizes,
    ) -> AttributeItem {
        let message = start.checked_add(len).and_then(|end| bytes.get(start..end));
        let parts = Reader::new(ATTRIBUTE, message.unwrap_or_default(), at, sizes);
        let parts = match AttributeParts::decode(parts) {
            Ok(parts) => parts,
            Err(error) => return AttributeItem::damaged(error, creation_order),
        };
        // The name follows eight bytes, and its character set in version 3.
        let name = if parts.version == 3 { 9 } else { 8 };
        let elements = len.saturating_sub(parts.data.rest().len());
        let [Ok(start), Ok(len), Ok(elements)] = [start, len, elements].map(u32::try_from) else {
            let (structure, limit) = (ATTRIBUTE, u64::from(u32::MAX));
            let error = HdfError::Limit { structure, at, what: "bytes", limit };
            return AttributeItem::damaged(error, creation_order);
        };
        AttributeItem {
            start,
            len,
            name,
            name_len: u16::try_from(parts.name.len()).unwrap_or(u16::MAX),
            elements,
            creation_order,
            source: MessageSource::Bytes { bytes, at },
        }
    }

    /// An item for a message from a heap; `at` is for error messages.
    fn of_heap(
        message: Result<Vec<u8>>,
        at: u64,
        creation_order: Option<u32>,
        sizes: Sizes,
    ) -> AttributeItem {
        match message {
            Ok(message) => {
                let len = message.len();
                AttributeItem::new(message.into(), 0, len, at, creation_order, sizes)
            }
            Err(error) => AttributeItem::damaged(error, creation_order),
        }
    }

    fn damaged(error: HdfError, creation_order: Option<u32>) -> AttributeItem {
        let source = MessageSource::Damaged(Box::new(error));
        AttributeItem {
            start: 0,
            len: 0,
            name: 0,
            name_len: 0,
            elements: 0,
            creation_order,
            source,
        }
    }

    fn message(&self) -> &[u8] {
        let MessageSource::Bytes { bytes, .. } = &self.source else { return &[] };
        let (start, len) = (self.start as usize, self.len as usize);
        bytes.get(start..start.saturating_add(len)).unwrap_or_default()
    }

    fn name(&self) -> &[u8] {
        let (name, len) = (usize::from(self.name), usize::from(self.name_len));
        self.message().get(name..name.saturating_add(len)).unwrap_or_default()
    }

    fn decode_message(&self, file: &File) -> Result<AttributeMessage<'_>> {
        let at = match &self.source {
            MessageSource::Damaged(error) => return Err((**error).clone()),
            MessageSource::Bytes { at, .. } => *at,
        };
        let reader = Reader::new(ATTRIBUTE, self.message(), at, file.sizes());
        AttributeMessage::decode(file, reader)
    }

    fn decode(&self, file: &File) -> Result<Attribute> {
        let message = self.decode_message(file)?;
        Ok(Attribute {
            name: message.name.into(),
            charset: message.charset,
            creation_order: self.creation_order,
            datatype: message.datatype,
            committed: message.committed,
            dataspace: message.dataspace,
            data: message.data.to_vec(),
        })
    }
}

impl Attributes {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The name of one; empty where there is no such attribute, or where it is so damaged that its
    /// name cannot be read.
    #[must_use]
    pub fn name(&self, i: usize) -> &[u8] {
        self.items.get(i).map(AttributeItem::name).unwrap_or_default()
    }

    /// The rank of one in the order in which the object's attributes were made, where the object
    /// keeps that.
    #[must_use]
    pub fn creation_order(&self, i: usize) -> Option<u32> {
        self.items.get(i)?.creation_order
    }

    /// The elements of one in file form, for who knows its type and shape: as many as the message has bytes for, at least those of the
    /// shape if that could be decoded; none where there is no such attribute.
    #[must_use]
    pub fn elements(&self, i: usize) -> &[u8] {
        let Some(item) = self.items.get(i) else { return &[] };
        item.message().get(item.elements as usize..).unwrap_or_default()
    }

    /// Decodes one.
    ///
    /// # Errors
    /// Damage of this attribute, or of what it refers to; [`HdfError::Missing`] behind the last.
    pub fn decode(&self, i: usize, file: &File) -> Result<Attribute> {
        self.items.get(i).ok_or(NO_ATTRIBUTE)?.decode(file)
    }

    /// Decodes the message of one, whose elements stay where they are.
    ///
    /// # Errors
    /// As [`Attributes::decode`].
    pub fn message(&self, i: usize, file: &File) -> Result<AttributeMessage<'_>> {
        self.items.get(i).ok_or(NO_ATTRIBUTE)?.decode_message(file)
    }

    /// The type and shape of one, without a copy of its elements.
    ///
    /// # Errors
    /// As [`Attributes::decode`].
    pub fn describe(&self, i: usize, file: &File) -> Result<(Datatype, Dataspace)> {
        let message = self.message(i, file)?;
        Ok((message.datatype, message.dataspace))
    }

    /// Removes the attributes for whose number `keep` gives `false`. The others move up.
    pub fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let mut numbers = 0usize..;
        self.items.retain(|_| numbers.next().is_some_and(&mut keep));
        self.items.shrink_to_fit();
    }

    /// The number of the attribute with this name.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        if name.is_empty() {
            return None;
        }
        self.items.iter().position(|item| item.name() == name)
    }
}

/// Attributes outside of the header.
struct OpenDenseAttributes {
    /// The index by name.
    names: BtreeV2,
    messages: DenseMessages,
}

/// The heaps of attributes outside of the header.
struct DenseMessages {
    heap: FractalHeap,
    shared: SharedAttributes,
    budget: TraversalBudget,
    tracked: bool,
}

/// The heap of shared attributes, opened when the first is met.
struct SharedAttributes {
    heap: Option<FractalHeap>,
    budget: TraversalBudget,
}

/// Spends the bytes of a message of a list's budget.
fn spend(budget: &mut TraversalBudget, heap: FileAddr, message: &Result<Vec<u8>>) -> Result<()> {
    let cost = message.as_ref().map_or(DAMAGED_ATTRIBUTE_BYTES, |message| message.len() as u64);
    budget.spend(ATTRIBUTE, heap, cost)
}

/// A message, or why it is damaged. A request that failed says nothing of the message, so that nobody may keep it for damage.
fn no_failed_request(message: Result<Vec<u8>>) -> Result<Result<Vec<u8>>> {
    match message {
        Err(error) if error.is_remote() => Err(error),
        message => Ok(message),
    }
}

impl SharedAttributes {
    fn new(file: &File) -> SharedAttributes {
        SharedAttributes {
            heap: None,
            budget: TraversalBudget::of(file).and(DAMAGED_ATTRIBUTES_BYTES),
        }
    }

    /// The message of an id, or why it cannot be read.
    ///
    /// # Errors
    /// [`HdfError::Limit`] where all are longer together than the file.
    fn get(&mut self, file: &File, id: &[u8]) -> Result<Result<Vec<u8>>> {
        let opened = match self.heap.take() {
            Some(heap) => Ok(heap),
            None => sohm::heap(file, kind::ATTRIBUTE),
        };
        let heap = match opened {
            Ok(heap) => self.heap.insert(heap),
            Err(error) => {
                let message = no_failed_request(Err(error))?;
                spend(&mut self.budget, file.root(), &message)?;
                return Ok(message);
            }
        };
        let message = no_failed_request(heap.get(file, id))?;
        spend(&mut self.budget, heap.addr(), &message)?;
        Ok(message)
    }
}

/// A record of the index of names.
struct NameIndexRecord<'a> {
    id: &'a [u8],
    flags: u8,
    creation_order: u32,
    hash: u32,
}

impl OpenDenseAttributes {
    fn open(file: &File, info: &AttributeInfo, heap: FileAddr) -> Result<OpenDenseAttributes> {
        let names = info.name_index.ok_or(HdfError::Missing {
            structure: "attribute info message",
            at: file.position(heap),
            what: "the index of names",
        })?;
        crate::dense::fetch(file, heap, names, record_type::ATTRIBUTE_NAME)?;
        let names = BtreeV2::open(file, names, record_type::ATTRIBUTE_NAME)?;
        let heap = FractalHeap::open(file, heap)?;
        let budget = heap.budget(file).and(DAMAGED_ATTRIBUTES_BYTES);
        let shared = SharedAttributes::new(file);
        let messages = DenseMessages { heap, shared, budget, tracked: info.tracked };
        Ok(OpenDenseAttributes { names, messages })
    }
}

impl DenseMessages {
    /// The attribute that a record stands for.
    ///
    /// # Errors Only those after which no other attribute can be read either.
    fn item(&mut self, file: &File, record: &NameIndexRecord<'_>) -> Result<AttributeItem> {
        let message = if record.flags & SHARED == 0 {
            let message = no_failed_request(self.heap.get(file, record.id))?;
            spend(&mut self.budget, self.heap.addr(), &message)?;
            message
        } else {
            self.shared.get(file, record.id)?
        };
        let creation_order = self.tracked.then_some(record.creation_order);
        // Blocks may be filtered, so the bytes need not be anywhere in the file.
        Ok(AttributeItem::of_heap(message, self.heap.addr().0, creation_order, file.sizes()))
    }
}

impl<'a> NameIndexRecord<'a> {
    fn decode(mut reader: Reader<'a>) -> Result<NameIndexRecord<'a>> {
        Ok(NameIndexRecord {
            id: reader.take(HEAP_ID_LEN)?,
            flags: reader.u8()?,
            creation_order: reader.u32()?,
            hash: reader.u32()?,
        })
    }
}

impl Object {
    /// What the header says of attributes outside of it.
    fn attribute_info(&self, file: &File) -> Result<Option<AttributeInfo>> {
        // The HDF5 library, too, looks for this message in new headers only.
        let message = self.header().find(kind::ATTRIBUTE_INFO);
        let Some(message) = message.filter(|_| self.header().version > 1) else { return Ok(None) };
        AttributeInfo::decode(self.body(file, message)?.reader(file)).map(Some)
    }

    /// Whether attributes are outside of the header.
    fn has_dense_attributes(&self, file: &File) -> Result<bool> {
        Ok(self.attribute_info(file)?.is_some_and(|info| info.heap.is_some()))
    }

    /// Where attributes are outside of the header; `None` where they are in it.
    fn dense_attributes(&self, file: &File) -> Result<Option<OpenDenseAttributes>> {
        let Some(info) = self.attribute_info(file)? else { return Ok(None) };
        info.heap.map(|heap| OpenDenseAttributes::open(file, &info, heap)).transpose()
    }

    /// The attribute of a message in the header.
    ///
    /// # Errors Only those after which no other attribute can be read either.
    fn attribute_item(
        &self,
        file: &File,
        message: &Message,
        shared: &mut SharedAttributes,
    ) -> Result<AttributeItem> {
        let creation_order = message.creation_order.map(u32::from);
        let sizes = file.sizes();
        if message.is_shared() {
            let reader = self.header().reader(sizes, message);
            let body = match SharedReference::decode(reader) {
                Ok(SharedReference::Heap(id)) => shared.get(file, &id)?,
                // Other headers hold committed types, which are no attributes.
                Ok(SharedReference::Committed(addr)) => {
                    Err(reader.bad("the object of a shared attribute", addr.0))
                }
                Err(error) => Err(error),
            };
            return Ok(AttributeItem::of_heap(body, message.at, creation_order, sizes));
        }
        let (start, len) = (message.start as usize, message.len as usize);
        let bytes = self.header().bytes.clone();
        Ok(AttributeItem::new(bytes, start, len, message.at, creation_order, sizes))
    }

    /// All attributes of an object.
    ///
    /// A damaged attribute stays in the list, and decoding it gives the error.
    ///
    /// # Errors
    /// Damage of the index.
    pub fn attributes(&self, file: &File) -> Result<Attributes> {
        let mut items = Vec::new();
        match self.dense_attributes(file)? {
            None => {
                let mut shared = SharedAttributes::new(file);
                items.reserve_exact(self.header().all(kind::ATTRIBUTE).count());
                for message in self.header().all(kind::ATTRIBUTE) {
                    items.push(self.attribute_item(file, message, &mut shared)?);
                }
            }
            Some(OpenDenseAttributes { names, mut messages }) => {
                names.walk(file, &mut |record| {
                    let record = NameIndexRecord::decode(names.reader(file, record))?;
                    items.push(messages.item(file, &record)?);
                    Ok(true)
                })?;
            }
        }
        // The sort keeps the order of those that have no rank.
        zonda_runtime::sort::sort_by_key(&mut items, |item| item.creation_order);
        items.shrink_to_fit();
        Ok(Attributes { items })
    }

    /// The attribute of this name, found without listing the others.
    ///
    /// # Errors
    /// Damage on the way to it, and of itself.
    pub fn attribute(&self, file: &File, name: &[u8]) -> Result<Option<Attribute>> {
        if name.is_empty() {
            return Ok(None);
        }
        let Some(OpenDenseAttributes { names, mut messages }) = self.dense_attributes(file)? else {
            let mut shared = SharedAttributes::new(file);
            for message in self.header().all(kind::ATTRIBUTE) {
                let item = self.attribute_item(file, message, &mut shared)?;
                if item.name() == name {
                    return item.decode(file).map(Some);
                }
            }
            return Ok(None);
        };
        let hash = lookup3(name, 0);
        let mut found = None;
        names.find(file, &mut |record| {
            let record = NameIndexRecord::decode(names.reader(file, record))?;
            if record.hash != hash {
                return Ok(record.hash.cmp(&hash));
            }
            let item = messages.item(file, &record)?;
            if let MessageSource::Damaged(error) = item.source {
                return Err(*error);
            }
            let order = item.name().cmp(name);
            if order == Ordering::Equal {
                found = Some(item);
            }
            Ok(order)
        })?;
        found.map(|item| item.decode(file)).transpose()
    }
}

#[cfg(test)]
mod tests;
