//! Why an operation on an object fails, before it is known how messages name that object.

use zonda_chunk::ChunkError;
use zonda_hdf5::HdfError;
pub(crate) use zonda_hdf5::Result as HdfResult;
use zonda_model::NcError;
use zonda_model::memory::NoMemory;
use zonda_storage::StorageError;

use crate::Nc4Error;
use crate::attribute::AttFault;
use crate::select::SelectionMisfit;
use crate::values::ValueFault;

/// What an operation on an object gives.
pub(crate) type Outcome<T> = std::result::Result<T, Fault>;

/// What an operation gives whose error code alone says why it failed.
pub(crate) type Coded<T> = std::result::Result<T, NcError>;

/// Why an operation on an object failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// HDF5's structures could not be read or written.
    Hdf(HdfError),
    /// Elements could not be read or written.
    Chunk(ChunkError),
    /// Attributes could not be read.
    Att(AttFault),
    /// The call is not allowed; the code says why.
    Refused(NcError),
    /// The call is not allowed, for a reason in words.
    Explained(NcError, String),
    /// Another program wrote the object in a way that Zonda cannot change; the text says which.
    Unwritable(&'static str),
}

/// Fails with the code where the condition holds.
#[inline]
pub(crate) fn refuse_if(condition: bool, code: NcError) -> Coded<()> {
    if condition { Err(code) } else { Ok(()) }
}

impl Fault {
    /// The error about a filter that is not available.
    pub(crate) fn missing(error: &zonda_chunk::FilterError) -> Fault {
        let error = error.clone();
        Fault::Chunk(ChunkError::Filter { chunk: Vec::new(), at: 0, error })
    }

    /// The error about memory that has another length than the check of the call said.
    #[cold]
    pub(crate) fn wrong_length() -> Fault {
        let why = "the memory given is not as long as its element count says";
        Fault::because(NcError::Inval, why)
    }

    /// A refusal with a reason in words.
    pub(crate) fn because(code: NcError, why: impl Into<String>) -> Fault {
        Fault::Explained(code, why.into())
    }

    /// The error about the object of this name.
    pub(crate) fn at(self, object: impl FnOnce() -> String) -> Nc4Error {
        let object = object();
        match self {
            Fault::Hdf(error) => Nc4Error::Hdf { object, error },
            Fault::Chunk(error) => Nc4Error::Chunk { object, error },
            Fault::Att(fault) => fault.at(|| object),
            Fault::Refused(code) => Nc4Error::Refused { object, code },
            Fault::Explained(code, why) => Nc4Error::Explained { object, why, code },
            Fault::Unwritable(why) => Nc4Error::Refused {
                object: format!("{object}: cannot be changed: {why}"),
                code: NcError::NotBuilt,
            },
        }
    }
}

impl From<HdfError> for Fault {
    fn from(error: HdfError) -> Fault {
        Fault::Hdf(error)
    }
}

impl From<ChunkError> for Fault {
    fn from(error: ChunkError) -> Fault {
        match error {
            // The error that finding the bytes gave.
            ChunkError::Source(error) => match error.downcast_ref::<HdfError>() {
                Some(error) => Fault::Hdf(error.clone()),
                None => Fault::Chunk(ChunkError::Source(error)),
            },
            error => Fault::Chunk(error),
        }
    }
}

impl From<StorageError> for Fault {
    fn from(error: StorageError) -> Fault {
        Fault::Chunk(error.into())
    }
}

impl From<AttFault> for Fault {
    fn from(fault: AttFault) -> Fault {
        Fault::Att(fault)
    }
}

impl From<ValueFault> for Fault {
    fn from(fault: ValueFault) -> Fault {
        match fault {
            ValueFault::Hdf(error) => Fault::Hdf(error),
            ValueFault::NoMemory => Fault::Refused(NcError::NoMem),
        }
    }
}

impl From<SelectionMisfit> for Fault {
    fn from(misfit: SelectionMisfit) -> Fault {
        Fault::Explained(misfit.code, misfit.to_string())
    }
}

impl From<NcError> for Fault {
    fn from(code: NcError) -> Fault {
        Fault::Refused(code)
    }
}

impl From<NoMemory> for Fault {
    fn from(_: NoMemory) -> Fault {
        Fault::Refused(NcError::NoMem)
    }
}
