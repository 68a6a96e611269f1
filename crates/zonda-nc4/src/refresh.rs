//! Finding out whether what was read of an open file is stale, and reading it again.
//!
//! What was read is *stale* where the storage has another [`StorageStamp`] (length and times) than when it was read.
//! That costs one system call, and nothing else where nobody writes. Comparing bytes would cost more, because no
//! single block changes with every change: a new record in free space does not move the end of the file, and
//! libhdf5 then writes one block of one of many headers. The clock of a file system has steps, so that two states of
//! a file may have one stamp: a stamp is believed only once it was seen for longer than the longest step.
//!
//! All that is stale is dropped: which part of it changed is not found out. Objects are walked again, and
//! definitions keep their numbers ([`renumber`]).

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use zonda_format::{StoreVars as _, VarRef};
use zonda_hdf5::{File, HdfError};
use zonda_model::{NcError, VarId};
use zonda_storage::{Storage, StorageStamp};

use crate::file::{Nc4File, hdf};
use crate::files::Files;
use crate::model::{GroupId, Model};
use crate::tuning::{
    CHANGING_SECONDS, REREAD_PAUSE, REREADS_CHANGING, REREADS_UNCHANGED, STAMP_SETTLES_AFTER,
};
use crate::walk::Walk;
use crate::{Damaged, Nc4Error, Result};

mod renumber;

/// Decides whether structures that contradict each other are read again: another program may be writing them
/// at this moment. Programs with libhdf5 write metadata over, in several pieces.
///
/// A file that was not changed lately is taken for damaged, and is not read again.
#[derive(Debug)]
pub(crate) struct TornReadRetry<'a> {
    storage: &'a dyn Storage,
    stamp: Option<StorageStamp>,
    tries: u32,
}

impl<'a> TornReadRetry<'a> {
    /// To be made before the first try.
    pub(crate) fn with(storage: &'a dyn Storage, read: &ReadState) -> TornReadRetry<'a> {
        TornReadRetry { storage, stamp: read.stamp, tries: 0 }
    }

    /// Whether to read again. If so, waits and drops what the layers below have read.
    pub(crate) fn is_left(&mut self) -> bool {
        let stamp = self.storage.stamp().ok();
        let changes = stamp != self.stamp;
        // Ranks that read the same must not depend on their clocks.
        let is_young = || stamp.is_some_and(|stamp| stamp.is_younger_than(CHANGING_SECONDS));
        let may_change = changes || (!self.storage.has_other_writers() && is_young());
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
        HdfError::Storage(_) | HdfError::Unsupported { .. } | HdfError::InOtherFile { .. }
    )
}

/// The state of the file that was read, and since when that state is known.
#[derive(Clone, Debug)]
pub(crate) struct ReadState {
    stamp: Option<StorageStamp>,
    /// When this state of the file was first seen.
    since: Instant,
    /// The state was known for long enough when the file was read: whatever is written next changes the stamp.
    is_settled: bool,
}

impl ReadState {
    /// The state of a storage from which nothing was read yet.
    pub(crate) fn now(storage: &dyn Storage) -> ReadState {
        ReadState { stamp: storage.stamp().ok(), since: Instant::now(), is_settled: false }
    }

    /// The state now; `None` where nothing that was read is stale.
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
    /// Reads a file that is open for reading again, if what was read of it is stale. Groups, dimensions, types and
    /// variables keep their numbers; new ones follow, and those that are not in the file any more stay as names
    /// without a type. Sizes of chunk caches stay as they were set. True where something may have changed.
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
            // A variable that cannot be read any more needs no cache.
            let _ = self.set_chunk_cache(var, cache);
        }
        Ok(true)
    }

    /// Whether a read that failed should be tried again, because another program may have been writing what was
    /// read. If so, waits and reads the definitions again first. The caller passes the same `tries` each time; it
    /// begins at 0. False where the file is open for writing, or was opened as a damaged one.
    pub(crate) fn wait_for_writer(&mut self, tries: &mut u32) -> bool {
        if self.writing.is_some() || self.how.damaged != Damaged::Refuse {
            return false;
        }
        let storage = Arc::clone(self.hdf5().storage());
        let mut patience =
            TornReadRetry { tries: *tries, ..TornReadRetry::with(&*storage, &self.read) };
        let is_left = patience.is_left();
        *tries = patience.tries;
        // If this read fails as well, the caller's next try comes here again.
        let _ = is_left && self.refresh_if_changed().is_ok();
        is_left
    }

    /// Reads a file that is open for writing again, after another writer of this process changed it. Nothing may
    /// have been changed by this one.
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

    /// The file as it is now. Its definitions are read only if somebody asked for them before: until then no
    /// object has a number that it has to keep.
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

    /// The chunk caches that a program has set, by variable.
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
