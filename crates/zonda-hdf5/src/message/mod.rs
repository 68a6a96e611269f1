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
pub use decoded::{Decoded, decode};
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
