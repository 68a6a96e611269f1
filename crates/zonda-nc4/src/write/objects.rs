//! Objects as the file has them: where their blocks are, and which messages of their headers stay as they are.

use std::sync::Arc;

use zonda_hdf5::attributes::DenseAttributes;
use zonda_hdf5::message::{AttributeInfo, LinkInfo, SymbolTableMessage, kind};
use zonda_hdf5::object_header::{HeaderSpace, HeaderStyle, NewMessage};
use zonda_hdf5::symbol_table::symbol_table_extents;
use zonda_hdf5::{Attribute, File, FileAddr, Object, attributes, links};

use super::att_list::AttListStamp;
use crate::fault::{Fault, HdfResult, Outcome};
use crate::files::ObjectAt;
use crate::hidden_atts;

/// An attribute message with its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AttMessage {
    pub(super) name: Box<[u8]>,
    pub(super) body: Arc<[u8]>,
}

/// A block of a header that was written; it is written again only if it differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeaderBlock {
    pub(super) addr: FileAddr,
    pub(super) bytes: Box<[u8]>,
}

impl HeaderBlock {
    /// Where it is, and the bytes that it may have there.
    pub(super) fn extent(&self) -> (FileAddr, u64) {
        (self.addr, HeaderBlock::room(self.bytes.len() as u64))
    }

    /// The space that a block of `len` bytes gets: up to a quarter more, in steps, so that one that grows
    /// from commit to commit fits where it was two commits ago.
    pub(super) fn room(len: u64) -> u64 {
        let step = len.checked_next_power_of_two().unwrap_or(len) / 8;
        if len < 1024 { len } else { len.checked_next_multiple_of(step).unwrap_or(len) }
    }
}

/// Attributes or links outside of a header.
#[derive(Clone, Debug)]
pub(crate) struct Dense {
    /// Hash of the attributes or links; `None` if they were not written since the file was opened.
    pub(super) hash: Option<u64>,
    pub(super) what: Outside,
    /// The space it takes, where `list` does not say that.
    pub(super) extents: Vec<(FileAddr, u64)>,
    /// Attributes that were written since the file was opened: the next commit can change them where they are.
    pub(super) list: Option<DenseList>,
}

/// The attributes of an object outside of its header, as a commit laid them out.
#[derive(Clone, Debug)]
pub(crate) struct DenseList {
    pub(super) stamp: AttListStamp,
    pub(super) atts: Arc<DenseAttributes>,
}

impl Dense {
    /// The space it takes.
    pub(super) fn extents(&self) -> Vec<(FileAddr, u64)> {
        self.list.as_ref().map_or_else(|| self.extents.clone(), |list| list.atts.extents())
    }

    /// Whether it is the same list, or one that was made of it by changes in place.
    pub(super) fn goes_on_from(&self, before: &Dense) -> bool {
        match (&self.what, &before.what) {
            (Outside::Attributes(now), Outside::Attributes(before)) => now.heap == before.heap,
            (now, before) => now == before,
        }
    }
}

/// The message of a header about attributes or links that are outside of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outside {
    Attributes(AttributeInfo),
    Links(LinkInfo),
    /// Links of a group of the old style.
    Symbols(SymbolTableMessage),
}

/// An object as the file has it.
#[derive(Clone, Debug)]
pub(crate) struct StoredObject {
    /// Its first block.
    pub(super) space: HeaderSpace,
    /// The bytes of that block; none if it was not written since the file was opened.
    pub(super) first: Box<[u8]>,
    pub(super) style: HeaderStyle,
    /// Its messages but attributes, links, and the messages about these.
    pub(super) messages: Vec<NewMessage>,
    /// The message about its links, if it is a group that was in the file when it was opened.
    pub(super) link_info: Option<LinkInfo>,
    /// It is a group of the old style, whose links are a symbol table.
    pub(super) has_symbols: bool,
    /// Attributes that netCDF does not show.
    pub(super) hidden: Vec<AttMessage>,
    /// The second block of the header, if it was written since the file was opened.
    pub(super) continuation: Option<HeaderBlock>,
    /// Attributes and links that are outside of the header.
    pub(super) dense: Vec<Dense>,
    /// Other blocks that were there when the file was opened.
    pub(super) others: Vec<(FileAddr, u64)>,
}

/// Flag of messages whose body says where the message is.
pub(super) const SHARED: u8 = 2;

/// A place that is yet to be found.
const NO_SPACE: HeaderSpace = HeaderSpace { addr: FileAddr(0), len: 0 };

impl StoredObject {
    /// Reads an object that was in the file when it was opened.
    pub(super) fn load(file: &File, at: ObjectAt) -> Outcome<StoredObject> {
        if at.file != 0 {
            return Err(Fault::Unwritable("it is in another file"));
        }
        let object = file.object(at.addr)?;
        let header = object.header();
        let sizes = file.sizes();
        let mut messages = Vec::new();
        for message in &header.messages {
            match message.kind {
                kind::NIL
                | kind::CONTINUATION
                | kind::ATTRIBUTE
                | kind::LINK
                | kind::LINK_INFO
                | kind::SYMBOL_TABLE
                | kind::ATTRIBUTE_INFO => {}
                _ if message.fails_writers_if_unknown() && message.kind > kind::CACHE_IMAGE => {
                    return Err(Fault::Unwritable(
                        "its header has a message of an unknown type that forbids changes",
                    ));
                }
                _ => messages.push(header.carry(message)),
            }
        }
        let info = header.find(kind::LINK_INFO);
        let info = info.map(|message| LinkInfo::decode(header.reader(sizes, message)));
        let link_info = info.transpose()?;
        Ok(StoredObject {
            space: header.space(),
            first: Box::default(),
            style: header.style(),
            messages,
            link_info,
            has_symbols: header.find(kind::SYMBOL_TABLE).is_some(),
            hidden: hidden_attributes(file, &object)?,
            continuation: None,
            dense: outside(file, &object)?,
            others: header.continuations(sizes).collect(),
        })
    }

    /// A new object with these messages, and without a place.
    pub(super) fn new(style: HeaderStyle, messages: Vec<NewMessage>) -> StoredObject {
        StoredObject {
            space: NO_SPACE,
            first: Box::default(),
            style,
            messages,
            link_info: None,
            has_symbols: false,
            hidden: Vec::new(),
            continuation: None,
            dense: Vec::new(),
            others: Vec::new(),
        }
    }

    /// Gives its place up; the commit finds another one.
    pub(super) fn move_away(&mut self) {
        let HeaderSpace { addr, len } = std::mem::replace(&mut self.space, NO_SPACE);
        self.first = Box::default();
        self.others.push((addr, len));
    }

    /// The message about the links of a group, without the place of these.
    pub(super) fn link_info(&self) -> LinkInfo {
        let nowhere = LinkInfo {
            tracked: true,
            indexed: true,
            max_creation_index: None,
            heap: None,
            name_index: None,
            order_index: None,
        };
        match self.link_info {
            Some(LinkInfo { tracked, indexed, .. }) => LinkInfo { tracked, indexed, ..nowhere },
            None => nowhere,
        }
    }

    /// Sets an attribute that netCDF does not show, or removes it.
    pub(super) fn hide(&mut self, name: &[u8], att: Option<AttMessage>) {
        let at = self.hidden.iter().position(|hidden| *hidden.name == *name);
        match (at, att) {
            (Some(at), Some(att)) => {
                if let Some(place) = self.hidden.get_mut(at) {
                    *place = att;
                }
            }
            (None, Some(att)) => self.hidden.push(att),
            (Some(at), None) => {
                self.hidden.remove(at);
            }
            (None, None) => {}
        }
    }

    /// All space it takes.
    pub(super) fn extents(&self) -> Vec<(FileAddr, u64)> {
        let mut out = vec![(self.space.addr, self.space.len)];
        out.extend(self.continuation.iter().map(HeaderBlock::extent));
        out.extend(self.dense.iter().flat_map(Dense::extents));
        out.extend(&self.others);
        out
    }

    /// Whether it has the attribute with this name, which netCDF does not show.
    pub(super) fn says(&self, name: &[u8]) -> bool {
        self.hidden.iter().any(|att| *att.name == *name)
    }

    /// Whether it has several names, not all of which need be known.
    pub(super) fn has_several_links(&self) -> bool {
        self.style.reference_count > 1
            || self.messages.iter().any(|message| message.kind == kind::REFERENCE_COUNT)
    }

    /// The attributes outside of the header, if a commit can write changes of them alone.
    pub(super) fn att_list(&self) -> Option<&DenseList> {
        self.dense.iter().find_map(|dense| dense.list.as_ref())
    }

    /// The first message of a type, attributes and links excepted.
    pub(super) fn message(&self, kind: u16) -> Option<&NewMessage> {
        self.messages.iter().find(|message| message.kind == kind)
    }

    /// Replaces the only message of its type. If it was shared with other objects, this object then has one of its
    /// own.
    pub(super) fn replace(&mut self, new: NewMessage) {
        match self.messages.iter_mut().find(|message| message.kind == new.kind) {
            Some(message) => {
                message.body = new.body;
                message.flags &= !SHARED;
            }
            None => self.messages.push(new),
        }
    }
}

/// Attributes that netCDF does not show, as messages.
fn hidden_attributes(file: &File, object: &Object) -> HdfResult<Vec<AttMessage>> {
    let attributes = object.attributes(file)?;
    let mut out = Vec::new();
    for index in 0..attributes.len() {
        if hidden_atts::is_reserved(attributes.name(index)) {
            let attribute = attributes.decode(index, file)?;
            out.push(AttMessage::new(file, &attribute)?);
        }
    }
    Ok(out)
}

impl AttMessage {
    pub(super) fn new(file: &File, attribute: &Attribute) -> HdfResult<AttMessage> {
        let mut writer = zonda_hdf5::Writer::scratch("attribute message", file.sizes());
        attribute.encode(&mut writer)?;
        Ok(AttMessage { name: attribute.name.clone(), body: writer.finish_shared() })
    }

    /// The same attribute with other elements at the end of its message.
    pub(super) fn with_data(&self, data: &[u8]) -> AttMessage {
        let mut body = Arc::<[u8]>::from(&*self.body);
        let at = body.len().saturating_sub(data.len());
        let place = Arc::get_mut(&mut body).and_then(|body| body.get_mut(at..));
        if let Some(place) = place.filter(|place| place.len() == data.len()) {
            place.copy_from_slice(data);
        }
        AttMessage { name: self.name.clone(), body }
    }
}

/// The attributes and links of an object that are outside of its header.
fn outside(file: &File, object: &Object) -> HdfResult<Vec<Dense>> {
    let header = object.header();
    let reader = |kind| header.find(kind).map(|message| header.reader(file.sizes(), message));
    let mut out = Vec::new();
    if let Some(reader) = reader(kind::ATTRIBUTE_INFO) {
        let info = AttributeInfo::decode(reader)?;
        let extents = attributes::dense_extents(file, &info)?;
        out.push(Dense { hash: None, what: Outside::Attributes(info), extents, list: None });
    }
    if let Some(reader) = reader(kind::LINK_INFO) {
        let info = LinkInfo::decode(reader)?;
        let extents = links::dense_extents(file, &info)?;
        out.push(Dense { hash: None, what: Outside::Links(info), extents, list: None });
    }
    if let Some(reader) = reader(kind::SYMBOL_TABLE) {
        let table = SymbolTableMessage::decode(reader)?;
        let extents = symbol_table_extents(file, &table)?;
        out.push(Dense { hash: None, what: Outside::Symbols(table), extents, list: None });
    }
    // Lists without space of their own are in the header.
    out.retain(|dense| !dense.extents.is_empty());
    Ok(out)
}
