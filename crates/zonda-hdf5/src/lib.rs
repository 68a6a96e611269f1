#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::unwrap_used,
        clippy::panic,
        clippy::cast_possible_truncation
    )
)]

pub mod attributes;
pub mod btree_v1;
pub mod btree_v2;
#[cfg(test)]
mod built_file;
mod cache_image;
pub mod checksum;
mod chunk_index;
mod dense;
mod error;
pub mod external;
mod file;
pub mod fractal_heap;
pub mod global_heap;
pub mod journal;
mod limits;
pub mod links;
pub mod local_heap;
pub mod message;
pub mod object;
pub mod object_header;
mod read_ahead;
mod reader;
pub mod reference;
mod rehearsal;
pub mod salvage;
pub mod selection;
pub mod shared;
pub mod sohm;
pub mod space;
pub mod superblock;
pub mod symbol_table;
#[cfg(test)]
mod testing;
mod traversal_budget;
mod tuning;
pub mod usage;
pub mod virtual_dataset;
mod writer;

pub use attributes::{Attribute, Attributes};
pub use chunk_index::{ChunkIndex, ChunkLocation, ChunkTree, TreeCommit};
pub use error::HdfError;
pub use external::ExternalSegment;
pub use file::{ExtensionEdit, File, Unfilter};
pub use global_heap::{Collection, HeapCursor, HeapId, HeapWriter};
pub use limits::ReadLimits;
pub use links::ResolvedLink;
pub use object::{ExternalFileList, ExternalSlot, Object, ObjectKind};
pub use object_header::{Message, ObjectHeader};
pub use read_ahead::ReadAhead;
pub(crate) use reader::FileRange;
pub use reader::{FileAddr, Reader, Sizes};
pub use reference::Reference;
pub use rehearsal::Rehearsal;
pub use selection::Selection;
pub use space::{NewBlocks, Space};
pub use superblock::Superblock;
pub use virtual_dataset::{VirtualMapping, VirtualSource};
pub use writer::Writer;

/// What decoding gives.
pub type Result<T> = std::result::Result<T, HdfError>;
