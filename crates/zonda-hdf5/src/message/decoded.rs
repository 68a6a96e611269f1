//! Any message, by its type.

use super::{
    AttributeInfo, AttributeParts, CacheImageMessage, Comment, DataLayout, Dataspace, Datatype,
    ExternalFilesMessage, FileSpaceInfo, FillValue, FilterDescription, GroupInfo, KValues, Link,
    LinkInfo, ModificationTime, SharedMessageTable, SymbolTableMessage, decode_driver_info,
    decode_filter_pipeline, decode_reference_count, kind,
};
use crate::superblock::DriverInfo;
use crate::{FileAddr, ReadLimits, Reader, Result};

/// What a message says.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each is what its name says")]
pub enum DecodedMessage<'a> {
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
pub fn decode<'a>(
    number: u16,
    reader: Reader<'a>,
    limits: &ReadLimits,
) -> Result<DecodedMessage<'a>> {
    Ok(match number {
        kind::NIL | kind::BOGUS => DecodedMessage::Nil,
        kind::DATASPACE => DecodedMessage::Dataspace(Dataspace::decode(reader, limits)?),
        kind::LINK_INFO => DecodedMessage::LinkInfo(LinkInfo::decode(reader)?),
        kind::DATATYPE => DecodedMessage::Datatype(Datatype::decode(reader, limits)?),
        kind::OLD_FILL_VALUE => DecodedMessage::FillValue(FillValue::decode_old(reader)?),
        kind::FILL_VALUE => DecodedMessage::FillValue(FillValue::decode(reader)?),
        kind::LINK => DecodedMessage::Link(Link::decode(reader)?),
        kind::EXTERNAL_FILES => {
            DecodedMessage::ExternalFiles(ExternalFilesMessage::decode(reader)?)
        }
        kind::DATA_LAYOUT => DecodedMessage::DataLayout(DataLayout::decode(reader, limits)?),
        kind::GROUP_INFO => DecodedMessage::GroupInfo(GroupInfo::decode(reader)?),
        kind::FILTER_PIPELINE => {
            DecodedMessage::FilterPipeline(decode_filter_pipeline(reader, limits)?)
        }
        kind::ATTRIBUTE => DecodedMessage::Attribute(AttributeParts::decode(reader)?),
        kind::COMMENT => DecodedMessage::Comment(Comment::decode(reader)?),
        kind::OLD_MODIFICATION_TIME => {
            DecodedMessage::ModificationTime(ModificationTime::decode_old(reader)?)
        }
        kind::SHARED_MESSAGE_TABLE => {
            DecodedMessage::SharedMessageTable(SharedMessageTable::decode(reader)?)
        }
        kind::CONTINUATION => {
            let mut reader = reader.named("object header continuation message");
            let addr = reader.defined_addr("block")?;
            DecodedMessage::Continuation { addr, len: reader.length()? }
        }
        kind::SYMBOL_TABLE => DecodedMessage::SymbolTable(SymbolTableMessage::decode(reader)?),
        kind::MODIFICATION_TIME => {
            DecodedMessage::ModificationTime(ModificationTime::decode(reader)?)
        }
        kind::K_VALUES => DecodedMessage::KValues(KValues::decode(reader)?),
        kind::DRIVER_INFO => DecodedMessage::DriverInfo(decode_driver_info(reader)?),
        kind::ATTRIBUTE_INFO => DecodedMessage::AttributeInfo(AttributeInfo::decode(reader)?),
        kind::REFERENCE_COUNT => DecodedMessage::ReferenceCount(decode_reference_count(reader)?),
        kind::FILE_SPACE_INFO => DecodedMessage::FileSpaceInfo(FileSpaceInfo::decode(reader)?),
        kind::CACHE_IMAGE => DecodedMessage::CacheImage(CacheImageMessage::decode(reader)?),
        _ => DecodedMessage::Unknown,
    })
}
