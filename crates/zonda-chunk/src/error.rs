//! Why chunks cannot be read or written.

use std::sync::Arc;

use zonda_model::{Answer, NcError};
use zonda_storage::{RemoteFailure, StorageError, has_no_room};

use crate::filter::FilterError;
use crate::table::TableError;

/// Why a hyperslab cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ChunkError {
    /// The storage failed.
    #[error("{0}")]
    Storage(#[from] StorageError),
    /// The chunk index could not be read or changed, or there is no space.
    #[error("{0}")]
    Table(#[source] TableError),
    /// A filter failed or is not known.
    #[error("chunk {chunk:?} at byte {at}: {error}")]
    Filter {
        /// Coordinates in the chunk grid.
        chunk: Vec<u64>,
        /// Where its bytes begin.
        at: u64,
        /// What the filter says.
        #[source]
        error: FilterError,
    },
    /// A filter cannot be applied to a chunk on its way into the file.
    #[error("chunk {chunk:?}: {error}")]
    Encode {
        /// Coordinates in the chunk grid.
        chunk: Vec<u64>,
        /// What the filter says.
        #[source]
        error: FilterError,
    },
    /// A chunk lies outside the file.
    #[error("chunk {chunk:?} at byte {at}: {len} bytes are wanted there, and the file ends before")]
    OutOfFile {
        /// Coordinates in the chunk grid.
        chunk: Vec<u64>,
        /// Where its bytes begin.
        at: u64,
        /// Bytes it should have.
        len: u64,
    },
    /// A chunk that no filter was applied to has another length than its shape says.
    #[error("chunk {chunk:?} at byte {at}: {got} bytes stored, {expected} expected")]
    Length {
        /// Coordinates in the chunk grid.
        chunk: Vec<u64>,
        /// Where its bytes begin.
        at: u64,
        /// Bytes stored.
        got: u64,
        /// Bytes of a chunk.
        expected: u64,
    },
    /// Data that are not in chunks end beyond the end of the file.
    #[error("{len} bytes of data at byte {at}, and the file ends before")]
    Truncated {
        /// First byte wanted.
        at: u64,
        /// Bytes wanted.
        len: u64,
    },
    /// Bytes that cannot be had, for a reason that was known before they were asked for
    /// ([`SegmentBytes::Failed`](crate::SegmentBytes::Failed)).
    #[error("{0}")]
    Source(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// No array can have this shape.
    #[error("{what}")]
    Shape {
        /// What is wrong.
        what: &'static str,
    },
    /// The request does not fit the array.
    #[error("{what}")]
    Request {
        /// What is wrong.
        what: &'static str,
    },
    /// A chunk that waited in a file without a name beside the data, for want of memory, cannot be read
    /// from there.
    #[error(
        "chunk {chunk:?} was put into a temporary file for want of memory and cannot be read back: {}",
        spilled(error.as_ref())
    )]
    Spill {
        /// Coordinates in the chunk grid.
        chunk: Vec<u64>,
        /// What the file's storage says; `None` where it has become too short.
        #[source]
        error: Option<StorageError>,
    },
    /// There is no memory for it.
    #[error("no memory for {bytes} bytes")]
    NoMemory {
        /// Bytes asked for.
        bytes: u64,
    },
}

impl ChunkError {
    /// The code that C sees.
    #[must_use]
    pub fn nc_error(&self) -> NcError {
        match self {
            ChunkError::Storage(
                StorageError::NoMemory { .. }
                | StorageError::Remote { kind: RemoteFailure::NoMemory, .. },
            ) => NcError::NoMem,
            // To libhdf5, which reads for the reference, all that a server may answer is the same.
            ChunkError::Storage(StorageError::Remote { .. }) => NcError::HdfErr,
            ChunkError::Storage(error) | ChunkError::Spill { error: Some(error), .. } => {
                NcError::System(error.raw_os_error())
            }
            ChunkError::Spill { error: None, .. } => NcError::System(EIO),
            ChunkError::Table(_)
            | ChunkError::Source(_)
            | ChunkError::OutOfFile { .. }
            | ChunkError::Length { .. }
            | ChunkError::Truncated { .. }
            | ChunkError::Shape { .. } => NcError::HdfErr,
            ChunkError::Request { .. } => NcError::Inval,
            ChunkError::Filter { error, .. } | ChunkError::Encode { error, .. } => error.nc_error(),
            ChunkError::NoMemory { .. } => NcError::NoMem,
        }
    }

    /// Whether the device of the data, or the user's quota, has no room.
    pub(crate) fn is_of_full_device(&self) -> bool {
        matches!(self, ChunkError::Storage(error) if has_no_room(error.raw_os_error()))
    }

    /// What kind of answer it is; of an error of the table, and of a source, only the format knows.
    #[must_use]
    pub fn answer(&self) -> Answer {
        match self {
            ChunkError::Storage(error) if error.is_refused() => Answer::Refused,
            ChunkError::Storage(error) | ChunkError::Spill { error: Some(error), .. } => {
                Answer::of_errno(error.raw_os_error())
            }
            ChunkError::Spill { error: None, .. } => Answer::of_errno(EIO),
            ChunkError::Filter { error, .. } => error.answer(),
            ChunkError::Table(_)
            | ChunkError::Source(_)
            | ChunkError::OutOfFile { .. }
            | ChunkError::Length { .. }
            | ChunkError::Truncated { .. }
            | ChunkError::Shape { .. } => Answer::Damaged,
            ChunkError::Encode { .. } | ChunkError::Request { .. } => Answer::Request,
            ChunkError::NoMemory { .. } => Answer::NoMemory,
        }
    }

    /// The byte of the file that it is about, where it is about one; of an error of the table only the
    /// format knows.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match self {
            ChunkError::Storage(error) => error.offset(),
            ChunkError::Filter { at, .. }
            | ChunkError::OutOfFile { at, .. }
            | ChunkError::Length { at, .. }
            | ChunkError::Truncated { at, .. } => Some(*at),
            ChunkError::Table(_)
            | ChunkError::Source(_)
            | ChunkError::Encode { .. }
            | ChunkError::Shape { .. }
            | ChunkError::Request { .. }
            | ChunkError::Spill { .. }
            | ChunkError::NoMemory { .. } => None,
        }
    }
}

/// Coordinates for an error. Where there is no memory even for them, the error comes without.
pub(crate) fn coordinates(chunk: &[u64]) -> Vec<u64> {
    let mut kept = Vec::new();
    if kept.try_reserve_exact(chunk.len()).is_ok() {
        kept.extend_from_slice(chunk);
    }
    kept
}

/// A file that lost what was written to it.
const EIO: i32 = 5;

fn spilled(error: Option<&StorageError>) -> String {
    error.map_or_else(
        || "the temporary file has become too short".to_owned(),
        StorageError::to_string,
    )
}
