//! Why a file, or a part of it, cannot be read or written.

use zonda_model::memory::NoMemory;
use zonda_model::{Answer, NcError};
use zonda_storage::{RemoteFailure, StorageError};

/// So many versions behind the newest one that is known are taken for what a later library writes.
const NEXT_VERSIONS: u32 = 2;

/// What is wrong with a file or a request. `at` is the byte of the file, counted from its very
/// first one.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HdfError {
    /// The storage below failed.
    #[error("{0}")]
    Storage(#[from] StorageError),
    /// There is no superblock.
    #[error("not an HDF5 file: no signature at byte 0 or at 512 times a power of two")]
    NotHdf5,
    /// The file is shorter than its last writer left it.
    #[error("the file has {len} bytes of the {eof} that it had when it was written")]
    FileTruncated {
        /// Bytes it had.
        eof: u64,
        /// Bytes it has.
        len: u64,
    },
    /// A structure goes on after the bytes it was given.
    #[error("{structure} at byte {at}: needs {need} bytes, {have} left")]
    Truncated {
        /// The structure, as the specification names it.
        structure: &'static str,
        /// Where the missing field begins.
        at: u64,
        /// Bytes of the field.
        need: u64,
        /// Bytes left.
        have: u64,
    },
    /// An address or a length leads out of the file.
    #[error("{structure} at byte {at}: {len} bytes are wanted there, and the file ends at {end}")]
    OutOfFile {
        /// The structure, as the specification names it.
        structure: &'static str,
        /// Where it would begin.
        at: u64,
        /// Bytes it would have.
        len: u64,
        /// Bytes of the file.
        end: u64,
    },
    /// Four letters that should be there are not.
    #[error("{structure} at byte {at}: no signature")]
    BadSignature {
        /// The structure, as the specification names it.
        structure: &'static str,
        /// Where it would begin.
        at: u64,
    },
    /// A version that is not known.
    #[error("{structure} at byte {at}: version {version} is not known")]
    BadVersion {
        /// The structure, as the specification names it.
        structure: &'static str,
        /// Where the version is.
        at: u64,
        /// The version.
        version: u32,
        /// The newest one that is known.
        newest: u32,
    },
    /// The bytes are not those that were written.
    #[error("{structure} at byte {at}: checksum {stored:08x}, but its bytes give {computed:08x}")]
    BadChecksum {
        /// The structure, as the specification names it.
        structure: &'static str,
        /// Where it begins.
        at: u64,
        /// The checksum in the file.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// A field with an impossible value.
    #[error("{structure} at byte {at}: {what} = {value} is not valid")]
    BadValue {
        /// The structure, as the specification names it.
        structure: &'static str,
        /// Where the field is, or the structure where the field is not at hand.
        at: u64,
        /// The field.
        what: &'static str,
        /// Its value.
        value: u64,
    },
    /// A structure that leads back to itself.
    #[error("{structure} at byte {at}: leads back to itself")]
    Cycle {
        /// The structure, as the specification names it.
        structure: &'static str,
        /// Where it was met again.
        at: u64,
    },
    /// More than the limits allow.
    #[error("{structure} at byte {at}: more than {limit} {what}")]
    Limit {
        /// The structure, as the specification names it.
        structure: &'static str,
        /// Where it begins.
        at: u64,
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// Part of the format, but not read by Zonda.
    #[error("{structure} at byte {at}: {what} is not supported")]
    Unsupported {
        /// The structure, as the specification names it.
        structure: &'static str,
        /// Where it begins.
        at: u64,
        /// What is not supported.
        what: &'static str,
    },
    /// Something that is referred to is not there.
    #[error("{structure} at byte {at}: {what} is not there")]
    Missing {
        /// The structure that refers to it, as the specification names it.
        structure: &'static str,
        /// Where that is.
        at: u64,
        /// What is not there.
        what: &'static str,
    },
    /// There is no file under a name that another file gives.
    #[error("there is no such file")]
    NoFile,
    /// The file that another one names does not have what is named in it.
    #[error("the file has no such object")]
    NoObject,
    /// A file that another one names is refused, or cannot be read.
    #[error("{what} \"{name}\": {cause}")]
    InOtherFile {
        /// What names it: the first half of a message.
        what: &'static str,
        /// The name, as it is in the file.
        name: Box<str>,
        /// What is wrong.
        #[source]
        cause: Box<HdfError>,
    },
    /// What is in the file, or is to be, does not fit into memory.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
    /// Something that the file's format has no room for.
    #[error("{structure}: {value} is more than the file can hold")]
    TooLarge {
        /// The structure, as the specification names it.
        structure: &'static str,
        /// What does not fit.
        value: u64,
    },
}

impl HdfError {
    /// The code that C sees.
    #[must_use]
    pub fn nc_error(&self) -> NcError {
        match self {
            HdfError::Storage(
                StorageError::NoMemory { .. }
                | StorageError::Remote { kind: RemoteFailure::NoMemory, .. },
            ) => NcError::NoMem,
            // As the reference answers, to which all that libhdf5 refuses is the same.
            HdfError::Storage(StorageError::NoPlace { .. } | StorageError::Remote { .. }) => {
                NcError::HdfErr
            }
            HdfError::Storage(error) => NcError::System(error.raw_os_error()),
            HdfError::NotHdf5 => NcError::NotNc,
            // What was opened is an HDF5 file; a part of it cannot be had.
            HdfError::InOtherFile { cause, .. } => match cause.nc_error() {
                NcError::NotNc => NcError::HdfErr,
                code => code,
            },
            HdfError::NoMemory(_) => NcError::NoMem,
            HdfError::FileTruncated { .. }
            | HdfError::Truncated { .. }
            | HdfError::OutOfFile { .. }
            | HdfError::BadSignature { .. }
            | HdfError::BadVersion { .. }
            | HdfError::BadChecksum { .. }
            | HdfError::BadValue { .. }
            | HdfError::Cycle { .. }
            | HdfError::Limit { .. }
            | HdfError::Unsupported { .. }
            | HdfError::Missing { .. }
            | HdfError::NoFile
            | HdfError::NoObject
            | HdfError::TooLarge { .. } => NcError::HdfErr,
        }
    }

    /// What kind of answer it is.
    #[must_use]
    pub fn answer(&self) -> Answer {
        match self {
            HdfError::Storage(error) if error.is_refused() => Answer::Refused,
            HdfError::Storage(error) => Answer::of_errno(error.raw_os_error()),
            HdfError::NotHdf5 => Answer::Unknown,
            HdfError::InOtherFile { cause, .. } => cause.answer(),
            HdfError::NoFile | HdfError::NoObject => Answer::Missing,
            HdfError::NoMemory(_) => Answer::NoMemory,
            HdfError::Unsupported { .. } => Answer::Undecodable,
            // One of the next versions of the format, which a later library may have written.
            HdfError::BadVersion { version, newest, .. }
                if version
                    .checked_sub(*newest)
                    .is_some_and(|more| (1..=NEXT_VERSIONS).contains(&more)) =>
            {
                Answer::Undecodable
            }
            // No file has so many levels, whereas limits of bytes are those of this reader.
            HdfError::Limit { what: "levels", .. } => Answer::Damaged,
            HdfError::Limit { .. } => Answer::Undecodable,
            HdfError::FileTruncated { .. }
            | HdfError::Truncated { .. }
            | HdfError::OutOfFile { .. }
            | HdfError::BadSignature { .. }
            | HdfError::BadVersion { .. }
            | HdfError::BadChecksum { .. }
            | HdfError::BadValue { .. }
            | HdfError::Cycle { .. }
            | HdfError::Missing { .. } => Answer::Damaged,
            HdfError::TooLarge { .. } => Answer::Request,
        }
    }

    /// Whether a file that exists was not read because it is not to be trusted. No caller may treat
    /// that as "missing".
    #[must_use]
    pub fn is_refused(&self) -> bool {
        match self {
            HdfError::Storage(error) => error.is_refused(),
            HdfError::InOtherFile { cause, .. } => cause.is_refused(),
            _ => false,
        }
    }

    /// Whether there is nothing under a name that the file gives.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        match self {
            HdfError::NoFile | HdfError::NoObject => true,
            HdfError::InOtherFile { cause, .. } => cause.is_absence(),
            _ => false,
        }
    }

    /// Whether a request to a server failed. Nothing follows from it for what the file has: who asks again may get it.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        matches!(self, HdfError::Storage(StorageError::Remote { .. }))
    }

    /// What is left of the errors of a look ahead: those of the storage. Damage is met again by who needs what is damaged.
    pub(crate) fn of_storage(looked: crate::Result<()>) -> crate::Result<()> {
        match looked {
            Err(error @ HdfError::Storage(_)) => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether a sync failed ([`StorageError::is_lost_sync`]).
    #[must_use]
    pub fn is_lost_sync(&self) -> bool {
        matches!(self, HdfError::Storage(error) if error.is_lost_sync())
    }

    /// The byte of the file that it is about, where it is about one.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match self {
            HdfError::Storage(error) => error.offset(),
            HdfError::Truncated { at, .. }
            | HdfError::OutOfFile { at, .. }
            | HdfError::BadSignature { at, .. }
            | HdfError::BadVersion { at, .. }
            | HdfError::BadChecksum { at, .. }
            | HdfError::BadValue { at, .. }
            | HdfError::Cycle { at, .. }
            | HdfError::Limit { at, .. }
            | HdfError::Unsupported { at, .. }
            | HdfError::Missing { at, .. } => Some(*at),
            // A byte of another file is none of this one.
            HdfError::InOtherFile { .. }
            | HdfError::NoFile
            | HdfError::NoObject
            | HdfError::NotHdf5
            | HdfError::FileTruncated { .. }
            | HdfError::NoMemory(_)
            | HdfError::TooLarge { .. } => None,
        }
    }
}
