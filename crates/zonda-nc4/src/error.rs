//! Why an operation on a netCDF-4 file failed.

use zonda_chunk::ChunkError;
use zonda_hdf5::HdfError;
use zonda_model::{Answer, NcError};
use zonda_storage::StorageError;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Nc4Error {
    /// The HDF5 file could not be read.
    #[error("{object}: {error}")]
    Hdf {
        /// Path of the object in the file, `/` for the root group.
        object: String,
        /// What HDF5 says.
        error: HdfError,
    },
    /// Data could not be read.
    #[error("{object}: {error}")]
    Chunk {
        /// Path of the variable.
        object: String,
        /// What the chunk pipeline says.
        error: ChunkError,
    },
    /// Something that is sound, and that the model of netCDF has no words for.
    #[error("{object}: {what}")]
    NoWords {
        /// Path of the variable or group.
        object: String,
        /// What it is.
        what: String,
        /// The code that C sees.
        code: NcError,
    },
    /// The model of netCDF says no.
    #[error("{object}: {code}")]
    Refused {
        /// What it was about: a path, or a word on the argument.
        object: String,
        /// The code that C sees.
        code: NcError,
    },
    /// The same, in words: the code does not say which argument was meant, or is one that the reference
    /// gives for many things.
    #[error("{object}: {why}")]
    Explained {
        /// What it was about, as above.
        object: String,
        /// What does not fit what.
        why: String,
        /// The code that C sees.
        code: NcError,
    },
}

impl Nc4Error {
    /// What the storage said, where that is the cause.
    #[must_use]
    pub fn storage(&self) -> Option<&StorageError> {
        match self {
            Nc4Error::Hdf { error: HdfError::Storage(error), .. } => Some(error),
            Nc4Error::Hdf { .. }
            | Nc4Error::Chunk { .. }
            | Nc4Error::NoWords { .. }
            | Nc4Error::Refused { .. }
            | Nc4Error::Explained { .. } => None,
        }
    }

    /// The same about another object.
    pub(crate) fn about(mut self, other: String) -> Nc4Error {
        match &mut self {
            Nc4Error::Hdf { object, .. }
            | Nc4Error::Chunk { object, .. }
            | Nc4Error::NoWords { object, .. }
            | Nc4Error::Refused { object, .. }
            | Nc4Error::Explained { object, .. } => *object = other,
        }
        self
    }

    /// The code that C sees.
    #[must_use]
    pub fn nc_error(&self) -> NcError {
        match self {
            Nc4Error::Hdf { error, .. } => error.nc_error(),
            Nc4Error::Chunk { error, .. } => error.nc_error(),
            Nc4Error::NoWords { code, .. }
            | Nc4Error::Refused { code, .. }
            | Nc4Error::Explained { code, .. } => *code,
        }
    }

    /// What kind of answer it is.
    #[must_use]
    pub fn answer(&self) -> Answer {
        match self {
            Nc4Error::Hdf { error, .. } => error.answer(),
            Nc4Error::Chunk { error: ChunkError::Table(error), .. } => {
                error.downcast_ref().map_or(Answer::Damaged, HdfError::answer)
            }
            Nc4Error::Chunk { error: ChunkError::Source(error), .. } => {
                error.downcast_ref().map_or(Answer::Damaged, HdfError::answer)
            }
            Nc4Error::Chunk { error, .. } => error.answer(),
            Nc4Error::NoWords { .. } => Answer::Unrepresentable,
            // The reference has this code for much that cannot be done.
            Nc4Error::Refused { code: NcError::HdfErr, .. } => Answer::Request,
            Nc4Error::Refused { code, .. } | Nc4Error::Explained { code, .. } => {
                Answer::of_code(*code)
            }
        }
    }

    /// Whether a sync failed ([`HdfError::is_lost_sync`]).
    #[must_use]
    pub fn is_lost_sync(&self) -> bool {
        match self {
            Nc4Error::Hdf { error, .. } => error.is_lost_sync(),
            Nc4Error::Chunk { error: ChunkError::Table(error), .. } => {
                error.downcast_ref().is_some_and(HdfError::is_lost_sync)
            }
            Nc4Error::Chunk { .. }
            | Nc4Error::NoWords { .. }
            | Nc4Error::Refused { .. }
            | Nc4Error::Explained { .. } => false,
        }
    }

    /// The byte of the file that it is about, where it is about one.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match self {
            Nc4Error::Hdf { error, .. } => error.offset(),
            Nc4Error::Chunk { error: ChunkError::Table(error), .. } => {
                error.downcast_ref().and_then(HdfError::offset)
            }
            Nc4Error::Chunk { error, .. } => error.offset(),
            Nc4Error::NoWords { .. } | Nc4Error::Refused { .. } | Nc4Error::Explained { .. } => {
                None
            }
        }
    }
}
