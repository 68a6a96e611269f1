#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod array;
mod bytes;
mod cache;
mod decode;
mod error;
pub mod filter;
mod linear;
mod plan;
mod pool;
mod prefetch;
mod recency;
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
mod write;

pub use array::{ArrayShape, ChunkedArray};
pub use decode::Decode;
pub use error::ChunkError;
pub use filter::{FilterError, FilterSpec};
pub use linear::{LinearArray, Segment, SegmentBytes};
pub use pool::Engine;
pub use table::{Allocate, ChunkAt, ChunkTable, TableError, WriteTable};
pub use write::{
    ArrayId, ChunkWriter, Encode, MakeSpillFile, NewArray, SpillFile, StoredChunks,
    release_spills_on_device,
};
