#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod array;
mod cache;
mod chunk_bytes;
mod contiguous;
mod decode;
mod engine;
mod error;
pub mod filter;
mod memory_parts;
mod one_element;
mod plan;
mod prefetch;
mod read;
mod read_model;
mod read_one;
mod recency;
mod row_reader;
mod scatter;
mod selection;
mod stored;
/// What threads meet at. A model puts others in its place.
mod sync {
    pub(crate) use std::sync::atomic;
    pub(crate) use std::thread::sleep;
    pub(crate) use zonda_runtime::{fork, lock};
}
mod table;
mod tuning;
mod worker;
mod write;

pub use array::{ArrayShape, ChunkedArray};
pub use contiguous::{ContiguousArray, DataSegment, SegmentBytes};
pub use decode::Decode;
pub use engine::Engine;
pub use error::ChunkError;
pub use filter::{FilterError, FilterSpec};
pub use table::{Allocate, ChunkAt, ChunkTable, TableError, WriteTable};
pub use write::{
    ArrayId, ChunkGrid, ChunkWriter, DetachedChunks, ElementEncoding, FilteredChunk, HeldPart,
    KeptPart, MakeSpillFile, NewArray, NotFiltered, SlabElements, SpillFile, StoredChunks,
    ToFilter, release_spills_on_device, with_tails,
};
