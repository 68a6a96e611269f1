//! The journal that a killed writer left beside a file: whether it is the file's, and completing what it describes.

use std::sync::Arc;

#[cfg(doc)]
use zonda_storage::StorageError;
use zonda_storage::neighbour::{Refusal, warn_once};
use zonda_storage::{FoundSidecar, Sidecar, SidecarForReader, Sidecars, Storage, takes_no_files};

use crate::commit::finish_header;
use crate::error::ClassicError;
use crate::journal::{BODY_MAX, ChangeKind, JournalBody};
use crate::moving::Move;

/// What [`recover`] found, and what it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalRecovery {
    /// There is no journal: the file is as its last commit left it.
    Nothing,
    /// The writer died before it had touched the file; the journal was removed.
    Untouched,
    /// The header was completed.
    Header,
    /// The move of data was completed, and the header.
    Move,
    /// The journal is not that of this file, or another program changed the file since. Both were left as they are.
    NotItsJournal,
    /// The writer is alive. Nothing was done.
    InUse,
}

/// What opening a file needs to know about its journal.
#[derive(Debug)]
pub(crate) enum Pending {
    /// Nothing: the file is right.
    Nothing,
    /// The header to be read in the place of the file's.
    Header(Vec<u8>),
}

/// A journal that belongs to the file.
struct FoundJournal {
    journal: Arc<dyn Storage>,
    body: JournalBody,
}

enum JournalState {
    Done(JournalRecovery),
    FoundJournal(FoundJournal),
}

/// Another user's journal may have four times the bytes of the file, and this many more.
const THEIRS_LEAST: u64 = 1 << 20;

/// Whether a journal was written for the file in its present state.
fn is_its(body: &JournalBody, storage: &dyn Storage) -> Result<bool, ClassicError> {
    Ok(body.belongs_to(storage)?
        && (body.kind == ChangeKind::Header || Move::has_room(storage, body)?))
}

/// What completing an incomplete journal changes.
const NOTHING: &str = "nothing: it is not complete, and is removed";

fn look(storage: &dyn Storage, found: Option<FoundSidecar>) -> Result<JournalState, ClassicError> {
    let Some(found) = found else { return Ok(JournalState::Done(JournalRecovery::Nothing)) };
    let Some(body) = JournalBody::read(&*found.storage, BODY_MAX)? else {
        let state = if found.in_use { JournalRecovery::InUse } else { JournalRecovery::Untouched };
        return Ok(JournalState::Done(state));
    };
    if !is_its(&body, storage)? {
        return Ok(JournalState::Done(JournalRecovery::NotItsJournal));
    }
    if found.in_use {
        return Ok(JournalState::Done(JournalRecovery::InUse));
    }
    Ok(JournalState::FoundJournal(FoundJournal { journal: found.storage, body }))
}

/// Completes what a dead writer began, and removes its journal and its copy.
///
/// # Errors
/// [`StorageError::Refused`] for a journal that is not to be trusted; what the storage reports. It can
/// then be tried again.
pub fn recover(
    storage: &dyn Storage,
    sidecars: &Arc<dyn Sidecars>,
) -> Result<JournalRecovery, ClassicError> {
    let found = sidecars.find(Sidecar::Journal)?;
    complete(storage, sidecars, look(storage, found)?)
}

/// As [`recover`], with a journal that may belong to `user`, too. Before anything is changed, `show` gets the changes and may
/// refuse them by an error.
///
/// # Errors
/// As [`recover`], and those of `show`.
pub fn recover_of<E: From<ClassicError>>(
    storage: &dyn Storage,
    sidecars: &Arc<dyn Sidecars>,
    user: u32,
    show: impl FnOnce(&[String]) -> Result<(), E>,
) -> Result<JournalRecovery, E> {
    let found = sidecars.find_of(Sidecar::Journal, user).map_err(ClassicError::from)?;
    let found = look(storage, found)?;
    match &found {
        JournalState::FoundJournal(left) => show(&left.body.changes())?,
        JournalState::Done(JournalRecovery::Untouched) => show(&[NOTHING.to_owned()])?,
        JournalState::Done(_) => {}
    }
    Ok(complete(storage, sidecars, found)?)
}

fn complete(
    storage: &dyn Storage,
    sidecars: &Arc<dyn Sidecars>,
    found: JournalState,
) -> Result<JournalRecovery, ClassicError> {
    let done = match found {
        JournalState::Done(JournalRecovery::Untouched) => {
            sidecars.remove(Sidecar::Journal)?;
            JournalRecovery::Untouched
        }
        JournalState::Done(state) => state,
        JournalState::FoundJournal(FoundJournal { journal, body }) => match body.kind {
            ChangeKind::Header => {
                finish_header(storage, Some(sidecars), &body.new)?;
                JournalRecovery::Header
            }
            ChangeKind::Move { .. } => {
                Move::resume(journal, &body)?.finish(storage, Some(sidecars))?;
                JournalRecovery::Move
            }
        },
    };
    // A copy is useless now, and does no harm where it cannot be removed; a file that is not Zonda's copy is left alone.
    match sidecars.find(Sidecar::Copy) {
        Ok(Some(copy)) if !copy.in_use => match sidecars.remove(Sidecar::Copy) {
            Err(error) if !takes_no_files(error.raw_os_error()) => return Err(error.into()),
            _ => {}
        },
        Err(error) if error.is_refused() => warn_once(&error, "it is left as it is"),
        found => drop(found?),
    }
    Ok(done)
}

/// Completes what a dead writer began, for one who opens the file for writing; whether the writer is
/// alive instead.
///
/// # Errors
/// As [`recover`]; [`StorageError::Refused`] for a journal that is not this file's, too.
pub(crate) fn for_writing(
    storage: &dyn Storage,
    sidecars: &Arc<dyn Sidecars>,
) -> Result<bool, ClassicError> {
    match recover(storage, sidecars)? {
        JournalRecovery::NotItsJournal => {
            Err(sidecars.refuse(Sidecar::Journal, Refusal::OtherBytes).into())
        }
        done => Ok(done == JournalRecovery::InUse),
    }
}

/// What a reader, who changes nothing, has to do about a journal.
///
/// # Errors
/// [`ClassicError::HalfMoved`] where the data lies partly here and partly there;
/// [`StorageError::Refused`] for another user's journal that belongs to the file.
pub(crate) fn pending(
    storage: &dyn Storage,
    sidecars: &dyn Sidecars,
) -> Result<Pending, ClassicError> {
    let not_its = || {
        let error = sidecars.refuse(Sidecar::Journal, Refusal::OtherBytes);
        warn_once(&error, "the file is read without it");
        Ok(Pending::Nothing)
    };
    match sidecars.sight(Sidecar::Journal)? {
        SidecarForReader::Nothing => Ok(Pending::Nothing),
        SidecarForReader::Ours(found) => match JournalBody::read(&*found.storage, BODY_MAX)? {
            Some(body) if is_its(&body, storage)? => match body.kind {
                ChangeKind::Header => Ok(Pending::Header(body.new)),
                ChangeKind::Move { .. } => Err(ClassicError::HalfMoved { in_use: found.in_use }),
            },
            Some(_) => not_its(),
            None => Ok(Pending::Nothing),
        },
        SidecarForReader::Theirs(found, refused) => {
            let most = storage.len()?.saturating_mul(4).saturating_add(THEIRS_LEAST);
            match JournalBody::read(&*found.storage, most.min(BODY_MAX))? {
                Some(body) if is_its(&body, storage)? => match body.kind {
                    ChangeKind::Move { .. } if found.in_use => {
                        Err(ClassicError::HalfMoved { in_use: true })
                    }
                    _ => Err(refused.into()),
                },
                _ => not_its(),
            }
        }
    }
}
