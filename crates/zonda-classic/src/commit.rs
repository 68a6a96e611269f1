//! Commits: what was put and defined becomes what a reader finds, whatever happens meanwhile.
//!
//! Data goes down first, then what makes it visible. A record count, and a header of which one page
//! changes, are switched by one write; for anything larger see `journal`, `moving` and `rewrite`.
//! The order of the writes and why it is enough: `docs/dev/commits.md`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use zonda_model::memory;
use zonda_storage::backend::File;
use zonda_storage::neighbour::journal_id;
use zonda_storage::{BLOCK_BYTES, Sidecar, Sidecars, Storage, has_no_room_in_file, write_journal};

use crate::codec::{self, NUMRECS_AT, encode_header};
use crate::error::ClassicError;
use crate::file::{Base, FileState};
use crate::header::{Header, Version};
use crate::journal::{ChangeKind, JournalBody};
use crate::moving::{Move, MovedRuns, read_whole};
use crate::rewrite::rewrite;
use crate::tuning::COMMIT_BYTES;

/// A change that the file has a part of: the former content is no longer intact, so the change can
/// only be completed.
#[derive(Debug)]
pub(crate) enum Unfinished {
    /// A header of several pages is being written.
    Header(Vec<u8>),
    /// Data is being moved.
    Move(Box<Move>),
    /// A copy with these definitions has taken the file's place; the folder is not synced yet.
    Renamed(Box<Header>),
}

impl Base {
    /// Writes what the file lacks: data first, then what makes it visible.
    pub(crate) fn commit(&self, state: &mut FileState) -> Result<(), ClassicError> {
        let _span = zonda_trace::span(zonda_trace::EventKind::Commit, zonda_trace::Args::default);
        self.complete(state)?;
        let n_records = self.n_records.load(Ordering::Acquire);
        if state.header_dirty {
            self.commit_header(state, n_records)?;
            state.header_dirty = false;
            self.n_records_dirty.store(false, Ordering::Release);
            self.n_committed.store(n_records, Ordering::Release);
        } else if self.n_records_dirty.load(Ordering::Acquire) {
            self.storage.barrier()?;
            self.write_n_records(state.header.version, n_records)?;
        }
        self.storage.sync()?;
        Ok(())
    }

    /// Completes a change that an error stopped; gives the definitions that the file then has,
    /// where data was moved for them.
    pub(crate) fn complete(&self, state: &mut FileState) -> Result<Option<Header>, ClassicError> {
        let sidecars = self.sidecars.as_ref();
        match &mut state.unfinished {
            None => return Ok(None),
            Some(Unfinished::Header(bytes)) => finish_header(&*self.storage, sidecars, bytes)?,
            Some(Unfinished::Move(moving)) => moving.finish(&*self.storage, sidecars)?,
            Some(Unfinished::Renamed(_)) => {
                self.storage.invalidate()?;
                sidecars.map_or(Ok(()), |sidecars| sidecars.settle())?;
            }
        }
        let header = match state.unfinished.take() {
            Some(Unfinished::Move(moving)) => moving.into_target(),
            Some(Unfinished::Renamed(header)) => *header,
            Some(Unfinished::Header(_)) | None => return Ok(None),
        };
        state.stored_len = header.layout.header_len;
        Ok(Some(header))
    }

    /// Makes the header in the file that of `state`, all data being in place.
    fn commit_header(&self, state: &mut FileState, n_records: u64) -> Result<(), ClassicError> {
        let storage = &*self.storage;
        let mut new = encode_header(&state.header, n_records)?;
        let new_len = new.len() as u64;
        if state.stored_len == 0 {
            // Nothing was put or filled yet, so zeros give a small file its length, and no call of its own at the close.
            let full = state.header.file_len(n_records);
            if full <= BLOCK_BYTES && state.header.vars.iter().all(|var| var.no_fill) {
                let full = usize::try_from(full).unwrap_or_default();
                memory::lengthen(&mut new, full, 0)?;
            }
            write_first(storage, &new)?;
            state.stored_len = new_len;
            return Ok(());
        }
        storage.barrier()?;
        // A shorter header leaves no old bytes behind it.
        let stored_len = usize::try_from(state.stored_len).unwrap_or(usize::MAX);
        memory::lengthen(&mut new, stored_len, 0)?;
        // Zeros behind the end of the file are no difference, but a header that is cut off is none.
        if storage.len()? < new.len() as u64 {
            storage.set_len(new.len() as u64)?;
        }
        let old = read_whole(storage, new.len())?;
        let count_len = usize::try_from(state.header.version.count_len()).unwrap_or(8);
        match switches(&old, &new, count_len) {
            Some(writes) => {
                for (n, (at, bytes)) in writes.into_iter().enumerate() {
                    if n > 0 {
                        storage.barrier()?;
                    }
                    storage.write_at(at, bytes)?;
                }
            }
            None => self.journal_header(state, old, new, n_records)?,
        }
        state.stored_len = new_len;
        Ok(())
    }

    fn journal_header(
        &self,
        state: &mut FileState,
        old: Vec<u8>,
        new: Vec<u8>,
        n_records: u64,
    ) -> Result<(), ClassicError> {
        let sidecars = self.sidecars.as_ref();
        let Some(neighbours) = sidecars else { return Ok(self.storage.write_at(0, &new)?) };
        let stored = self.storage.len()?;
        let (id, kind, no_fill) = (Some(journal_id()), ChangeKind::Header, Vec::new());
        let body = JournalBody { id, kind, old, new, n_records, stored, no_fill };
        let journal = write_journal(&**neighbours, &body.encode()?)?;
        state.unfinished = Some(Unfinished::Header(body.new));
        // Without a journal the header is rewritten all the same: as safe as the reference does it.
        self.complete(state)?;
        drop(journal);
        Ok(())
    }

    /// Makes room for new definitions where data has to move for them, and writes the header then;
    /// false where nothing has to.
    pub(crate) fn relocate(
        &self,
        state: &mut FileState,
        old: &Header,
        n_records: u64,
    ) -> Result<bool, ClassicError> {
        let storage = &*self.storage;
        let stored = storage.len()?;
        let moved = MovedRuns::new(old, &state.header, n_records, stored).moved_bytes();
        if moved == 0 {
            return Ok(false);
        }
        let sidecars = self.sidecars.as_ref();
        // Others that share the file must find it under their descriptors. A copy of much that stays would cost more
        // than it saves, unless somebody reads the file now, who would find other bytes in the places that he knows.
        let is_read = || storage.plain_file().is_some_and(File::is_opened_by_others);
        let copier = sidecars.filter(|neighbours| {
            !self.share
                && (moved.saturating_mul(4) >= stored || is_read())
                && neighbours.replaceable()
                // A device without room for the copy is not filled with half of it first.
                && neighbours.room().is_none_or(|room| room >= state.header.file_len(n_records))
        });
        let begin = || Move::begin(storage, sidecars, old, &state.header, n_records);
        state.unfinished = Some(match copier {
            None => Unfinished::Move(Box::new(begin()?)),
            // In memory, where a machine that dies leaves nothing, a copy is no safer than a journal, and takes
            // the memory of the file again. A file that is shorter than its header says looks cut off beside a
            // journal.
            Some(neighbours) => {
                let moving = match storage.plain_file() {
                    Some(file) if stored >= old.file_len(n_records) => {
                        move_in_place(storage, neighbours, file, stored, begin)?
                    }
                    _ => None,
                };
                match moving {
                    Some(moving) => Unfinished::Move(Box::new(moving)),
                    None if rewrite(storage, &**neighbours, old, &state.header, n_records)? => {
                        Unfinished::Renamed(Box::new(state.header.clone()))
                    }
                    None => Unfinished::Move(Box::new(begin()?)),
                }
            }
        });
        self.complete(state)?;
        state.header_dirty = false;
        self.n_records_dirty.store(false, Ordering::Release);
        self.n_committed.store(n_records, Ordering::Release);
        Ok(true)
    }

    /// Commits the `n_records` there are when enough of them are new. The caller that adds a record
    /// calls it before.
    pub(crate) fn commit_records(
        &self,
        header: &Header,
        n_records: u64,
    ) -> Result<(), ClassicError> {
        let new = n_records.saturating_sub(self.n_committed.load(Ordering::Acquire));
        if new.saturating_mul(header.layout.record_len) < COMMIT_BYTES {
            return Ok(());
        }
        let _span = zonda_trace::span(zonda_trace::EventKind::Commit, zonda_trace::Args::default);
        self.storage.barrier()?;
        self.write_n_records(header.version, n_records)
    }

    /// Writes the record count in place.
    pub(crate) fn write_n_records(
        &self,
        version: Version,
        n_records: u64,
    ) -> Result<(), ClassicError> {
        self.storage.write_at(NUMRECS_AT, &codec::encode_numrecs(version, n_records))?;
        self.n_records_dirty.store(false, Ordering::Release);
        self.n_committed.store(n_records, Ordering::Release);
        Ok(())
    }
}

/// Begins a move in place of data that could be copied: where that is as safe for the file and its readers, and takes no
/// more room. `None` where it is not; everything is then as before.
fn move_in_place(
    storage: &dyn Storage,
    sidecars: &Arc<dyn Sidecars>,
    file: &File,
    stored: u64,
    begin: impl Fn() -> Result<Move, ClassicError>,
) -> Result<Option<Move>, ClassicError> {
    if !file.is_in_memory() {
        return Ok(None);
    }
    storage.barrier()?;
    // Who reads the file now would find other bytes in the places that he knows, and a hole that moves becomes zeros.
    if !file.is_without_holes() || !file.is_opened_once() {
        return Ok(None);
    }
    let given_up = match begin() {
        // Who opens the file from now on sees the journal.
        Ok(moving) if moving.has_journal() && file.is_opened_once() => return Ok(Some(moving)),
        Ok(moving) => Some(moving),
        // The journal of a long header has that twice.
        Err(ClassicError::Storage(cause)) if has_no_room_in_file(cause.raw_os_error()) => None,
        Err(error) => return Err(error),
    };
    if let Some(moving) = given_up
        && moving.has_journal()
    {
        // While its lock shows that its writer lives.
        sidecars.remove(Sidecar::Journal)?;
        drop(moving);
    }
    storage.set_len(stored)?;
    Ok(None)
}

/// The first header of a file. Its first page comes last: until then it is no netCDF file.
fn write_first(storage: &dyn Storage, header: &[u8]) -> Result<(), ClassicError> {
    let page = usize::try_from(BLOCK_BYTES).unwrap_or(usize::MAX);
    if let Some((first, rest)) = header.split_at_checked(page)
        && !rest.is_empty()
    {
        storage.write_at(BLOCK_BYTES, rest)?;
        storage.barrier()?;
        return Ok(storage.write_at(0, first)?);
    }
    Ok(storage.write_at(0, header)?)
}

/// Rewrites a header that is in the journal, and removes that.
pub(crate) fn finish_header(
    storage: &dyn Storage,
    sidecars: Option<&Arc<dyn Sidecars>>,
    header: &[u8],
) -> Result<(), ClassicError> {
    storage.write_at(0, header)?;
    storage.sync()?;
    if let Some(sidecars) = sidecars {
        sidecars.remove(Sidecar::Journal)?;
        sidecars.settle()?;
    }
    Ok(())
}

/// The writes by which `old` becomes `new`, in order, each within one page and each leaving a valid
/// header; `None` where there are no such writes. Both are as long; the record count is `count_len`
/// bytes.
fn switches<'a>(old: &[u8], new: &'a [u8], count_len: usize) -> Option<Vec<(u64, &'a [u8])>> {
    let page_of = |at: usize| (at as u64).checked_div(BLOCK_BYTES);
    let write = |from: usize, to: usize| Some((from as u64, new.get(from..to)?));
    let differs = |from: usize| {
        let pairs = || old.iter().zip(new).enumerate().skip(from);
        let first = pairs().find(|(_, (old, new))| old != new)?.0;
        let last = pairs().rfind(|(_, (old, new))| old != new)?.0;
        Some((first, last.saturating_add(1)))
    };
    let Some((from, to)) = differs(0) else { return Some(Vec::new()) };
    if page_of(from) == page_of(to.saturating_sub(1)) {
        return Some(vec![write(from, to)?]);
    }
    // A new record count besides one other page: either is right without the other.
    let count_at = usize::try_from(NUMRECS_AT).unwrap_or(0);
    let after_count = count_at.saturating_add(count_len);
    let (next, to) = differs(after_count)?;
    (from >= count_at && page_of(next) == page_of(to.saturating_sub(1)))
        .then(|| Some(vec![write(next, to)?, write(count_at, after_count)?]))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_page_is_one_write_and_more_go_by_the_journal() {
        let old = vec![0u8; 20_000];
        let with = |places: &[usize]| {
            let mut new = old.clone();
            places.iter().for_each(|at| new[*at] = 1);
            new
        };
        assert_eq!(switches(&old, &old, 4), Some(vec![]));
        let new = with(&[4100, 8191]);
        assert_eq!(switches(&old, &new, 4), Some(vec![(4100, &new[4100..8192])]));
        // A count that changes with a page that is not its own: the count comes last.
        let new = with(&[7, 9000]);
        let expected = |len| Some(vec![(9000, &[1][..]), (4, len)]);
        assert_eq!(switches(&old, &new, 4), expected(&new[4..8]));
        let new = with(&[9, 9000]);
        assert_eq!(switches(&old, &new, 8), expected(&new[4..12]));
        for places in [&[4095, 4096][..], &[9, 9000], &[7, 5000, 9000]] {
            assert_eq!(switches(&old, &with(places), 4), None, "{places:?}");
        }
    }
}
