//! The messages of object headers, one module each, named as the specification names them.
//!
//! A `decode` takes a reader over the body of one message, which ends where the message ends.
//! Version 1 object headers fill bodies up to a multiple of 8 bytes, so what is left over is not
//! looked at. An `encode` appends the body of one message to a writer, in the one version that
//! Zonda writes: the one that every library since HDF5 1.8 reads.

mod attribute;
mod attribute_info;
mod cache_image;
mod comment;
mod data_layout;
mod dataspace;
mod datatype;
mod decoded;
mod driver_info;
mod external_files;
mod file_space_info;
mod fill_value;
mod filter_pipeline;
mod group_info;
mod k_values;
pub mod kind;
mod link;
mod link_info;
mod modification_time;
mod reference_count;
mod shared_message_table;
mod symbol_table;

use crate::{FileAddr, Reader, Result, Writer};

pub use attribute::{AttributeMessage, AttributeParts};
pub use attribute_info::AttributeInfo;
pub use cache_image::CacheImageMessage;
pub use comment::Comment;
pub use data_layout::{ChunkIndexKind, ChunkedLayout, DataLayout};
pub use dataspace::{Dataspace, SpaceKind};
pub use datatype::{
    ByteOrder, Charset, Class, Compound, Datatype, EnumMember, FixedPoint, FloatingPoint, Member,
    Normalisation, Padding, ReferenceKind,
};
pub use decoded::{DecodedMessage, decode};
pub use driver_info::decode_driver_info;
pub use external_files::{ExternalFilesMessage, ExternalSlotMessage};
pub use file_space_info::{FileSpaceInfo, FileSpaceStrategy};
pub use fill_value::{AllocTime, FillTime, FillValue};
pub use filter_pipeline::{FilterDescription, decode_filter_pipeline, encode_filter_pipeline};
pub use group_info::GroupInfo;
pub use k_values::KValues;
pub use link::{Link, LinkTarget};
pub use link_info::LinkInfo;
pub use modification_time::ModificationTime;
pub use reference_count::{decode_reference_count, encode_reference_count};
pub use shared_message_table::SharedMessageTable;
pub use symbol_table::SymbolTableMessage;

/// Decodes version 0 and the flags of an info message: whether creation order is tracked, and whether
/// there is an index by it.
fn decode_order_flags(reader: &mut Reader<'_>) -> Result<(bool, bool)> {
    reader.version(0..=0)?;
    let flags = reader.u8()?;
    if flags & !3 != 0 {
        return Err(reader.bad("flags", u64::from(flags)));
    }
    Ok((flags & 1 != 0, flags & 2 != 0))
}

/// Encodes version 0 and the flags of an info message.
fn encode_order_flags(tracked: bool, indexed: bool, writer: &mut Writer) {
    writer.u8(0).u8(u8::from(tracked) | u8::from(indexed) << 1);
}

/// Encodes the addresses of an info message: heap, index by name and, if `indexed`, index by creation
/// order.
fn encode_heap_and_indexes(
    [heap, name_index, order_index]: [Option<FileAddr>; 3],
    indexed: bool,
    writer: &mut Writer,
) -> Result<()> {
    writer.addr(heap)?.addr(name_index)?;
    if indexed {
        writer.addr(order_index)?;
    }
    Ok(())
}
