//! Reading again what others have changed in a file that is open.
//!
//! Whether anything changed is asked of the storage ([`Stamp`]): one system call, and nothing else
//! where nobody writes. Looking at bytes instead would be more: no single block changes with every
//! change. A new record in space that was free moves neither the end of the file nor, where libhdf5
//! writes, more than one block of one of many headers. A file system's clock has steps, though, so a
//! stamp is believed only once it was seen for longer than the longest of them.
//!
//! What changed is not asked: all that was decoded is dropped, objects are walked again, and the
//! definitions keep their numbers ([`renumber`]).

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use zonda_format::{StoreVars as _, VarRef};
use zonda_hdf5::{File, HdfError};
use zonda_model::{NcError, VarId};
use zonda_storage::{Stamp, Storage};

use crate::file::{Nc4File, hdf};
use crate::files::Files;
use crate::model::{GroupId, Model};
use crate::tuning::{
    CHANGING_SECONDS, REREAD_PAUSE, REREADS_CHANGING, REREADS_UNCHANGED, STAMP_SETTLES_AFTER,
};
use crate::walk::Walk;
use crate::{Damaged, Nc4Error, Result};

mod renumber;

/// For one who reads what does not fit together: another program may be writing it just now. Others
/// than this library write metadata where they are, in several pieces.
///
/// A file that nobody changed lately is damaged, and is not read again.
#[derive(Debug)]
pub(crate) struct TornReadRetry<'a> {
    storage: &'a dyn Storage,
    stamp: Option<Stamp>,
    tries: u32,
}

impl<'a> TornReadRetry<'a> {
    /// To be made before the first try.
    pub(crate) fn with(storage: &'a dyn Storage, read: &ReadState) -> TornReadRetry<'a> {
        TornReadRetry { storage, stamp: read.stamp, tries: 0 }
    }

    /// Whether to try again, after a pause and with nothing kept of what was read.
    pub(crate) fn is_left(&mut self) -> bool {
        let stamp = self.storage.stamp().ok();
        let changes = stamp != self.stamp;
        let may_change =
            changes || stamp.is_some_and(|stamp| stamp.is_younger_than(CHANGING_SECONDS));
        let most = if changes { REREADS_CHANGING } else { REREADS_UNCHANGED };
        if !may_change || self.tries >= most {
            return false;
        }
        std::thread::sleep(REREAD_PAUSE.saturating_mul(1 << self.tries.min(4)));
        (self.stamp, self.tries) = (stamp, self.tries.saturating_add(1));
        self.storage.invalidate().is_ok()
    }
}

/// Whether an error can come from reading in the middle of a change.
pub(crate) fn may_be_torn(error: &HdfError) -> bool {
    !matches!(
        error,
        HdfError::Storage(_) | HdfError::Unsupported { .. } | HdfError::Elsewhere { .. }
    )
}

/// What was read, and when.
#[derive(Clone, Debug)]
pub(crate) struct ReadState {
    stamp: Option<Stamp>,
    /// When this state of the file was first seen.
    since: Instant,
    /// It was read when it had been seen for long enough: whatever is written next has another stamp.
    is_settled: bool,
}

impl ReadState {
    /// The state of a storage from which nothing was read yet.
    pub(crate) fn now(storage: &dyn Storage) -> ReadState {
        ReadState { stamp: storage.stamp().ok(), since: Instant::now(), is_settled: false }
    }

    /// The state now; `None` where it is the same for certain.
    fn next(&self, storage: &dyn Storage) -> Option<ReadState> {
        let now = ReadState::now(storage);
        if now.stamp.is_none() || now.stamp != self.stamp {
            return Some(now);
        }
        if self.is_settled {
            return None;
        }
        let is_settled = self.since.elapsed() > STAMP_SETTLES_AFTER;
        Some(ReadState { since: self.since, is_settled, ..now })
    }
}

impl Nc4File {
    /// For a file that is open for reading: sees what was committed since, by whom ever. Groups,
    /// dimensions, types and variables keep their numbers, those that are new follow, and those that
    /// are gone stay as names without a type. Chunk caches stay as they were set. True where
    /// something may have changed.
    ///
    /// # Errors
    /// As [`Nc4File::open`] and [`Nc4File::model`]; the file is then as it was before.
    pub(crate) fn refresh_if_changed(&mut self) -> Result<bool> {
        let storage = Arc::clone(self.hdf5().storage());
        if self.writing.is_some() || self.how.damaged != Damaged::Refuse {
            return Ok(false);
        }
        let Some(read) = self.read.next(&*storage) else { return Ok(false) };
        storage.invalidate().map_err(|error| hdf(String::from("/"), error.into()))?;
        let mut patience = TornReadRetry::with(&*storage, &read);
        let (files, model) = loop {
            match self.anew(&storage) {
                Ok((files, Some(model))) if !model.is_whole() && patience.is_left() => {
                    drop((files, model));
                }
                Err(Nc4Error::Hdf { error, .. }) if may_be_torn(&error) && patience.is_left() => {}
                done => break done?,
            }
        };
        let model = match (self.model.get(), model) {
            (Some(old), Some(new)) => Some(renumber::as_before(old, new)),
            (_, new) => new,
        };
        let caches = self.caches_set();
        (self.files, self.read) = (files, read);
        let paths = |model: &Model| -> Vec<String> {
            model.gaps.iter().map(|gap| gap.path.clone()).collect()
        };
        if let Some(model) = &model
            && self.model.get().map(paths) != Some(paths(model))
        {
            self.how.report_gaps(&model.gaps);
        }
        self.model = model.map(Into::into).unwrap_or_default();
        for (var, cache) in caches {
            // One that cannot be read any more needs no cache.
            let _ = self.set_chunk_cache(var, cache);
        }
        Ok(true)
    }

    /// To be asked when reading failed, again and again with the same `tries`, which begins at 0:
    /// whether another program may have been writing what was read, after a pause and with all of it
    /// read again. False where the file is open for writing, or damaged.
    pub(crate) fn wait_for_writer(&mut self, tries: &mut u32) -> bool {
        if self.writing.is_some() || self.how.damaged != Damaged::Refuse {
            return false;
        }
        let storage = Arc::clone(self.hdf5().storage());
        let mut patience =
            TornReadRetry { tries: *tries, ..TornReadRetry::with(&*storage, &self.read) };
        let is_left = patience.is_left();
        *tries = patience.tries;
        // Torn itself, it is read once more the next time.
        let _ = is_left && self.refresh_if_changed().is_ok();
        is_left
    }

    /// For a file that is open for writing and of which nothing is changed: the same, after another
    /// writer of this process changed it.
    ///
    /// # Errors
    /// As [`Nc4File::open_for_writing`]; `NC_EHDFERR` where definitions have other numbers than
    /// before, which a writer cannot take over. The file is then as it was before.
    pub(crate) fn open_anew(&mut self) -> Result<()> {
        let storage = Arc::clone(self.hdf5().storage());
        storage.invalidate().map_err(|error| hdf(String::from("/"), error.into()))?;
        let mut anew = Nc4File::open_for_writing(storage, Path::new("/"), self.how.clone())?;
        if let (Some(old), Some(new)) = (self.model.get(), anew.model.get())
            && !renumber::goes_on(old, new)
        {
            let why = "another id of this program changed the definitions, and numbers of variables differ now: close the file and open it again";
            let object = String::from(why);
            return Err(Nc4Error::Refused { object, code: NcError::HdfErr });
        }
        if let (Some(old), Some(new)) = (&self.writing, &mut anew.writing) {
            new.mode = old.mode;
        }
        let caches = self.caches_set();
        *self = anew;
        for (var, cache) in caches {
            let _ = self.set_chunk_cache(var, cache);
        }
        Ok(())
    }

    /// The file as it is now, with its definitions if somebody asked for them before: until then
    /// nothing has a number.
    fn anew(&self, storage: &Arc<dyn Storage>) -> Result<(Files, Option<Model>)> {
        let fail = |error| hdf(String::from("/"), error);
        let below = File::open(Arc::clone(storage)).map_err(fail)?;
        let below = below.with_unfilter(crate::var_data::unfilter(self.how.find_filter.clone()));
        below.object(below.root()).map_err(fail)?;
        let files = Files::new(Arc::new(below), self.how.path.clone());
        let model = match self.model.get() {
            Some(_) => {
                let walked = Walk::run(&files, self.how.damaged);
                Some(walked.map_err(|fault| hdf(fault.path, fault.error))?)
            }
            None => None,
        };
        Ok((files, model))
    }

    /// Chunk caches that were set.
    fn caches_set(&self) -> Vec<(VarRef, (usize, usize, f32))> {
        let groups = self.model.get().into_iter().flat_map(|model| &model.groups);
        let mut set = Vec::new();
        for (group, list) in (0..=u16::MAX).map(GroupId).zip(groups) {
            for (id, var) in (0..).map(VarId).zip(&list.vars) {
                let cache = var.details.get().and_then(|details| *details.cache.lock());
                set.extend(cache.map(|cache| (VarRef { group, var: id }, cache)));
            }
        }
        set
    }
}

#[cfg(test)]
mod tests;
