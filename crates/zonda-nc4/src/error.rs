//! Why an operation on a netCDF-4 file failed.

use zonda_chunk::ChunkError;
use zonda_format::FormatError;
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
        #[source]
        error: HdfError,
    },
    /// Data could not be read.
    #[error("{object}: {error}")]
    Chunk {
        /// Path of the variable.
        object: String,
        /// What the chunk pipeline says.
        #[source]
        error: ChunkError,
    },
    /// The file is sound, and has something that the model of netCDF cannot show.
    #[error("{object}: {what}")]
    Unrepresentable {
        /// Path of the variable or group.
        object: String,
        /// What the file has there.
        what: String,
        /// The code that C sees.
        code: NcError,
    },
    /// The call is not allowed; the code says why.
    #[error("{object}: {code}")]
    Refused {
        /// What the call was about: a path, or the name of an argument.
        object: String,
        /// The code that C sees.
        code: NcError,
    },
    /// The call is not allowed, for a reason in words: the code does not say which argument was meant, or is
    /// one that the reference gives for many causes.
    #[error("{object}: {why}")]
    Explained {
        /// What the call was about: a path, or the name of an argument.
        object: String,
        /// What was expected, and what was found.
        why: String,
        /// The code that C sees.
        code: NcError,
    },
}

impl Nc4Error {
    /// This error, with the name of another object.
    pub(crate) fn about(mut self, other: String) -> Nc4Error {
        match &mut self {
            Nc4Error::Hdf { object, .. }
            | Nc4Error::Chunk { object, .. }
            | Nc4Error::Unrepresentable { object, .. }
            | Nc4Error::Refused { object, .. }
            | Nc4Error::Explained { object, .. } => *object = other,
        }
        self
    }

    /// The HDF5 error that is the cause, directly or by way of the chunk pipeline.
    fn hdf(&self) -> Option<&HdfError> {
        match self {
            Nc4Error::Hdf { error, .. } => Some(error),
            Nc4Error::Chunk { error: ChunkError::Table(error), .. } => error.downcast_ref(),
            Nc4Error::Chunk { .. }
            | Nc4Error::Unrepresentable { .. }
            | Nc4Error::Refused { .. }
            | Nc4Error::Explained { .. } => None,
        }
    }
}

impl FormatError for Nc4Error {
    fn nc_error(&self) -> NcError {
        match self {
            Nc4Error::Hdf { error, .. } => error.nc_error(),
            Nc4Error::Chunk { error, .. } => {
                // An index that a server did not send is not damaged.
                let remote = self.hdf().filter(|error| error.is_remote());
                remote.map_or_else(|| error.nc_error(), HdfError::nc_error)
            }
            Nc4Error::Unrepresentable { code, .. }
            | Nc4Error::Refused { code, .. }
            | Nc4Error::Explained { code, .. } => *code,
        }
    }

    fn answer(&self) -> Answer {
        match self {
            Nc4Error::Hdf { error, .. } => error.answer(),
            Nc4Error::Chunk { error: ChunkError::Table(error), .. } => {
                error.downcast_ref().map_or(Answer::Damaged, HdfError::answer)
            }
            Nc4Error::Chunk { error: ChunkError::Source(error), .. } => {
                error.downcast_ref().map_or(Answer::Damaged, HdfError::answer)
            }
            Nc4Error::Chunk { error, .. } => error.answer(),
            Nc4Error::Unrepresentable { .. } => Answer::Unrepresentable,
            // The reference gives this code for many calls that it cannot carry out.
            Nc4Error::Refused { code: NcError::HdfErr, .. } => Answer::Request,
            Nc4Error::Refused { code, .. } | Nc4Error::Explained { code, .. } => {
                Answer::of_code(*code)
            }
        }
    }

    fn offset(&self) -> Option<u64> {
        match self {
            Nc4Error::Chunk { error, .. } if self.hdf().is_none() => error.offset(),
            _ => self.hdf()?.offset(),
        }
    }

    fn storage(&self) -> Option<&StorageError> {
        match self {
            Nc4Error::Hdf { error: HdfError::Storage(error), .. } => Some(error),
            _ => None,
        }
    }

    fn is_lost_sync(&self) -> bool {
        self.hdf().is_some_and(HdfError::is_lost_sync)
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use zonda_storage::Op;

    use super::*;

    /// Whether a cause of an error is a `T`.
    fn has_cause<T: Error + 'static>(error: &Nc4Error) -> bool {
        let mut causes = std::iter::successors(error.source(), |cause| (*cause).source());
        causes.any(<dyn Error>::is::<T>)
    }

    #[test]
    fn causes_lead_to_where_it_began() {
        let object = || String::from("/g/v");
        let far = || StorageError::TooFar { op: Op::Read, at: 7, len: 1 };
        let hdf = |error| Nc4Error::Hdf { object: object(), error };
        let chunk = |error| Nc4Error::Chunk { object: object(), error };
        let elsewhere = HdfError::InOtherFile {
            what: "external file",
            name: "x".into(),
            cause: Box::new(far().into()),
        };
        let by_table = ChunkError::Table(Box::new(HdfError::from(far())));
        for (error, is_hdf, is_chunk) in [
            (hdf(far().into()), true, false),
            (hdf(elsewhere), true, false),
            (chunk(far().into()), false, true),
            (chunk(by_table), true, true),
        ] {
            assert_eq!(has_cause::<HdfError>(&error), is_hdf, "{error:?}");
            assert_eq!(has_cause::<ChunkError>(&error), is_chunk, "{error:?}");
            assert!(has_cause::<StorageError>(&error), "{error:?}");
            // Its text has all of theirs.
            assert!(error.to_string().ends_with(&far().to_string()), "{error}");
            assert!(error.to_string().starts_with("/g/v: "), "{error}");
        }
        assert!(Nc4Error::Refused { object: object(), code: NcError::Inval }.source().is_none());
    }
}
