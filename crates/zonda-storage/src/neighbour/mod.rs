//! The one place that opens files other than the one that a program asked for.
//!
//! Whoever may write to a folder can put a file there under any name. So a file that is opened because
//! of its name beside another, or because of what a file says, is looked at before it is trusted. There
//! are three classes of such files, one module each:
//!
//! | Class | What | What it must be |
//! |---|---|---|
//! | `acting` | what changes the file: journal, copy, temporary file | no symbolic link, regular, of one name; it belongs to the owner of the file, to root or to us |
//! | `data` | what values are taken from: external, virtual and linked files | regular, once links are resolved; in a folder that is allowed |
//! | `plugin` | what is run: filter plugins, the helper program | file and folder belong to root or to us, and nobody else may write them |
//!
//! No class waits: a pipe, a device or a file that is leased to others gives an answer at once.
//!
//! What a class does not take is *refused*: [`StorageError::Refused`], with
//! the reason as a [`Refusal`]. It is not "missing" (the file is there), it is not "permission denied"
//! (the system would open it), and no layer above may make either, or fill values, of it.

pub(crate) mod acting;
pub mod data;
pub mod plugin;

use crate::os::{Errno, Fd, Status};
use crate::{Sidecar, StorageError};
use std::collections::BTreeSet;
use std::fmt;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use zonda_runtime::lock::{Global, Rank};

pub use acting::journal_id;

/// What a name in a folder stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileKind {
    /// A file with bytes.
    Regular,
    /// A folder.
    Folder,
    /// A symbolic link.
    SymbolicLink,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A device of blocks or characters.
    Device,
    /// None of these.
    Other,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileKind::Regular => "a regular file",
            FileKind::Folder => "a folder",
            FileKind::SymbolicLink => "a symbolic link",
            FileKind::Fifo => "a named pipe (FIFO)",
            FileKind::Socket => "a socket",
            FileKind::Device => "a device",
            FileKind::Other => "no regular file",
        })
    }
}

/// Why a file that is there is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// It is not the kind of file that is needed, which is a regular one.
    Kind(FileKind),
    /// It has several names (hard links), so somebody else may change it elsewhere.
    SeveralLinks,
    /// It belongs to somebody who is neither the owner of the file nor root nor the user of this process.
    Owner,
    /// It, or its folder, can be written by users who are not trusted.
    Writable,
    /// Somebody put another file in its place while it was in use.
    Replaced,
    /// It is a journal that was not written for the bytes that are in the file.
    OtherBytes,
    /// It lies in none of the folders from which this file may take data.
    Outside,
    /// The environment names it, and the program runs with more rights than its caller has.
    Environment,
    /// A file that came over a network names it: such a file may not choose what is read of this machine, or of others.
    FromAfar,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Kind(kind) => write!(f, "it is {kind}"),
            Refusal::SeveralLinks => f.write_str("it has several names (hard links)"),
            Refusal::Owner => f.write_str("it belongs to another user"),
            Refusal::Writable => f.write_str("other users may write it or its folder"),
            Refusal::Replaced => f.write_str("somebody exchanged it while it was in use"),
            Refusal::OtherBytes => {
                f.write_str("it is a journal, and the file is not the one that it was written for")
            }
            Refusal::Outside => {
                f.write_str("it is outside the file's folder and those that ZONDA_EXTERNAL allows")
            }
            Refusal::Environment => f.write_str(
                "the environment names it, and the program runs with rights that its caller lacks",
            ),
            Refusal::FromAfar => f.write_str("a file behind a network may not name other files"),
        }
    }
}

/// What a message says may be done about a neighbour that is refused.
pub(crate) fn remedy(path: &Path, why: Refusal) -> &'static str {
    let is_journal = path.as_os_str().as_bytes().ends_with(Sidecar::Journal.suffix().as_bytes());
    match why {
        _ if !is_journal => "",
        Refusal::Owner => {
            " (it is of a change that was not completed: zonda recover shows what it would change, \
             and makes the change with --trust)"
        }
        Refusal::OtherBytes => " (it may be removed, unless that file is to come back)",
        Refusal::Kind(_) | Refusal::SeveralLinks | Refusal::Writable => {
            " (no writer of this library leaves such a journal: it may be removed)"
        }
        Refusal::Replaced | Refusal::Outside | Refusal::Environment | Refusal::FromAfar => "",
    }
}

/// A user as messages name one: `nobody (65534)`, or the number alone where it has no name.
pub(crate) fn user(id: u32) -> String {
    match crate::os::user_name(id) {
        Some(name) => format!("{name} ({id})"),
        None => id.to_string(),
    }
}

/// The owner of a refused file, as a part of a message; empty where it is not known.
pub(crate) fn of_owner(owner: Option<u32>) -> String {
    owner.map_or_else(String::new, |id| format!("; its owner is user {}", user(id)))
}

/// The number of a user who is given by name or by number; none where there is no such user.
#[must_use]
pub fn user_id(name: &str) -> Option<u32> {
    name.parse().ok().or_else(|| crate::os::user_id(name))
}

/// Opens a file without waiting for anybody, and says what was opened. `flags` may have `O_NOFOLLOW`.
pub(crate) fn open_at_once(path: &Path, flags: libc::c_int) -> Result<(Fd, Status), Errno> {
    let fd = Fd::open(path, flags | libc::O_NONBLOCK | libc::O_NOCTTY)?;
    let status = fd.status()?;
    Ok((fd, status))
}

/// Files that a warning was written about; each gets one.
static TOLD: Global<BTreeSet<PathBuf>> = Global::new(Rank::Said, BTreeSet::new(), BTreeSet::new);

/// Most files that warnings are written about.
const MOST_TOLD: usize = 64;

/// Writes a line to standard error, once for each file of a process: something beside a file is not to
/// be trusted, and `instead` is what is done without it.
pub fn warn_once(error: &StorageError, instead: &str) {
    let path = error.path().map(Path::to_owned).unwrap_or_default();
    let mut known = TOLD.lock();
    if known.len() < MOST_TOLD && known.insert(path) {
        // A program whose standard error is closed still runs.
        let _ = writeln!(std::io::stderr().lock(), "zonda: {error}; {instead}");
    }
}

/// Whether the environment may name code to be run, files to be written and settings to be read: not in
/// programs that run with more rights than their caller has (set-user-id), to whom the environment belongs.
#[must_use]
pub fn trusts_environment() -> bool {
    !crate::os::has_more_rights_than_caller()
}

/// A variable of the environment that names code to be run, files to be written or settings to be read;
/// none in programs that run with more rights than their caller has (set-user-id).
#[must_use]
pub fn from_env(name: &str) -> Option<std::ffi::OsString> {
    trusts_environment().then(|| std::env::var_os(name)).flatten()
}

/// Removes what a dead writer may have left beside the file at `path`, which has just been replaced by
/// another. What cannot be removed does no harm: a journal knows its file.
pub fn forget(path: &Path) {
    for which in [Sidecar::Journal, Sidecar::Copy] {
        let _ = std::fs::remove_file(which.of(path));
    }
}
