//! An object: its header, and what the messages in it say.

use crate::local_heap::LocalHeap;
use crate::message::{
    Comment, DataLayout, Dataspace, Datatype, ExternalFilesMessage, FillValue, FilterDescription,
    ModificationTime, decode_filter_pipeline, decode_reference_count, kind,
};
use crate::object_header::{Message, ObjectHeader};
use crate::shared::{self, Body, SharedReference};
use crate::{File, FileAddr, HdfError, ReadAhead, Result};

/// What an object is, by the messages that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// A group.
    Group,
    /// A dataset.
    Dataset,
    /// A committed datatype.
    Datatype,
    /// None of these.
    Unknown,
}

/// An object of a file. Its parts are decoded when asked for.
#[derive(Clone, Debug)]
pub struct Object {
    header: ObjectHeader,
}

/// External files that have the bytes of a dataset, one piece after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalFileList {
    /// The pieces.
    pub slots: Vec<ExternalSlot>,
}

/// A piece of a dataset in another file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalSlot {
    /// Path of the file as it was given by the writer.
    pub name: Box<[u8]>,
    /// First byte in the file.
    pub offset: u64,
    /// Bytes; `u64::MAX` where there is no limit.
    pub len: u64,
}

impl File {
    /// The object whose header is at `addr`.
    ///
    /// # Errors
    /// Those of reading a header.
    pub fn object(&self, addr: FileAddr) -> Result<Object> {
        Ok(Object { header: ObjectHeader::read(self, addr)? })
    }

    /// The same for one of many objects, with what was read ahead for those before.
    ///
    /// # Errors
    /// As [`File::object`].
    pub fn object_ahead(&self, addr: FileAddr, ahead: &mut ReadAhead) -> Result<Object> {
        Ok(Object { header: ObjectHeader::read_ahead(self, addr, ahead)? })
    }
}

impl Object {
    /// Where its header is.
    #[must_use]
    pub fn addr(&self) -> FileAddr {
        self.header.addr
    }

    /// Its header.
    #[must_use]
    pub fn header(&self) -> &ObjectHeader {
        &self.header
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> ObjectKind {
        let mut found = ObjectKind::Unknown;
        for message in &self.header.messages {
            match message.kind {
                kind::DATA_LAYOUT => return ObjectKind::Dataset,
                kind::SYMBOL_TABLE | kind::LINK_INFO => found = ObjectKind::Group,
                kind::DATATYPE if found == ObjectKind::Unknown => found = ObjectKind::Datatype,
                _ => {}
            }
        }
        found
    }

    /// The type of a dataset's elements, or the type that was committed.
    ///
    /// # Errors
    /// [`HdfError::Missing`] for objects without one.
    pub fn datatype(&self, file: &File) -> Result<Datatype> {
        Datatype::decode(self.required(file, kind::DATATYPE)?.reader(file), file.limits())
    }

    /// The committed type that a dataset's type is, not decoded.
    ///
    /// # Errors
    /// Those of decoding the reference.
    pub fn committed_type(&self, file: &File) -> Result<Option<FileAddr>> {
        let message = self.header.find(kind::DATATYPE).filter(|message| message.is_shared());
        let Some(message) = message else { return Ok(None) };
        match SharedReference::decode(self.header.reader(file.sizes(), message))? {
            SharedReference::Committed(addr) => Ok(Some(addr)),
            SharedReference::Heap(_) => Ok(None),
        }
    }

    /// The shape of a dataset.
    ///
    /// # Errors
    /// [`HdfError::Missing`] for objects without one.
    pub fn dataspace(&self, file: &File) -> Result<Dataspace> {
        Dataspace::decode(self.required(file, kind::DATASPACE)?.reader(file), file.limits())
    }

    /// The fill value of a dataset; `None` where there is no message about it, as in files of the
    /// first libraries: then it is undefined, and elements that were never written read as zeros.
    ///
    /// # Errors
    /// Those of decoding the message.
    pub fn fill_value(&self, file: &File) -> Result<Option<FillValue>> {
        if let Some(body) = self.optional(file, kind::FILL_VALUE)? {
            return FillValue::decode(body.reader(file)).map(Some);
        }
        match self.optional(file, kind::OLD_FILL_VALUE)? {
            Some(body) => FillValue::decode_old(body.reader(file)).map(Some),
            None => Ok(None),
        }
    }

    /// Where a dataset's bytes are.
    ///
    /// # Errors
    /// [`HdfError::Missing`] for objects that are no datasets.
    pub fn layout(&self, file: &File) -> Result<DataLayout> {
        DataLayout::decode(self.required(file, kind::DATA_LAYOUT)?.reader(file), file.limits())
    }

    /// The filters of a chunked dataset in the order in which a writer applies them.
    ///
    /// # Errors
    /// Those of decoding the message.
    pub fn filters(&self, file: &File) -> Result<Vec<FilterDescription>> {
        match self.optional(file, kind::FILTER_PIPELINE)? {
            Some(body) => decode_filter_pipeline(body.reader(file), file.limits()),
            None => Ok(Vec::new()),
        }
    }

    /// The external files that hold a dataset's bytes.
    ///
    /// # Errors
    /// Also where a name is not in its heap.
    pub fn external_files(&self, file: &File) -> Result<Option<ExternalFileList>> {
        let Some(body) = self.optional(file, kind::EXTERNAL_FILES)? else { return Ok(None) };
        let message = ExternalFilesMessage::decode(body.reader(file))?;
        let heap = LocalHeap::read(file, message.heap)?;
        let mut slots = Vec::with_capacity(message.slots.len());
        for slot in message.slots {
            let name = heap.name(slot.name_offset)?.into();
            slots.push(ExternalSlot { name, offset: slot.offset, len: slot.len });
        }
        Ok(Some(ExternalFileList { slots }))
    }

    /// When it was modified, in seconds since 1970, where that was kept.
    ///
    /// # Errors
    /// Those of decoding the message.
    pub fn modification_time(&self, file: &File) -> Result<Option<i64>> {
        if let Some([_, modified, _, _]) = self.header.times {
            return Ok(Some(i64::from(modified)));
        }
        if let Some(body) = self.optional(file, kind::MODIFICATION_TIME)? {
            return Ok(Some(ModificationTime::decode(body.reader(file))?.seconds));
        }
        match self.optional(file, kind::OLD_MODIFICATION_TIME)? {
            Some(body) => Ok(Some(ModificationTime::decode_old(body.reader(file))?.seconds)),
            None => Ok(None),
        }
    }

    /// The comment on it.
    ///
    /// # Errors
    /// Those of decoding the message.
    pub fn comment(&self, file: &File) -> Result<Option<Box<[u8]>>> {
        match self.optional(file, kind::COMMENT)? {
            Some(body) => Ok(Some(Comment::decode(body.reader(file))?.0)),
            None => Ok(None),
        }
    }

    /// Number of hard links to it.
    ///
    /// # Errors
    /// Those of decoding the message.
    pub fn reference_count(&self, file: &File) -> Result<u32> {
        if let Some(count) = self.header.reference_count {
            return Ok(count);
        }
        match self.optional(file, kind::REFERENCE_COUNT)? {
            Some(body) => decode_reference_count(body.reader(file)),
            None => Ok(1),
        }
    }

    /// Whether the object keeps the creation order of its attributes.
    #[must_use]
    pub fn attribute_creation_order_tracked(&self) -> bool {
        self.header.attribute_order_tracked()
    }

    /// The body of one of its messages, a shared one followed to where it is.
    ///
    /// # Errors
    /// Those of following the reference.
    pub fn body(&self, file: &File, message: &Message) -> Result<Body<'_>> {
        shared::body(file, &self.header, message)
    }

    fn optional(&self, file: &File, kind: u16) -> Result<Option<Body<'_>>> {
        self.header.find(kind).map(|message| self.body(file, message)).transpose()
    }

    fn required(&self, file: &File, kind: u16) -> Result<Body<'_>> {
        let missing = || HdfError::Missing {
            structure: "object header",
            at: file.position(self.header.addr),
            what: kind::name(kind),
        };
        self.optional(file, kind)?.ok_or_else(missing)
    }
}
