//! Puts to chunks that have owners: each rank tells what it puts, and sends its parts of chunks to their owners. A chunk of which all elements
//! were put is stored at once; the others wait.

use std::borrow::Cow;
use std::collections::BTreeMap;

use zonda_convert::Converted;
use zonda_format::{
    Access, Error, FilteredBytes, HeldChunk, Result, SharedChunk, SharedChunks, SharedGrid,
    SlabBytes, Transfer, Values, VarRef,
};
use zonda_model::{Answer, NcError};
use zonda_slab::Hyperslab;
use zonda_team::Message;

use crate::coverage;
use crate::file::ParallelFile;
use crate::plan::{RankSlab, TouchedChunk, plan};

/// A chunk that a put touches, and who owns it.
pub(crate) struct AssignedChunk {
    pub(crate) chunk: SharedChunk,
    pub(crate) owner: usize,
    /// The owner puts all of it, and nothing of it waits: it need not wait, either.
    is_whole: bool,
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
struct SharedPut<'a> {
    call: &'static str,
    var: VarRef,
    grid: &'a SharedGrid,
    /// What each rank puts.
    slabs: &'a [RankSlab],
    /// The elements of this rank, where it could make them ready.
    own: Option<&'a OwnPart<'a>>,
}

/// What a rank puts.
struct OwnPart<'v> {
    slab: RankSlab,
    bytes: Cow<'v, [u8]>,
}

impl OwnPart<'_> {
    fn elements(&self) -> SlabBytes<'_> {
        SlabBytes { slab: self.slab.slab(), bytes: &self.bytes }
    }
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
        call: &'static str,
        (var, grid): (VarRef, &SharedGrid),
        slabs: &[RankSlab],
        own: Option<(&Transfer<Access<'_>>, Values<'_>)>,
    ) -> Result<Option<Converted>> {
        self.shared_chunks()?.begin_put(var);
        let extent = self.in_team()?.extent(var);
        let touched = plan(grid, &extent, slabs);
        let formed = own.map(|(put, values)| self.shared_chunks()?.in_file_form(put, values));
        let (own, mut failed) = match formed.transpose() {
            Ok(formed) => (formed, Ok(())),
            Err(error) => (None, Err(error)),
        };
        let converted = own.as_ref().map(|(_, converted)| *converted);
        let slab = slabs.get(self.team.rank()).cloned().unwrap_or_default();
        let own = own.map(|(bytes, _)| OwnPart { slab, bytes });
        let put = SharedPut { call, var, grid, slabs, own: own.as_ref() };
        let mut rest = &touched[..];
        loop {
            let n = self.round_of(&put, rest);
            let (round, behind) = rest.split_at_checked(n).unwrap_or((rest, &[]));
            self.put_round(&put, round, std::mem::replace(&mut failed, Ok(())))?;
            self.store_too_many(call)?;
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
        Ok(converted)
    }

    /// How many of the chunks that a put touches are put to before too many of them wait: all, where they have room; else as many as one
    /// process would put to.
    fn round_of(&self, put: &SharedPut<'_>, touched: &[TouchedChunk]) -> usize {
        let SharedPut { grid, slabs, var, .. } = *put;
        let is_new = |one: &&TouchedChunk| one.whole_by.is_none();
        let new = touched.iter().filter(is_new).count() as u64;
        let limit = self.waiting_limit;
        if !self.ledger.is_more_than(limit, new.saturating_mul(grid.waiting_bytes)) {
            return touched.len();
        }
        let most = (limit / 4).min(grid.round_bytes).checked_div(grid.chunk_bytes).unwrap_or(0);
        let (most, mut n_incomplete) = (most.max(1), 0u64);
        let mut round = 0;
        for one in touched {
            if n_incomplete >= most {
                break;
            }
            let chunk = SharedChunk { var, key: one.key.clone() };
            let is_whole =
                one.whole_by.is_some() || parts_cover(grid, &chunk.key, &one.ranks, slabs);
            n_incomplete += u64::from(!is_whole);
            round += 1;
        }
        round
    }

    /// A put of all ranks to some of the chunks that it touches.
    fn put_round(
        &mut self,
        put: &SharedPut<'_>,
        touched: &[TouchedChunk],
        failed: Result<()>,
    ) -> Result<()> {
        let chunks = self.assigned(put, touched);
        let held = self.hold_parts(put, &chunks)?;
        let ready = failed.and(held).and_then(|()| self.filter_complete(&chunks, put.own));
        let listed: Vec<(SharedChunk, usize)> =
            chunks.iter().map(|one| (one.chunk.clone(), one.owner)).collect();
        for AssignedChunk { chunk, owner, .. } in chunks.iter().filter(|one| !one.is_whole) {
            self.ledger.touch(chunk, *owner, put.grid.waiting_bytes);
        }
        if let Err(error) = self.store_together(put.call, &listed, ready) {
            self.forget_torn(&chunks)?;
            return Err(error);
        }
        Ok(())
    }

    /// After an error: chunks that were begun without what the file has of them, and that did not get all of their elements.
    fn forget_torn(&mut self, chunks: &[AssignedChunk]) -> Result<()> {
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
        let mut mine = Vec::new();
        own.write_to(rank, &mut mine);
        // Rank 0 says how much may wait, since ranks may have been told otherwise.
        let mut all = self.waiting_limit.to_le_bytes().to_vec();
        if self.team.size() > 1 {
            let gathered = self.team.gather(self.step(call), 0, &mine);
            let gathered = gathered.map_err(|error| self.lost_team(error))?;
            gathered.iter().for_each(|one| all.extend_from_slice(one));
            let told = self.team.broadcast(self.step(call), 0, &mut all);
            told.map_err(|error| self.lost_team(error))?;
        } else {
            all.extend_from_slice(&mine);
        }
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
    fn assigned(&mut self, put: &SharedPut<'_>, touched: &[TouchedChunk]) -> Vec<AssignedChunk> {
        let me = self.team.rank();
        let of_var = self.ledger.number(put.var) as u64;
        let assign = |touched: &TouchedChunk| {
            let chunk = SharedChunk { var: put.var, key: touched.key.clone() };
            let waiting = self.ledger.get(&chunk);
            let owner = waiting.map_or_else(|| touched.new_owner(of_var), |waiting| waiting.owner);
            let is_new = waiting.is_none();
            let is_whole = is_new && touched.whole_by == Some(owner);
            let ranks = touched.ranks.clone();
            let is_covered = is_new
                && !is_whole
                && owner == me
                && parts_cover(put.grid, &chunk.key, &ranks, put.slabs);
            AssignedChunk { chunk, owner, is_whole, is_covered, ranks }
        };
        touched.iter().map(assign).collect()
    }

    /// Sends the parts of others' chunks to their owners, and holds the parts of this rank's chunks. The outer error is that of ranks that lost
    /// each other.
    fn hold_parts(
        &mut self,
        &SharedPut { call, slabs, own, .. }: &SharedPut<'_>,
        chunks: &[AssignedChunk],
    ) -> Result<Result<()>> {
        let waiting = || chunks.iter().filter(|one| !one.is_whole);
        let (messages, mut sent) = self.messages(chunks, own);
        let is_sent = waiting().any(|one| one.ranks.iter().any(|&rank| rank != one.owner));
        let mut received: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        if is_sent {
            match self.exchange(call, messages)? {
                Ok(messages) => received
                    .extend(messages.into_iter().map(|Message { rank, bytes }| (rank, bytes))),
                Err(error) => sent = sent.and(Err(error)),
            }
        }
        let me = self.team.rank();
        // The parts of each rank, in the order of ranks: where two put the same element, it is the last one's.
        let mut parts: BTreeMap<usize, (VarRef, Vec<HeldChunk<'_>>)> = BTreeMap::new();
        for one in waiting().filter(|one| one.owner == me) {
            for &rank in &one.ranks {
                let (_, list) = parts.entry(rank).or_insert((one.chunk.var, Vec::new()));
                list.push(HeldChunk { key: &one.chunk.key, is_covered: one.is_covered });
            }
        }
        let mut done = sent;
        for (rank, (var, list)) in parts {
            let held = match own.filter(|_| rank == me) {
                Some(own) => self.shared_chunks()?.hold(var, &own.elements(), &list, false),
                None => {
                    // A rank that could not send what it puts says so itself.
                    let Some(bytes) = received.get(&rank).filter(|bytes| !bytes.is_empty()) else {
                        continue;
                    };
                    let of = SlabBytes { slab: slabs[rank].slab(), bytes };
                    self.shared_chunks()?.hold(var, &of, &list, true)
                }
            };
            done = done.and(held);
        }
        Ok(done)
    }

    /// What this rank sends to the owners of chunks that it has parts of.
    fn messages(
        &mut self,
        chunks: &[AssignedChunk],
        own: Option<&OwnPart<'_>>,
    ) -> (Vec<Message>, Result<()>) {
        let (me, mut done) = (self.team.rank(), Ok(()));
        let mut of_owner: BTreeMap<usize, (VarRef, Vec<&[u64]>)> = BTreeMap::new();
        let others = chunks.iter().filter(|one| !one.is_whole && one.owner != me);
        for one in others.filter(|one| one.ranks.contains(&me)) {
            let (_, keys) = of_owner.entry(one.owner).or_insert((one.chunk.var, Vec::new()));
            keys.push(&one.chunk.key);
        }
        let mut messages = Vec::with_capacity(of_owner.len());
        for (rank, (var, keys)) in of_owner {
            let packed = match own {
                Some(own) => self
                    .shared_chunks()
                    .and_then(|shared| shared.parts_of(var, &own.elements(), &keys)),
                None => Ok(Vec::new()),
            };
            let bytes = packed.unwrap_or_else(|error| {
                done = Err(error);
                Vec::new()
            });
            messages.push(Message { rank, bytes });
        }
        (messages, done)
    }

    /// Sends those of this rank's chunks through their filters that are complete: one for each that it owns.
    fn filter_complete(
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
