//! What a dead writer left beside a file.

use std::sync::Arc;

use zonda_storage::{Beside, Neighbour, Storage};

use crate::commit::finish_header;
use crate::error::ClassicError;
use crate::journal::{Body, Kind};
use crate::moving::Move;

/// What [`recover`] found, and what it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// There is no journal: the file is as its last commit left it.
    Nothing,
    /// The writer died before it had touched the file; the journal was removed.
    Untouched,
    /// The header was completed.
    Header,
    /// The move of data was completed, and the header.
    Move,
    /// The journal is not this file's, which somebody else made or changed since. Both were left as
    /// they are.
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
struct Left {
    journal: Arc<dyn Storage>,
    body: Body,
}

enum Look {
    Stop(Recovery),
    Left(Left),
}

fn look(storage: &dyn Storage, beside: &dyn Beside) -> Result<Look, ClassicError> {
    let Some(found) = beside.find(Neighbour::Journal)? else {
        return Ok(Look::Stop(Recovery::Nothing));
    };
    let Some(body) = Body::read(&*found.storage)? else {
        let state = if found.in_use { Recovery::InUse } else { Recovery::Untouched };
        return Ok(Look::Stop(state));
    };
    if !body.belongs_to(storage)? {
        return Ok(Look::Stop(Recovery::NotItsJournal));
    }
    if found.in_use {
        return Ok(Look::Stop(Recovery::InUse));
    }
    Ok(Look::Left(Left { journal: found.storage, body }))
}

/// Completes what a dead writer began, and removes its journal and its copy.
///
/// # Errors
/// What the storage reports; it can then be tried again.
pub fn recover(storage: &dyn Storage, beside: &Arc<dyn Beside>) -> Result<Recovery, ClassicError> {
    let done = match look(storage, &**beside)? {
        Look::Stop(Recovery::Untouched) => {
            beside.remove(Neighbour::Journal)?;
            Recovery::Untouched
        }
        Look::Stop(state) => state,
        Look::Left(Left { journal, body }) => match body.kind {
            Kind::Header => {
                finish_header(storage, Some(beside), &body.new)?;
                Recovery::Header
            }
            Kind::Move { .. } => {
                Move::resume(journal, &body)?.finish(storage, Some(beside))?;
                Recovery::Move
            }
        },
    };
    let copy = beside.find(Neighbour::Copy)?;
    if copy.is_some_and(|copy| !copy.in_use) {
        beside.remove(Neighbour::Copy)?;
    }
    Ok(done)
}

/// What a reader, who changes nothing, has to do about a journal.
///
/// # Errors
/// [`ClassicError::HalfMoved`] where the data lies partly here and partly there.
pub(crate) fn pending(storage: &dyn Storage, beside: &dyn Beside) -> Result<Pending, ClassicError> {
    let Some(found) = beside.find(Neighbour::Journal)? else { return Ok(Pending::Nothing) };
    match Body::read(&*found.storage)? {
        Some(body) if body.belongs_to(storage)? => match body.kind {
            Kind::Header => Ok(Pending::Header(body.new)),
            Kind::Move { .. } => Err(ClassicError::HalfMoved { in_use: found.in_use }),
        },
        _ => Ok(Pending::Nothing),
    }
}
