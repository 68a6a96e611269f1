//! The error of every operation, with the code that C sees.

use std::fmt;
use std::path::{Path, PathBuf};

use zonda_classic::ClassicError;
use zonda_model::NcError;
use zonda_model::memory::NoMemory;
use zonda_nc4::{HdfError, Nc4Error};
use zonda_storage::neighbour::Refusal;
use zonda_storage::{SpecError, Storage, StorageError};

/// What an operation on a dataset returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation failed: the cause and the file it happened to.
///
/// One word: results pass through many hands in calls that take 30 ns.
#[derive(Debug)]
pub struct Error(Box<Failure>);

#[derive(Debug)]
struct Failure {
    path: Option<PathBuf>,
    cause: Cause,
}

#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error(transparent)]
    Classic(ClassicError),
    #[error(transparent)]
    Nc4(Nc4Error),
    #[error(transparent)]
    Storage(StorageError),
    #[error("layer spec: {0}")]
    Spec(SpecError),
    #[error("{0}")]
    Refused(NcError),
    #[error("{}: {}", clause(.0), .1)]
    Explained(NcError, &'static str),
    #[error("{1}")]
    Told(NcError, String),
}

/// The text of a code as the first half of a sentence: some texts of netCDF end in a full stop.
fn clause(code: &NcError) -> String {
    code.to_string().trim_end_matches('.').to_owned()
}

impl Error {
    /// A refusal with a word on why.
    #[must_use]
    pub fn explained(code: NcError, why: &'static str) -> Error {
        Error::new(Cause::Explained(code, why))
    }

    /// A refusal in other words than those of its code.
    #[must_use]
    pub fn told(code: NcError, text: impl Into<String>) -> Error {
        Error::new(Cause::Told(code, text.into()))
    }

    fn new(cause: Cause) -> Error {
        let error = Error(Box::new(Failure { path: None, cause }));
        if error.code() != NcError::NoMem {
            return error;
        }
        // The code has no room for the number, and who is told wants one.
        match zonda_model::memory::take_refused() {
            Some(bytes) if !error.cause().contains(" bytes") => {
                let text = format!("{error}: there is no memory for {bytes} bytes");
                let cause = Cause::Told(NcError::NoMem, text);
                Error(Box::new(Failure { path: None, cause }))
            }
            _ => error,
        }
    }

    /// The code that C sees.
    #[must_use]
    pub fn code(&self) -> NcError {
        match &self.0.cause {
            Cause::Classic(error) => error.nc_error(),
            Cause::Nc4(error) => error.nc_error(),
            Cause::Storage(StorageError::NoMemory { .. }) => NcError::NoMem,
            Cause::Storage(error) => NcError::System(error.raw_os_error()),
            Cause::Spec(_) => NcError::Inval,
            Cause::Refused(code) | Cause::Explained(code, _) | Cause::Told(code, _) => *code,
        }
    }

    /// The file that the operation was on, where one was open.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Whether data that are there were not read, as their file is not to be trusted or in a folder that
    /// is not allowed.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        match &self.0.cause {
            Cause::Nc4(Nc4Error::Hdf { error, .. }) => error.is_refused(),
            Cause::Storage(error) => error.is_refused(),
            _ => false,
        }
    }

    /// The byte of the file that it is about, where it is about one: of what is damaged, or of what the
    /// device refused.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match &self.0.cause {
            Cause::Classic(error) => error.offset(),
            Cause::Nc4(error) => error.offset(),
            Cause::Storage(error) => error.offset(),
            Cause::Spec(_) | Cause::Refused(_) | Cause::Explained(..) | Cause::Told(..) => None,
        }
    }

    fn storage(&self) -> Option<&StorageError> {
        match &self.0.cause {
            Cause::Storage(error) | Cause::Classic(ClassicError::Storage(error)) => Some(error),
            Cause::Nc4(error) => error.storage(),
            _ => None,
        }
    }

    /// The user whose journal was refused, where the error is that: see [`crate::recover_of`].
    #[must_use]
    pub fn refused_owner(&self) -> Option<u32> {
        match self.storage()? {
            StorageError::Refused { why: Refusal::Owner, owner, .. } => *owner,
            _ => None,
        }
    }

    /// Whether a sync failed: what was put since the last good one may be lost, and where it was the
    /// sync of this file and not of one beside it, no later one can succeed.
    #[must_use]
    pub fn is_lost_sync(&self) -> bool {
        match &self.0.cause {
            Cause::Classic(error) => error.is_lost_sync(),
            Cause::Nc4(error) => error.is_lost_sync(),
            Cause::Storage(error) => error.is_lost_sync(),
            Cause::Spec(_) | Cause::Refused(_) | Cause::Explained(..) | Cause::Told(..) => false,
        }
    }

    /// Whether this is about a sync that `storage` lost, so that none of its syncs can succeed any more;
    /// that of a file beside it, such as a journal, is made anew.
    pub(crate) fn is_of_lost_file(&self, storage: &dyn Storage) -> bool {
        self.is_lost_sync() && storage.sync().is_err_and(|error| error.is_lost_sync())
    }

    /// Whether it is not about damage but about what is not here: a part of a format that Zonda does
    /// not read, or another file that has the data.
    #[must_use]
    pub fn is_about_what_is_not_here(&self) -> bool {
        let Cause::Nc4(Nc4Error::Hdf { error, .. }) = &self.0.cause else { return false };
        matches!(error, HdfError::Unsupported { .. }) || error.is_absence()
    }

    /// What is wrong, without the file.
    #[must_use]
    pub fn cause(&self) -> String {
        self.0.cause.to_string()
    }

    /// The same about another path, unless a path was said by the storage.
    pub(crate) fn anew_at(mut self, path: &Path) -> Error {
        self.0.path = Some(path.to_owned());
        self
    }

    pub(crate) fn at(mut self, path: &Path) -> Error {
        self.0.path.get_or_insert_with(|| path.to_owned());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Errors of the storage name their file themselves.
        let storage = self.storage().filter(|error| error.path().is_some());
        match (storage, &self.0.cause, &self.0.path) {
            // It is about a file beside the one that objects are in.
            (Some(error), _, _) if error.is_refused() => error.fmt(f),
            (Some(_), Cause::Storage(_) | Cause::Classic(_), _) | (_, _, None) => {
                self.0.cause.fmt(f)
            }
            (_, cause, Some(path)) => {
                // The storage may have named the file once more, behind the object.
                let own = format!("{}: ", path.display());
                write!(f, "{own}{}", cause.to_string().replacen(&own, "", 1))
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.cause {
            Cause::Classic(error) => Some(error),
            Cause::Nc4(error) => Some(error),
            Cause::Storage(error) => Some(error),
            Cause::Spec(error) => Some(error),
            Cause::Refused(code) | Cause::Explained(code, _) | Cause::Told(code, _) => Some(code),
        }
    }
}

impl From<ClassicError> for Error {
    fn from(error: ClassicError) -> Error {
        Error::new(Cause::Classic(error))
    }
}

impl From<Nc4Error> for Error {
    fn from(error: Nc4Error) -> Error {
        Error::new(Cause::Nc4(error))
    }
}

impl From<StorageError> for Error {
    fn from(error: StorageError) -> Error {
        Error::new(Cause::Storage(error))
    }
}

impl From<SpecError> for Error {
    fn from(error: SpecError) -> Error {
        Error::new(Cause::Spec(error))
    }
}

impl From<NoMemory> for Error {
    fn from(error: NoMemory) -> Error {
        Error::told(NcError::NoMem, error.to_string())
    }
}

impl From<NcError> for Error {
    fn from(code: NcError) -> Error {
        Error::new(Cause::Refused(code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explanation_follows_a_colon_and_no_full_stop() {
        let text = |code| Error::explained(code, "why").to_string();
        assert!(NcError::NotBuilt.to_string().ends_with('.'));
        assert!(text(NcError::NotBuilt).ends_with("netCDF was built: why"));
        assert_eq!(text(NcError::NotNc), format!("{}: why", NcError::NotNc));
        assert_eq!(Error::from(NcError::NotBuilt).to_string(), NcError::NotBuilt.to_string());
    }

    #[test]
    fn what_there_was_no_memory_for_is_said_once() {
        let _old = zonda_model::memory::take_refused();
        let refused = || NoMemory::of::<u64>(5);
        let object = String::from("/v");
        let cases = [
            Error::from(refused()),
            Error::from(NcError::from(refused())),
            Nc4Error::Refused { object, code: refused().into() }.into(),
        ];
        for error in cases {
            assert_eq!(
                (error.code(), error.cause().matches("40 bytes").count()),
                (NcError::NoMem, 1)
            );
        }
        assert!(!Error::from(NcError::NoMem).cause().contains("bytes"));
    }

    #[test]
    fn the_byte_is_known_through_all_layers() {
        let far = || StorageError::TooFar { op: zonda_storage::Op::Read, at: 7, len: 1 };
        let cycle = || zonda_hdf5::HdfError::Cycle { structure: "tree", at: 9 };
        let chunk = |error| Nc4Error::Chunk { object: String::from("/v"), error };
        let cases = [
            (Error::from(far()), Some(7)),
            (Error::from(ClassicError::from(far())), Some(7)),
            (ClassicError::BadMagic { found: vec![1] }.into(), Some(0)),
            (ClassicError::ReadOnly.into(), None),
            (Nc4Error::Hdf { object: String::from("/"), error: cycle() }.into(), Some(9)),
            (chunk(zonda_chunk::ChunkError::Table(Box::new(cycle()))).into(), Some(9)),
            (chunk(zonda_chunk::ChunkError::Truncated { at: 11, len: 1 }).into(), Some(11)),
            (chunk(zonda_chunk::ChunkError::NoMemory { bytes: 1 }).into(), None),
            (Error::explained(NcError::Inval, "at byte 5"), None),
        ];
        for (error, offset) in cases {
            assert_eq!(error.offset(), offset, "{error}");
            // Where there is one, the text says the same.
            if let Some(offset) = offset {
                assert!(error.to_string().contains(&format!("byte {offset}")), "{error}");
            }
        }
    }
}
