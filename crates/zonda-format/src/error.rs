//! The error of every operation, with the code that C sees.

use std::fmt;
use std::path::{Path, PathBuf};

use zonda_model::memory::NoMemory;
use zonda_model::{Answer, NcError};
use zonda_storage::neighbour::Refusal;
use zonda_storage::{RemoteFailure, SpecError, Storage, StorageError, url};

/// An error of a format. Its text and its cause are those of [`std::error::Error`].
pub trait FormatError: std::error::Error + Send + Sync + 'static {
    /// The code that C sees.
    fn nc_error(&self) -> NcError;

    /// What kind of answer it is.
    fn answer(&self) -> Answer;

    /// The byte of the file that it is about, where it is about one.
    fn offset(&self) -> Option<u64>;

    /// The error of the storage, where that is the cause.
    fn storage(&self) -> Option<&StorageError>;

    /// Whether a sync failed.
    fn is_lost_sync(&self) -> bool {
        self.storage().is_some_and(StorageError::is_lost_sync)
    }

    /// Whether its text names an object in the file, so that the path of the file has to come before it. Else the
    /// error of the storage names the file.
    fn names_object(&self) -> bool {
        true
    }
}

/// What an operation on a dataset returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation failed: the cause and the file it happened to.
///
/// One word, since results are returned through many functions in calls that take 30 ns.
#[derive(Debug)]
pub struct Error(Box<Failure>);

#[derive(Debug)]
struct Failure {
    path: Option<PathBuf>,
    cause: Cause,
}

#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error("{0}")]
    Format(Box<dyn FormatError>),
    #[error(transparent)]
    Storage(StorageError),
    #[error("layer spec: {0}")]
    Spec(SpecError),
    #[error("{0}")]
    Refused(NcError),
    #[error("{}: {}", clause(.0), .1)]
    Explained(NcError, &'static str),
    #[error("{}", .0.text)]
    WordedError(WordedError),
}

/// An error with a text of its own.
#[derive(Debug)]
struct WordedError {
    code: NcError,
    text: String,
    answer: Answer,
    offset: Option<u64>,
}

/// The code for a file behind a URL that cannot be opened, as the reference has it: what answers, but not with a netCDF file, is of an
/// unknown format; what does not answer is a failure of its library for HTTP. (Reads of an open file have the codes of their formats.)
#[must_use]
pub fn remote_code(kind: RemoteFailure) -> NcError {
    match kind {
        RemoteFailure::NotFound | RemoteFailure::Denied | RemoteFailure::Broken => NcError::NotNc,
        RemoteFailure::Unusable | RemoteFailure::Unreachable | RemoteFailure::TimedOut => {
            NcError::Curl
        }
        RemoteFailure::ReadOnly => NcError::System(EACCES),
        RemoteFailure::NoMemory => NcError::NoMem,
    }
}

/// `EACCES` of Linux on every architecture.
const EACCES: i32 = 13;

/// A path as errors may have it: a URL without its secrets.
fn shown(path: &Path) -> PathBuf {
    if url::is_url(path) { PathBuf::from(&*url::shown(path)) } else { path.to_owned() }
}

/// The text of a code as the first half of a sentence: some texts of netCDF end in a full stop.
fn clause(code: &NcError) -> String {
    code.to_string().trim_end_matches('.').to_owned()
}

impl Error {
    /// An error whose text is that of its code, and then why.
    #[must_use]
    pub fn because(code: NcError, why: &'static str) -> Error {
        Error::new(Cause::Explained(code, why))
    }

    /// The error of a call that would change a file of a format that can only be read.
    #[must_use]
    pub fn only_read() -> Error {
        Error::because(NcError::Perm, "files of this format can only be read")
    }

    /// An error whose text replaces that of its code. The code says what kind of answer it is.
    #[must_use]
    pub fn with_text(code: NcError, text: impl Into<String>) -> Error {
        Error::answered(code, Answer::of_code(code), text)
    }

    /// As [`Error::with_text`], where the code does not say what kind of answer it is.
    pub fn answered(code: NcError, answer: Answer, text: impl Into<String>) -> Error {
        let text = text.into();
        Error::new(Cause::WordedError(WordedError { code, text, answer, offset: None }))
    }

    /// Notes which byte of the file an error with a text of its own is about; the text has to name it, too. Other errors know
    /// the byte from their cause.
    #[must_use]
    pub fn about_byte(mut self, at: u64) -> Error {
        if let Cause::WordedError(with_text) = &mut self.0.cause {
            with_text.offset = Some(at);
        }
        self
    }

    /// The same error with another text: code, kind of answer and byte stay.
    pub fn with_other_text(self, text: impl Into<String>) -> Error {
        let (code, answer, offset) = (self.code(), self.answer(), self.offset());
        let cause = Cause::WordedError(WordedError { code, text: text.into(), answer, offset });
        Error(Box::new(Failure { path: self.0.path, cause }))
    }

    /// The same error for a value in the header of a file: what would be an error of the caller elsewhere is damage
    /// there.
    pub fn in_a_header(self) -> Error {
        if self.answer() != Answer::Request {
            return self;
        }
        let text = self.cause();
        let mut error = self.with_other_text(text);
        if let Cause::WordedError(with_text) = &mut error.0.cause {
            with_text.answer = Answer::Damaged;
        }
        error
    }

    fn new(cause: Cause) -> Error {
        let error = Error(Box::new(Failure { path: None, cause }));
        if error.code() != NcError::NoMem {
            return error;
        }
        // The code has no place for the number of bytes, which the reader of the message needs.
        match zonda_model::memory::take_refused() {
            Some(bytes) if !error.cause().contains(" bytes") => {
                let text = format!("{error}: there is no memory for {bytes} bytes");
                error.with_other_text(text)
            }
            _ => error,
        }
    }

    /// The code that C sees.
    #[must_use]
    pub fn code(&self) -> NcError {
        match &self.0.cause {
            Cause::Format(error) => error.nc_error(),
            Cause::Storage(StorageError::NoMemory { .. }) => NcError::NoMem,
            Cause::Storage(StorageError::Remote { kind, .. }) => remote_code(*kind),
            Cause::Storage(error) => NcError::System(error.raw_os_error()),
            Cause::Spec(_) => NcError::Inval,
            Cause::Refused(code) | Cause::Explained(code, _) => *code,
            Cause::WordedError(with_text) => with_text.code,
        }
    }

    /// The kind of answer: the file is damaged, netCDF cannot represent a part of it, or a part cannot be decoded
    /// here; or it is not about the file at all.
    #[must_use]
    pub fn answer(&self) -> Answer {
        match &self.0.cause {
            Cause::Format(error) => error.answer(),
            Cause::Storage(error) if error.is_refused() => Answer::Refused,
            Cause::Storage(error) => Answer::of_errno(error.raw_os_error()),
            Cause::Spec(_) => Answer::Request,
            Cause::Refused(code) | Cause::Explained(code, _) => Answer::of_code(*code),
            Cause::WordedError(with_text) => with_text.answer,
        }
    }

    /// The line that a tool prints: the file, what is wrong, and in brackets which of the three answers about files it is, if
    /// it is one.
    #[must_use]
    pub fn line(&self) -> String {
        self.answer().said_of(self)
    }

    /// The file that the operation was on, where one was open.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Whether data were refused, because their file is not trusted or is in a folder that is not allowed.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.answer() == Answer::Refused
    }

    /// The byte of the file that it is about, where it is about one: of what is damaged, or of what the
    /// device refused.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match &self.0.cause {
            Cause::Format(error) => error.offset(),
            Cause::Storage(error) => error.offset(),
            Cause::WordedError(with_text) => with_text.offset,
            Cause::Spec(_) | Cause::Refused(_) | Cause::Explained(..) => None,
        }
    }

    fn storage(&self) -> Option<&StorageError> {
        match &self.0.cause {
            Cause::Storage(error) => Some(error),
            Cause::Format(error) => error.storage(),
            _ => None,
        }
    }

    /// How a request to a server failed, where that is the cause.
    #[must_use]
    pub fn remote_failure(&self) -> Option<RemoteFailure> {
        match self.storage()? {
            StorageError::Remote { kind, .. } => Some(*kind),
            _ => None,
        }
    }

    /// The user whose journal was refused, where the error is that: see `zonda::recover_of`.
    #[must_use]
    pub fn refused_owner(&self) -> Option<u32> {
        match self.storage()? {
            StorageError::Refused { why: Refusal::Owner, owner, .. } => *owner,
            _ => None,
        }
    }

    /// Whether a sync failed: what was put since the last sync that succeeded may be lost. Where it was the sync of
    /// this file, and not of a sidecar, no later one can succeed.
    #[must_use]
    pub fn is_lost_sync(&self) -> bool {
        match &self.0.cause {
            Cause::Format(error) => error.is_lost_sync(),
            Cause::Storage(error) => error.is_lost_sync(),
            Cause::Spec(_) | Cause::Refused(_) | Cause::Explained(..) | Cause::WordedError(..) => {
                false
            }
        }
    }

    /// Whether this is about a failed sync of `storage` itself, so that none of its syncs can succeed any more. (A
    /// sidecar, such as a journal, is made anew.)
    pub fn is_of_lost_file(&self, storage: &dyn Storage) -> bool {
        self.is_lost_sync() && storage.sync().is_err_and(|error| error.is_lost_sync())
    }

    /// What is wrong, without the file.
    #[must_use]
    pub fn cause(&self) -> String {
        self.0.cause.to_string()
    }

    /// The same error with another path, unless the storage gave a path.
    pub fn at_instead(mut self, path: &Path) -> Error {
        self.0.path = Some(shown(path));
        self
    }

    /// Names the file that it is about, unless it has one already.
    #[must_use]
    pub fn at(mut self, path: &Path) -> Error {
        self.0.path.get_or_insert_with(|| shown(path));
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Errors of the storage name their file themselves.
        let storage = self.storage().filter(|error| error.path().is_some());
        match (storage, &self.0.cause, &self.0.path) {
            // It is about a sidecar, and not the file that has the objects.
            (Some(error), _, _) if error.is_refused() => error.fmt(f),
            (Some(_), Cause::Storage(_), _) | (_, _, None) => self.0.cause.fmt(f),
            (Some(_), Cause::Format(error), _) if !error.names_object() => error.fmt(f),
            (_, cause, Some(path)) => {
                // The storage may have named the file again, after the object; ranks do so after the call.
                let own = format!("{}: ", path.display());
                let cause = cause.to_string().replacen(&format!(" of {own}"), ": ", 1);
                // Not the end of a longer path.
                let mut again = cause.match_indices(&own).map(|(at, _)| at);
                let at = again.find(|&at| !cause[..at].ends_with('/'));
                match at {
                    Some(at) => write!(f, "{own}{}{}", &cause[..at], &cause[at + own.len()..]),
                    None => write!(f, "{own}{cause}"),
                }
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.cause {
            Cause::Format(error) => Some(&**error),
            Cause::Storage(error) => Some(error),
            Cause::Spec(error) => Some(error),
            Cause::Refused(code) | Cause::Explained(code, _) => Some(code),
            Cause::WordedError(with_text) => Some(&with_text.code),
        }
    }
}

impl<E: FormatError> From<E> for Error {
    fn from(error: E) -> Error {
        Error::new(Cause::Format(Box::new(error)))
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
        Error::with_text(NcError::NoMem, error.to_string())
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
        let text = |code| Error::because(code, "why").to_string();
        assert!(NcError::NotBuilt.to_string().ends_with('.'));
        assert!(text(NcError::NotBuilt).ends_with("netCDF was built: why"));
        assert_eq!(text(NcError::NotNc), format!("{}: why", NcError::NotNc));
        assert_eq!(Error::from(NcError::NotBuilt).to_string(), NcError::NotBuilt.to_string());
    }

    #[test]
    fn a_file_is_named_once() {
        for cause in ["nc_sync of /x/y.nc: waited", "nc_sync: waited", "/x/y.nc: nc_sync: waited"] {
            let error = Error::with_text(NcError::Mpi, cause).at(Path::new("/x/y.nc"));
            assert_eq!(error.to_string(), "/x/y.nc: nc_sync: waited");
        }
    }

    #[test]
    fn an_error_in_words_of_its_own_knows_its_byte() {
        let error = Error::with_text(NcError::Trunc, "values at byte 7: no more").about_byte(7);
        assert_eq!(
            (error.offset(), error.with_other_text("other words").offset()),
            (Some(7), Some(7))
        );
        assert_eq!(Error::from(NcError::Trunc).about_byte(7).offset(), None);
    }

    #[test]
    fn a_result_is_one_word() {
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }
}
