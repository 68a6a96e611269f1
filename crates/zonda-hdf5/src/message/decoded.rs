//! Any message, by its type.

use super::{
    AttributeInfo, AttributeParts, CacheImageMessage, Comment, DataLayout, Dataspace, Datatype,
    ExternalFilesMessage, FileSpaceInfo, FillValue, FilterDescription, GroupInfo, KValues, Link,
    LinkInfo, ModificationTime, SharedMessageTable, SymbolTableMessage, decode_driver_info,
    decode_filter_pipeline, decode_reference_count, kind,
};
use crate::superblock::DriverInfo;
use crate::{FileAddr, Limits, Reader, Result};

/// What a message says.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each is what its name says")]
pub enum Decoded<'a> {
    Nil,
    Dataspace(Dataspace),
    LinkInfo(LinkInfo),
    Datatype(Datatype),
    FillValue(FillValue),
    Link(Link),
    ExternalFiles(ExternalFilesMessage),
    DataLayout(DataLayout),
    GroupInfo(GroupInfo),
    FilterPipeline(Vec<FilterDescription>),
    Attribute(AttributeParts<'a>),
    Comment(Comment),
    SharedMessageTable(SharedMessageTable),
    Continuation {
        addr: FileAddr,
        len: u64,
    },
    SymbolTable(SymbolTableMessage),
    ModificationTime(ModificationTime),
    KValues(KValues),
    DriverInfo(DriverInfo),
    AttributeInfo(AttributeInfo),
    ReferenceCount(u32),
    FileSpaceInfo(FileSpaceInfo),
    CacheImage(CacheImageMessage),
    /// Of a type that is not known.
    Unknown,
}

/// Decodes a message that is not shared.
///
/// # Errors
/// Those of its type.
pub fn decode<'a>(number: u16, reader: Reader<'a>, limits: &Limits) -> Result<Decoded<'a>> {
    Ok(match number {
        kind::NIL | kind::BOGUS => Decoded::Nil,
        kind::DATASPACE => Decoded::Dataspace(Dataspace::decode(reader, limits)?),
        kind::LINK_INFO => Decoded::LinkInfo(LinkInfo::decode(reader)?),
        kind::DATATYPE => Decoded::Datatype(Datatype::decode(reader, limits)?),
        kind::OLD_FILL_VALUE => Decoded::FillValue(FillValue::decode_old(reader)?),
        kind::FILL_VALUE => Decoded::FillValue(FillValue::decode(reader)?),
        kind::LINK => Decoded::Link(Link::decode(reader)?),
        kind::EXTERNAL_FILES => Decoded::ExternalFiles(ExternalFilesMessage::decode(reader)?),
        kind::DATA_LAYOUT => Decoded::DataLayout(DataLayout::decode(reader, limits)?),
        kind::GROUP_INFO => Decoded::GroupInfo(GroupInfo::decode(reader)?),
        kind::FILTER_PIPELINE => Decoded::FilterPipeline(decode_filter_pipeline(reader, limits)?),
        kind::ATTRIBUTE => Decoded::Attribute(AttributeParts::decode(reader)?),
        kind::COMMENT => Decoded::Comment(Comment::decode(reader)?),
        kind::OLD_MODIFICATION_TIME => {
            Decoded::ModificationTime(ModificationTime::decode_old(reader)?)
        }
        kind::SHARED_MESSAGE_TABLE => {
            Decoded::SharedMessageTable(SharedMessageTable::decode(reader)?)
        }
        kind::CONTINUATION => {
            let mut reader = reader.named("object header continuation message");
            let addr = reader.defined_addr("block")?;
            Decoded::Continuation { addr, len: reader.length()? }
        }
        kind::SYMBOL_TABLE => Decoded::SymbolTable(SymbolTableMessage::decode(reader)?),
        kind::MODIFICATION_TIME => Decoded::ModificationTime(ModificationTime::decode(reader)?),
        kind::K_VALUES => Decoded::KValues(KValues::decode(reader)?),
        kind::DRIVER_INFO => Decoded::DriverInfo(decode_driver_info(reader)?),
        kind::ATTRIBUTE_INFO => Decoded::AttributeInfo(AttributeInfo::decode(reader)?),
        kind::REFERENCE_COUNT => Decoded::ReferenceCount(decode_reference_count(reader)?),
        kind::FILE_SPACE_INFO => Decoded::FileSpaceInfo(FileSpaceInfo::decode(reader)?),
        kind::CACHE_IMAGE => Decoded::CacheImage(CacheImageMessage::decode(reader)?),
        _ => Decoded::Unknown,
    })
}
