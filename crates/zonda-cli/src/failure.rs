//! Why a command failed, and the exit status that follows.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// What a command returns.
pub(crate) type Result<T> = std::result::Result<T, CommandFailure>;

/// Why a command failed. Its text is one line, which begins with the path if a file is concerned.
#[derive(Debug)]
pub(crate) enum CommandFailure {
    /// Failed, for the reason given: exit status 1.
    Failed(String),
    /// An error of the library: exit status 1.
    Library(zonda::Error),
    /// An error in a file whose path is still to be added, see [`CommandFailure::within`].
    InFile(String),
    /// Called wrongly: exit status 2.
    Usage(String),
    /// A program could not be started: 127 if it was not found, else 126, as shells have it.
    NotStarted(String, u8),
    /// The reader of standard output went away. This is no failure of the command: it says nothing,
    /// and its exit status is 0.
    ReaderGone,
    /// The command has reported the failure already: exit status 1.
    Reported,
}

impl CommandFailure {
    /// Adds the path of the file to a failure that lacks it.
    pub(crate) fn within(self, path: &Path) -> CommandFailure {
        match self {
            CommandFailure::InFile(reason) => CommandFailure::at(path, reason),
            CommandFailure::Library(error) => CommandFailure::Library(error.at(path)),
            other => other,
        }
    }

    /// A failure for a reason.
    pub(crate) fn text(reason: impl Into<String>) -> CommandFailure {
        CommandFailure::Failed(reason.into())
    }

    /// A failure at a path.
    pub(crate) fn at(path: &Path, reason: impl fmt::Display) -> CommandFailure {
        CommandFailure::Failed(format!("{}: {reason}", zonda::shown_name(path).display()))
    }

    /// The reason.
    pub(crate) fn into_text(self) -> String {
        match self {
            CommandFailure::Library(error) => error.line(),
            CommandFailure::Failed(text)
            | CommandFailure::InFile(text)
            | CommandFailure::Usage(text) => text,
            CommandFailure::NotStarted(text, _) => text,
            CommandFailure::ReaderGone => "nobody reads the output".to_owned(),
            CommandFailure::Reported => "failed".to_owned(),
        }
    }

    /// Prints the failure on standard error and returns the exit status.
    pub(crate) fn report(self) -> ExitCode {
        let (text, status) = match self {
            CommandFailure::Library(error) => (error.line(), 1),
            CommandFailure::Failed(text) | CommandFailure::InFile(text) => (text, 1),
            CommandFailure::Usage(text) => (text, 2),
            CommandFailure::NotStarted(text, status) => (text, status),
            CommandFailure::ReaderGone => return ExitCode::SUCCESS,
            CommandFailure::Reported => return ExitCode::FAILURE,
        };
        eprintln!("zonda: {text}");
        ExitCode::from(status)
    }
}

/// Prints on standard error why something is not shown; the command goes on.
pub(crate) fn warn(what: zonda::Error) {
    eprintln!("zonda: {}", what.line());
}

impl From<zonda::Error> for CommandFailure {
    fn from(error: zonda::Error) -> CommandFailure {
        CommandFailure::Library(error)
    }
}

impl From<zonda::memory::NoMemory> for CommandFailure {
    fn from(error: zonda::memory::NoMemory) -> CommandFailure {
        CommandFailure::Library(error.into())
    }
}

impl From<io::Error> for CommandFailure {
    /// Errors of standard output. Those of files have a path, see [`CommandFailure::at`].
    fn from(error: io::Error) -> CommandFailure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return CommandFailure::ReaderGone;
        }
        CommandFailure::Failed(format!("standard output: {error}"))
    }
}
