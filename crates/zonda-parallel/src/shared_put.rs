//! Puts to chunks that have owners: each rank tells what it puts, and sends its parts of chunks to their owners. A chunk of which all elements
//! were put is stored at once, or behind the put (`behind.rs`); the others wait.

use std::borrow::Cow;
use std::collections::BTreeMap;

use zonda_convert::Converted;
use zonda_format::{
    Access, Error, FilteredBytes, HeldChunk, Result, SharedChunk, SharedChunks, SharedGrid,
    SlabBytes, Transfer, Values, VarRef,
};
use zonda_model::{Answer, NcError};
use zonda_slab::Hyperslab;
use zonda_team::{Message, tell_all};

use crate::coverage;
use crate::file::ParallelFile;
use crate::plan::{Plan, RankSlab, TouchedChunk};
use crate::queue::PutLabel;
use crate::tuning::{PLAN_ROUND_BYTES, PLAN_ROUND_CHUNKS, PLAN_ROUND_PARTS};

/// A chunk that a put touches, and who owns it.
pub(crate) struct AssignedChunk {
    pub(crate) chunk: SharedChunk,
    pub(crate) owner: usize,
    /// The owner puts all of it, and nothing of it waits: it need not wait, either.
    pub(crate) is_whole: bool,
    /// Nothing of it waits, and the ranks that have parts of it put all of it together. Only its owner asks.
    is_covered: bool,
    /// The ranks that have parts of it.
    ranks: Vec<usize>,
}

/// Whether the parts that ranks put of a chunk are the whole of it, each element once.
fn parts_cover(grid: &SharedGrid, key: &[u64], ranks: &[usize], slabs: &[RankSlab]) -> bool {
    let axes = key.iter().zip(grid.chunk_dims.iter().zip(&grid.limits));
    let region: coverage::ElementBox = axes
        .map(|(&index, (&dim, &limit))| {
            let begin = index.saturating_mul(dim);
            (begin, begin.saturating_add(dim).min(limit))
        })
        .collect();
    let mut sum = [0u64; coverage::PLACES];
    for slab in ranks.iter().filter_map(|&rank| slabs.get(rank)) {
        let Some(part) = coverage::values_within(&slab.slab(), &region) else { return false };
        sum.iter_mut().zip(part).for_each(|(sum, part)| *sum = sum.saturating_add(part));
    }
    coverage::parts_cover(&region, sum)
}

/// A put of all ranks.
pub(crate) struct SharedPut<'a> {
    call: &'static str,
    /// What messages say of it, where it returns before its chunks are stored.
    behind: Option<PutLabel>,
    pub(crate) var: VarRef,
    pub(crate) grid: &'a SharedGrid,
    /// What each rank puts.
    slabs: &'a [RankSlab],
    /// The elements of this rank, where it could make them ready.
    pub(crate) own: Option<&'a OwnPart<'a>>,
}

/// The first byte of a message that has parts of chunks: none of a rank that could not make them ready.
const HAS_PARTS: u8 = 1;

impl SharedPut<'_> {
    /// Bytes of the message in which a rank sends its parts of some chunks.
    fn message_len<'k>(&self, rank: usize, keys: impl Iterator<Item = &'k [u64]>) -> usize {
        let of_key = |key| self.slabs.get(rank).map_or(0, |slab| slab.n_elems_in(self.grid, key));
        let n_elems = keys.map(of_key).fold(0, |sum: u64, n| sum.saturating_add(n));
        let n_elems = usize::try_from(n_elems).unwrap_or(usize::MAX);
        n_elems.saturating_mul(self.grid.elem_size).saturating_add(1)
    }
}

/// What a rank puts.
pub(crate) struct OwnPart<'v> {
    slab: RankSlab,
    bytes: Cow<'v, [u8]>,
}

impl OwnPart<'_> {
    pub(crate) fn elements(&self) -> SlabBytes<'_> {
        SlabBytes { slab: self.slab.slab(), bytes: &self.bytes }
    }
}

/// How many chunks are put to in one round: with as many as there are ranks each can have one.
fn most_chunks_of_round(grid: &SharedGrid, n_ranks: usize) -> usize {
    let bytes = PLAN_ROUND_BYTES.saturating_mul(n_ranks as u64);
    let n = bytes.checked_div(grid.chunk_bytes).unwrap_or(1).max(n_ranks as u64);
    usize::try_from(n).unwrap_or(usize::MAX).clamp(1, PLAN_ROUND_CHUNKS)
}

/// The error about what ranks tell each other.
pub(crate) fn damaged_message() -> Error {
    let why = "what ranks tell each other of chunks is damaged on its way";
    Error::answered(NcError::Mpi, Answer::Request, why)
}

impl ParallelFile {
    pub(crate) fn shared_chunks(&mut self) -> Result<&mut dyn SharedChunks> {
        self.in_team()?.shared_chunks().ok_or_else(|| NcError::Internal.into())
    }

    /// The grid of a variable whose chunks have owners.
    pub(crate) fn grid_of_shared(&mut self, var: VarRef) -> Option<SharedGrid> {
        self.in_team().ok()?.shared_chunks()?.grid(var)
    }

    /// A put of all ranks, after they agreed on it and the variable is long enough. `slabs` has what each rank puts.
    pub(crate) fn put_shared(
        &mut self,
        (call, behind): (&'static str, Option<PutLabel>),
        (var, grid): (VarRef, &SharedGrid),
        slabs: &[RankSlab],
        own: Option<(&Transfer<Access<'_>>, Values<'_>)>,
    ) -> Result<Option<Converted>> {
        self.shared_chunks()?.begin_put(var);
        let extent = self.in_team()?.extent(var);
        let formed = own.map(|(put, values)| self.shared_chunks()?.in_file_form(put, values));
        let (own, mut failed) = match formed.transpose() {
            Ok(formed) => (formed, Ok(())),
            Err(error) => (None, Err(error)),
        };
        let converted = own.as_ref().map(|(_, converted)| *converted);
        let slab = slabs.get(self.team.rank()).cloned().unwrap_or_default();
        let own = own.map(|(bytes, _)| OwnPart { slab, bytes });
        let mut put = SharedPut { call, behind, var, grid, slabs, own: own.as_ref() };
        let plan = || Plan::new(grid, &extent, slabs);
        let mut touched = plan();
        if self.is_tight(&put, touched.n_parts()) {
            // The ledger has chunks as waiting of which only their owners know that they are complete.
            self.place_behind(call, u64::MAX)?;
            if self.is_tight(&put, touched.n_parts()) {
                put.behind = None;
            }
        }
        if put.behind.is_none() {
            let _were_any = self.settle_behind(call)?;
        }
        // Chunks that no rank has all of, where it is not certain that all of them have room.
        let mut n_new = self.is_tight(&put, touched.n_parts()).then(|| {
            let new = plan().filter(|one| one.whole_by.is_none());
            new.count() as u64
        });
        loop {
            let most = n_new.map_or(u64::MAX, |new| self.most_incomplete(&put, new));
            let n_taken = self.put_rounds(&put, &mut touched, most, &mut failed)?;
            n_new = n_new.map(|n| n.saturating_sub(n_taken));
            self.store_too_many(call)?;
            if touched.is_over() {
                break;
            }
        }
        Ok(converted)
    }

    /// Whether more would wait than may when so many chunks more do.
    fn is_tight(&self, put: &SharedPut<'_>, more: u64) -> bool {
        self.ledger.is_more_than(self.waiting_limit, more.saturating_mul(put.grid.waiting_bytes))
    }

    /// How many incomplete chunks are put to before too many of them wait, where so many chunks are still to come that no rank has all of: all, if they have
    /// room; else as many as one process would put to.
    fn most_incomplete(&self, put: &SharedPut<'_>, new: u64) -> u64 {
        if !self.is_tight(put, new) {
            return u64::MAX;
        }
        let SharedGrid { round_bytes, chunk_bytes, .. } = *put.grid;
        (self.waiting_limit / 4).min(round_bytes).checked_div(chunk_bytes).unwrap_or(0).max(1)
    }

    /// Puts to the next chunks that a put touches, in rounds, until `most` incomplete ones were put to. Gives how many of all were chunks that no rank has
    /// all of.
    ///
    /// Rounds only bound memory: what a put gives back is not taken before the next commit but one, so that chunks get the same places however many rounds
    /// there are.
    fn put_rounds(
        &mut self,
        put: &SharedPut<'_>,
        touched: &mut Plan,
        most: u64,
        failed: &mut Result<()>,
    ) -> Result<u64> {
        let (mut n_incomplete, mut n_new, mut n_rounds) = (0, 0, 0);
        let most_chunks = most_chunks_of_round(put.grid, self.team.size());
        loop {
            let (mut round, mut n_parts) = (Vec::new(), 0);
            while n_incomplete < most
                && round.len() < most_chunks
                && n_parts < PLAN_ROUND_PARTS
                && let Some(one) = touched.next()
            {
                let is_new = one.whole_by.is_none();
                n_new += u64::from(is_new);
                if most < u64::MAX && is_new {
                    let covered = parts_cover(put.grid, &one.key, &one.ranks, put.slabs);
                    n_incomplete += u64::from(!covered);
                }
                n_parts += one.ranks.len();
                round.push(one);
            }
            if n_rounds > 0 {
                // Of one put no more than a round has no places.
                self.place_behind(put.call, u64::MAX)?;
            }
            n_rounds += 1;
            self.put_round(put, round, std::mem::replace(failed, Ok(())))?;
            if n_incomplete >= most || touched.is_over() {
                return Ok(n_new);
            }
        }
    }

    /// A put of all ranks to some of the chunks that it touches.
    fn put_round(
        &mut self,
        put: &SharedPut<'_>,
        touched: Vec<TouchedChunk>,
        failed: Result<()>,
    ) -> Result<()> {
        self.settle_touched(put.call, put.var, &touched)?;
        let chunks = self.assigned(put, touched);
        let held = self.hold_parts(put, &chunks)?;
        for AssignedChunk { chunk, owner, .. } in chunks.iter().filter(|one| !one.is_whole) {
            self.ledger.touch(chunk, *owner, put.grid.waiting_bytes);
        }
        if let Some(label) = &put.behind {
            return self.leave_to_filters(label, put, chunks, failed.and(held));
        }
        let ready = failed.and(held).and_then(|()| self.filter_complete(&chunks, put.own));
        let listed: Vec<(SharedChunk, usize)> =
            chunks.iter().map(|one| (one.chunk.clone(), one.owner)).collect();
        if let Err(error) = self.store_together(put.call, &listed, ready) {
            self.forget_torn(&chunks)?;
            return Err(error);
        }
        Ok(())
    }

    /// After an error: chunks that were begun without what the file has of them, and that did not get all of their elements.
    pub(crate) fn forget_torn(&mut self, chunks: &[AssignedChunk]) -> Result<()> {
        let shared = self.shared_chunks()?;
        for one in chunks.iter().filter(|one| one.is_covered) {
            if !shared.is_complete(&one.chunk) {
                shared.forget(&one.chunk);
            }
        }
        Ok(())
    }

    /// What each rank puts to a variable.
    pub(crate) fn slabs_of_all(
        &mut self,
        call: &'static str,
        own: Option<Hyperslab<'_>>,
        rank: usize,
    ) -> Result<Vec<RankSlab>> {
        let own = own.map_or_else(RankSlab::default, |slab| RankSlab::of(&slab, rank));
        // Rank 0 says how much may wait, since ranks may have been told otherwise.
        let is_first = self.team.rank() == 0;
        let mut mine =
            if is_first { self.waiting_limit.to_le_bytes().to_vec() } else { Vec::new() };
        own.write_to(rank, &mut mine);
        let head = |of: usize| if of == 0 { size_of::<u64>() } else { 0 };
        let n_bytes = |of| RankSlab::n_bytes(rank).saturating_add(head(of));
        let told = tell_all(&*self.team, self.step(call), n_bytes, mine);
        let all = told.map_err(|error| self.lost_team(error))?;
        let parsed = || {
            let (limit, rest) = all.split_first_chunk()?;
            let each = RankSlab::n_bytes(rank).max(1);
            let slabs: Option<Vec<RankSlab>> = rest.chunks(each).map(RankSlab::read_from).collect();
            let slabs = slabs.filter(|slabs| slabs.len() == self.team.size())?;
            Some((u64::from_le_bytes(*limit), slabs))
        };
        let (limit, slabs) = parsed().ok_or_else(|| self.lose(damaged_message()))?;
        self.waiting_limit = limit;
        Ok(slabs)
    }

    /// The owners of chunks that a put touches: those that they have, or new ones.
    fn assigned(&mut self, put: &SharedPut<'_>, touched: Vec<TouchedChunk>) -> Vec<AssignedChunk> {
        let me = self.team.rank();
        let of_var = self.ledger.number(put.var) as u64;
        let assign = |touched: TouchedChunk| {
            let new_owner = touched.new_owner(of_var);
            let TouchedChunk { key, ranks, whole_by, .. } = touched;
            let chunk = SharedChunk { var: put.var, key };
            let waiting = self.ledger.get(&chunk);
            let owner = waiting.map_or(new_owner, |waiting| waiting.owner);
            let is_new = waiting.is_none();
            let is_whole = is_new && whole_by == Some(owner);
            let is_covered = is_new
                && !is_whole
                && owner == me
                && parts_cover(put.grid, &chunk.key, &ranks, put.slabs);
            AssignedChunk { chunk, owner, is_whole, is_covered, ranks }
        };
        touched.into_iter().map(assign).collect()
    }

    /// Sends the parts of others' chunks to their owners, and holds the parts of this rank's chunks. The outer error is that of ranks that lost
    /// each other.
    fn hold_parts(&mut self, put: &SharedPut<'_>, chunks: &[AssignedChunk]) -> Result<Result<()>> {
        let (me, own) = (self.team.rank(), put.own);
        let waiting = || chunks.iter().filter(|one| !one.is_whole);
        // The parts of each rank, in the order of ranks: where two put the same element, it is the last one's.
        let mut parts: BTreeMap<usize, Vec<HeldChunk<'_>>> = BTreeMap::new();
        for one in waiting().filter(|one| one.owner == me) {
            for &rank in &one.ranks {
                let list = parts.entry(rank).or_default();
                list.push(HeldChunk { key: &one.chunk.key, is_covered: one.is_covered });
            }
        }
        let (messages, mut sent) = self.messages(put, chunks);
        let is_sent = waiting().any(|one| one.ranks.iter().any(|&rank| rank != one.owner));
        let mut received: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        if is_sent {
            let others = parts.iter().filter(|(rank, _)| **rank != me);
            let expected: Vec<(usize, usize)> = others
                .map(|(&rank, list)| (rank, put.message_len(rank, list.iter().map(|one| one.key))))
                .collect();
            match self.exchange_known(put.call, messages, &expected)? {
                Ok(messages) => received
                    .extend(messages.into_iter().map(|Message { rank, bytes }| (rank, bytes))),
                Err(error) => sent = sent.and(Err(error)),
            }
        }
        let mut done = sent;
        for (rank, list) in parts {
            let held = match own.filter(|_| rank == me) {
                Some(own) => self.shared_chunks()?.hold(put.var, &own.elements(), &list, false),
                None => {
                    // A rank that could not send what it puts says so itself.
                    let Some((&HAS_PARTS, bytes)) =
                        received.get(&rank).and_then(|bytes| bytes.split_first())
                    else {
                        continue;
                    };
                    let of = SlabBytes { slab: put.slabs[rank].slab(), bytes };
                    self.shared_chunks()?.hold(put.var, &of, &list, true)
                }
            };
            done = done.and(held);
        }
        Ok(done)
    }

    /// What this rank sends to the owners of chunks that it has parts of, and how long they expect it.
    fn messages(
        &mut self,
        put: &SharedPut<'_>,
        chunks: &[AssignedChunk],
    ) -> (Vec<(Message, usize)>, Result<()>) {
        let (me, mut done) = (self.team.rank(), Ok(()));
        let mut of_owner: BTreeMap<usize, Vec<&[u64]>> = BTreeMap::new();
        let others = chunks.iter().filter(|one| !one.is_whole && one.owner != me);
        for one in others.filter(|one| one.ranks.contains(&me)) {
            of_owner.entry(one.owner).or_default().push(&one.chunk.key);
        }
        let mut messages = Vec::with_capacity(of_owner.len());
        for (rank, keys) in of_owner {
            let len = put.message_len(me, keys.iter().copied());
            let packed = match put.own {
                Some(own) => self.packed_parts(put.var, own, &keys, len),
                None => Ok(Vec::new()),
            };
            let bytes = packed.unwrap_or_else(|error| {
                done = Err(error);
                Vec::new()
            });
            messages.push((Message { rank, bytes }, len));
        }
        (messages, done)
    }

    /// The parts of some chunks as a message of so many bytes.
    fn packed_parts(
        &mut self,
        var: VarRef,
        own: &OwnPart<'_>,
        keys: &[&[u64]],
        len: usize,
    ) -> Result<Vec<u8>> {
        let mut packed = zonda_model::memory::room(len)?;
        packed.push(HAS_PARTS);
        self.shared_chunks()?.parts_of(var, &own.elements(), keys, &mut packed)?;
        if packed.len() == len { Ok(packed) } else { Err(NcError::Internal.into()) }
    }

    /// Sends those of this rank's chunks through their filters that are complete: one for each that it owns.
    pub(crate) fn filter_complete(
        &mut self,
        chunks: &[AssignedChunk],
        own: Option<&OwnPart<'_>>,
    ) -> Result<Vec<Option<FilteredBytes>>> {
        let me = self.team.rank();
        let owned: Vec<&AssignedChunk> = chunks.iter().filter(|one| one.owner == me).collect();
        let Some(var) = owned.first().map(|one| one.chunk.var) else { return Ok(Vec::new()) };
        let shared = self.shared_chunks()?;
        let whole: Vec<&[u64]> =
            owned.iter().filter(|one| one.is_whole).map(|one| &one.chunk.key[..]).collect();
        let mut whole = match own {
            Some(own) if !whole.is_empty() => shared.filter_whole(var, &own.elements(), &whole)?,
            _ => Vec::new(),
        }
        .into_iter();
        let is_complete = |one: &&&AssignedChunk| !one.is_whole && shared.is_complete(&one.chunk);
        let complete: Vec<bool> = owned.iter().map(|one| is_complete(&one)).collect();
        let held: Vec<&SharedChunk> =
            owned.iter().zip(&complete).filter(|(_, is)| **is).map(|(one, _)| &one.chunk).collect();
        let mut held = shared.filter_held(&held)?.into_iter();
        let mut filtered = |(one, is_complete): (&AssignedChunk, bool)| match () {
            () if one.is_whole => whole.next(),
            () if is_complete => held.next().flatten(),
            () => None,
        };
        Ok(owned.into_iter().zip(complete).map(&mut filtered).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_have_a_chunk_for_each_rank_and_are_bounded() {
        let of = |chunk_bytes, n_ranks| {
            let grid = SharedGrid { chunk_bytes, ..SharedGrid::default() };
            most_chunks_of_round(&grid, n_ranks)
        };
        assert_eq!(of(4096, 1), PLAN_ROUND_CHUNKS);
        assert_eq!((of(1 << 20, 1), of(1 << 20, 8)), (256, 2048));
        assert_eq!((of(1 << 31, 1), of(1 << 31, 8)), (1, 8));
        assert_eq!((of(1 << 31, 1 << 20), of(0, 1)), (PLAN_ROUND_CHUNKS, 1));
    }
}
