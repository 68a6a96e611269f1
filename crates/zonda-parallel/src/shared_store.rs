//! Chunks that have owners, on their way into the file: owners tell how long their chunks have become, all ranks take the same places for
//! them, and each owner writes its own.

use zonda_format::{ChunkPlace, FilteredBytes, Result, SharedChunk, SharedGrid, VarRef};
use zonda_team::tell_all;

use crate::file::{ParallelFile, status_of, with_worst};
use crate::plan::RankSlab;
use crate::queue::CountedBytes;
use crate::shared_put::damaged_message;

/// What an owner tells of a chunk; nothing of one that is not to be stored now.
pub(crate) type Told = Option<(u64, u32)>;

/// Bytes of what an owner tells of a chunk.
const TOLD_BYTES: usize = 12;

fn write_told(chunk: Option<&FilteredBytes>, out: &mut Vec<u8>) {
    let (len, mask) =
        chunk.map_or((0, 0), |chunk| ((chunk.bytes.len() as u64).saturating_add(1), chunk.mask));
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&mask.to_le_bytes());
}

fn read_told(bytes: &[u8]) -> Option<Told> {
    let (len, rest) = bytes.split_first_chunk()?;
    let (mask, rest) = rest.split_first_chunk()?;
    let len = u64::from_le_bytes(*len).checked_sub(1);
    rest.is_empty().then_some(len.map(|len| (len, u32::from_le_bytes(*mask))))
}

/// What all ranks told of so many chunks, of which each owns some, and the worst of their errors.
fn parsed(all: &[u8], of_rank: Vec<Vec<usize>>, n_chunks: usize) -> Option<(Vec<Told>, u64)> {
    let (mut told, mut worst, mut rest) = (vec![None; n_chunks], 0, all);
    for owned in of_rank {
        let (status, behind) = rest.split_first_chunk()?;
        rest = behind;
        worst = worst.max(u64::from_le_bytes(*status));
        for at in owned {
            let (one, behind) = rest.split_at_checked(TOLD_BYTES)?;
            rest = behind;
            *told.get_mut(at)? = read_told(one)?;
        }
    }
    rest.is_empty().then_some((told, worst))
}

impl ParallelFile {
    /// Stores chunks, which are in the order in which they get places, each with its owner. `own` has for each that this rank owns what its
    /// filters made of it; nothing for one that is not to be stored. Chunks that are stored wait no longer.
    pub(crate) fn store_together(
        &mut self,
        call: &'static str,
        chunks: &[(SharedChunk, usize)],
        own: Result<Vec<Option<FilteredBytes>>>,
    ) -> Result<()> {
        self.store_and(call, chunks, own, true).map(drop)
    }

    /// As [`ParallelFile::store_together`]; where they do not `end`, the chunks go on waiting. Gives what their owners told.
    fn store_and(
        &mut self,
        call: &'static str,
        chunks: &[(SharedChunk, usize)],
        own: Result<Vec<Option<FilteredBytes>>>,
        end: bool,
    ) -> Result<Vec<Told>> {
        if chunks.is_empty() {
            return own.map(|_| Vec::new());
        }
        // They get their places after those of the puts before.
        let own = self.settle_behind(call).and(own);
        let bytes = own.iter().flatten().flatten();
        let bytes = bytes.fold(0, |sum: u64, one| sum.saturating_add(one.bytes.len() as u64));
        let _counted = CountedBytes::of_process(bytes);
        let (told, own) = self.tell_lengths(call, chunks, own)?;
        let stored: Vec<(&SharedChunk, usize, u64, u32)> = chunks
            .iter()
            .zip(&told)
            .filter_map(|((chunk, owner), told)| told.map(|(len, mask)| (chunk, *owner, len, mask)))
            .collect();
        if stored.is_empty() {
            return Ok(told);
        }
        let lens: Vec<u64> = stored.iter().map(|of| of.2).collect();
        let at = self.shared_chunks()?.take_places(&lens)?;
        let places: Vec<ChunkPlace> = stored
            .iter()
            .zip(at)
            .map(|(&(_, _, len, mask), at)| ChunkPlace { at, len, mask })
            .collect();
        let me = self.team.rank();
        let of_me = stored.iter().zip(&places).filter(|(of, _)| of.1 == me);
        let own = own.into_iter().flatten().zip(of_me.map(|(_, place)| *place)).collect();
        let written = self.shared_chunks()?.write_filtered(own);
        if let Err(error) = self.share(call, written) {
            // Nothing refers to them.
            self.shared_chunks()?.give_places_back(&places);
            return Err(error);
        }
        let entries: Vec<(&SharedChunk, ChunkPlace, bool)> =
            stored.iter().zip(&places).map(|(of, place)| (of.0, *place, end)).collect();
        // It can fail for lack of memory on this rank alone: the others have the chunks where it has not.
        let entered = self.shared_chunks()?.enter(&entries);
        entered.map_err(|error| self.lose(error))?;
        for (chunk, ..) in &stored {
            if end { self.ledger.remove(chunk) } else { self.ledger.clean(chunk) }
        }
        Ok(told)
    }

    /// All ranks learn how long chunks have become, and whether a rank failed. Gives also what is this rank's own.
    pub(crate) fn tell_lengths(
        &mut self,
        call: &'static str,
        chunks: &[(SharedChunk, usize)],
        own: Result<Vec<Option<FilteredBytes>>>,
    ) -> Result<(Vec<Told>, Vec<Option<FilteredBytes>>)> {
        let mut of_rank: Vec<Vec<usize>> = vec![Vec::new(); self.team.size()];
        for (at, (_, owner)) in chunks.iter().enumerate() {
            if let Some(owned) = of_rank.get_mut(*owner) {
                owned.push(at);
            }
        }
        let n_owned = |rank: usize| of_rank.get(rank).map_or(0, Vec::len);
        let n_bytes = |rank| size_of::<u64>() + n_owned(rank) * TOLD_BYTES;
        let mut mine = own.as_ref().err().map_or(0, status_of).to_le_bytes().to_vec();
        let listed = own.as_ref().map_or(&[][..], Vec::as_slice);
        listed.iter().for_each(|chunk| write_told(chunk.as_ref(), &mut mine));
        // A rank that failed tells nothing else.
        mine.resize(n_bytes(self.team.rank()), 0);
        let all = tell_all(&*self.team, self.step(call), n_bytes, mine);
        let all = all.map_err(|error| self.lost_team(error))?;
        let (told, worst) =
            parsed(&all, of_rank, chunks.len()).ok_or_else(|| self.lose(damaged_message()))?;
        let own = with_worst(own, worst)?;
        Ok((told, own))
    }

    /// Stores chunks that wait, as they are; where they `end`, they wait no longer, also those that the file has already.
    fn store_waiting(
        &mut self,
        call: &'static str,
        chunks: &[(SharedChunk, usize)],
        end: bool,
    ) -> Result<()> {
        if chunks.is_empty() {
            return Ok(());
        }
        let me = self.team.rank();
        let of_me: Vec<&SharedChunk> =
            chunks.iter().filter(|(_, owner)| *owner == me).map(|(chunk, _)| chunk).collect();
        let own = self.shared_chunks()?.filter_held(&of_me);
        let told = self.store_and(call, chunks, own, end)?;
        for ((chunk, _), told) in chunks.iter().zip(told) {
            if told.is_none() {
                // An error took it from its owner.
                self.ledger.remove(chunk);
            }
        }
        Ok(())
    }

    /// Stores all chunks that wait and that the file does not have as they are. They go on waiting for more. Whether there were any.
    pub(crate) fn store_dirty(&mut self, call: &'static str) -> Result<bool> {
        let dirty = self.ledger.dirty();
        self.store_waiting(call, &dirty, false)?;
        Ok(!dirty.is_empty())
    }

    /// Gives up all chunks that wait: they cannot be stored, and the file ends.
    pub(crate) fn forget_waiting(&mut self) -> Result<()> {
        for (chunk, _) in self.ledger.dirty() {
            self.ledger.remove(&chunk);
            self.shared_chunks()?.forget(&chunk);
        }
        self.forget_kept()
    }

    /// Stores those chunks that were put to longest ago, if more wait than may.
    pub(crate) fn store_too_many(&mut self, call: &'static str) -> Result<()> {
        let gone = self.ledger.too_many(self.waiting_limit);
        self.end_waiting(call, gone)
    }

    /// Stores all chunks of a variable that wait: they wait no longer.
    pub(crate) fn end_waiting_of(&mut self, call: &'static str, var: VarRef) -> Result<()> {
        let gone = self.ledger.of_var(var);
        self.end_waiting(call, gone)
    }

    /// Stores those of these chunks that the file does not have as they are. None of them waits any longer.
    fn end_waiting(&mut self, call: &'static str, gone: Vec<(SharedChunk, usize)>) -> Result<()> {
        if gone.is_empty() {
            return Ok(());
        }
        let dirty: Vec<(SharedChunk, usize)> = gone
            .iter()
            .filter(|(chunk, _)| self.ledger.get(chunk).is_some_and(|waiting| waiting.is_dirty))
            .cloned()
            .collect();
        self.store_waiting(call, &dirty, true)?;
        for (chunk, _) in gone {
            self.ledger.remove(&chunk);
            self.shared_chunks()?.forget(&chunk);
        }
        Ok(())
    }

    /// Commits before a put that begins a record, if much was put since the last commit: as one process does, by the same count.
    pub(crate) fn commit_if_due(
        &mut self,
        call: &'static str,
        (var, grid): (VarRef, &SharedGrid),
        slabs: &[RankSlab],
    ) -> Result<()> {
        if self.put_bytes >= grid.commit_bytes && self.begins_record(var, slabs)? {
            self.before_commit(call)?;
            self.common(call, |file| file.sync())?;
        }
        let elems = slabs.iter().filter_map(|slab| slab.slab().n_elems());
        let elems = elems.fold(0, |sum: u64, n| sum.saturating_add(n as u64));
        self.put_bytes = self.put_bytes.saturating_add(elems.saturating_mul(grid.elem_size as u64));
        Ok(())
    }

    /// Whether what ranks put begins behind the end of a dimension that can grow.
    fn begins_record(&self, var: VarRef, slabs: &[RankSlab]) -> Result<bool> {
        let definitions = self.file.definitions();
        let dims = definitions.var(var)?.dims;
        Ok(dims.iter().enumerate().any(|(axis, &dim)| {
            let first = slabs.iter().filter_map(|slab| slab.first(axis)).min();
            definitions
                .dim(dim)
                .is_ok_and(|dim| dim.is_unlimited && first.is_some_and(|first| first >= dim.len))
        }))
    }

    /// Whether [`ParallelFile::before_get`] has something to do: all ranks have the same answer.
    #[must_use]
    pub fn has_waiting(&self, var: VarRef) -> bool {
        self.ledger.is_dirty(var) || self.waits_in_queues(var) || self.behind.has_any(var)
    }

    /// Before a get of a variable whose puts all ranks make together: what ranks put and owners hold, or have in their queues, goes into the
    /// file, where all ranks read it. All ranks have to make the call then. Does nothing where all is in the file.
    ///
    /// # Errors
    /// Those of the ranks that come together, and of the storage.
    pub fn before_get(&mut self, var: VarRef) -> Result<()> {
        const CALL: &str = "nc_get_var";
        if self.is_lost() || !self.has_waiting(var) {
            return Ok(());
        }
        self.agree_when_written(CALL, Some(var))?;
        let _were_any = self.settle_behind(CALL)?;
        if self.ledger.is_dirty(var) { self.store_dirty(CALL).map(drop) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_owners_tell_comes_back() {
        let chunk = FilteredBytes { mask: 5, bytes: vec![1; 300] };
        let empty = FilteredBytes { mask: 0, bytes: Vec::new() };
        for (chunk, expected) in
            [(Some(&chunk), Some((300, 5))), (Some(&empty), Some((0, 0))), (None, None)]
        {
            let mut bytes = Vec::new();
            write_told(chunk, &mut bytes);
            assert_eq!(bytes.len(), TOLD_BYTES);
            assert_eq!(read_told(&bytes), Some(expected));
            assert_eq!(read_told(&bytes[1..]), None);
        }
    }
}
