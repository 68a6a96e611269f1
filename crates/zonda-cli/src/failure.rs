//! Why a command failed, and the exit status that follows.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// What a command returns.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Why a command failed. Its text is one line, with the path where one is concerned.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Failed, for the reason given: exit status 1.
    Failed(String),
    /// The library refused or could not.
    Library(zonda::Error),
    /// Failed because of something in a file that is not named yet, see [`Failure::within`].
    InFile(String),
    /// Called wrongly: exit status 2.
    Usage(String),
    /// A program could not be started: 127 if it was not found, else 126, as shells have it.
    NotStarted(String, u8),
    /// Nobody reads what is written any more. No failure of ours: quiet, exit status 0.
    ReaderGone,
    /// Everything was said already: exit status 1.
    Reported,
}

impl Failure {
    /// Names the file, where the failure is in one and does not say which.
    pub(crate) fn within(self, path: &Path) -> Failure {
        match self {
            Failure::InFile(reason) => Failure::at(path, reason),
            Failure::Library(error) => Failure::Library(error.at(path)),
            other => other,
        }
    }

    /// A failure for a reason.
    pub(crate) fn text(reason: impl Into<String>) -> Failure {
        Failure::Failed(reason.into())
    }

    /// A failure at a path.
    pub(crate) fn at(path: &Path, reason: impl fmt::Display) -> Failure {
        Failure::Failed(format!("{}: {reason}", path.display()))
    }

    /// The reason.
    pub(crate) fn into_text(self) -> String {
        match self {
            Failure::Library(error) => error.line(),
            Failure::Failed(text) | Failure::InFile(text) | Failure::Usage(text) => text,
            Failure::NotStarted(text, _) => text,
            Failure::ReaderGone => "nobody reads the output".to_owned(),
            Failure::Reported => "failed".to_owned(),
        }
    }

    /// Says it on standard error, and gives the exit status.
    pub(crate) fn report(self) -> ExitCode {
        let (text, status) = match self {
            Failure::Library(error) => (error.line(), 1),
            Failure::Failed(text) | Failure::InFile(text) => (text, 1),
            Failure::Usage(text) => (text, 2),
            Failure::NotStarted(text, status) => (text, status),
            Failure::ReaderGone => return ExitCode::SUCCESS,
            Failure::Reported => return ExitCode::FAILURE,
        };
        eprintln!("zonda: {text}");
        ExitCode::from(status)
    }
}

/// Says on standard error what is not shown, for a command that goes on.
pub(crate) fn warn(what: zonda::Error) {
    eprintln!("zonda: {}", what.line());
}

impl From<zonda::Error> for Failure {
    fn from(error: zonda::Error) -> Failure {
        Failure::Library(error)
    }
}

impl From<zonda::memory::NoMemory> for Failure {
    fn from(error: zonda::memory::NoMemory) -> Failure {
        Failure::Library(error.into())
    }
}

impl From<io::Error> for Failure {
    /// For errors of standard output; those of files carry their path, see [`Failure::at`].
    fn from(error: io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::ReaderGone;
        }
        Failure::Failed(format!("standard output: {error}"))
    }
}
