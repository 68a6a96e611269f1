//! Chunks of puts that returned before they went through their filters (write-behind).
//!
//! All ranks have the same lists, but for what they own of them. A chunk goes through three states, and all ranks go on to the next one together,
//! in calls that all make:
//! 1. *unplaced*: its owner's queue sends it through its filters. When all ranks have that done, or something else needs a place in the file, they
//!    tell each other how long the chunks have become, and take places, in the order of the puts: those that they would have got at once.
//! 2. *placed*: the owner's queue writes it. Nothing refers to it, so that an error leaves what the file had before.
//! 3. *entered*, when all ranks have written: the same as a chunk that was stored by its put.

use std::collections::{HashMap, HashSet, VecDeque};

use zonda_format::{ChunkPlace, FilteredBytes, Result, SharedChunk, VarRef};

use crate::file::ParallelFile;
use crate::plan::TouchedChunk;
use crate::queue::{CountedBytes, FilterResult, PutLabel};
use crate::shared_put::{AssignedChunk, SharedPut};
use crate::shared_store::Told;
use crate::tuning::MOST_BEHIND_CHUNKS;

/// What this rank has of chunks whose places are not known.
#[derive(Debug)]
enum OwnChunks {
    /// With the queue: the number of the task; for each chunk that this rank owns its place in what comes of that, if it was complete; and how
    /// many come first that the put had whole.
    Filtering { task: u64, places: Vec<Option<usize>>, n_whole: usize },
    /// For each chunk that this rank owns what the filters made of it, if it was complete.
    Filtered(Vec<Option<FilteredBytes>>, CountedBytes),
}

/// Chunks of a round of a put, with their owners, in the order in which they get places. Which of them were complete their owners know.
#[derive(Debug)]
struct Unplaced {
    put: PutLabel,
    chunks: Vec<(SharedChunk, usize)>,
    own: OwnChunks,
}

/// Those that have places.
#[derive(Debug)]
struct Placed {
    put: PutLabel,
    chunks: Vec<(SharedChunk, ChunkPlace)>,
}

/// The chunks of a file that are not entered.
#[derive(Debug, Default)]
pub(crate) struct ChunksBehind {
    unplaced: VecDeque<Unplaced>,
    placed: VecDeque<Placed>,
    /// All of them, and those that were not complete as long as only their owners know.
    keys: HashMap<VarRef, HashSet<Vec<u64>>>,
    n_keys: usize,
}

impl ChunksBehind {
    pub(crate) fn is_empty(&self) -> bool {
        self.unplaced.is_empty() && self.placed.is_empty()
    }

    /// Whether there are chunks of a variable.
    pub(crate) fn has_any(&self, var: VarRef) -> bool {
        self.keys.get(&var).is_some_and(|keys| !keys.is_empty())
    }

    /// Whether there are more than each rank should have a list of.
    pub(crate) fn are_too_many(&self) -> bool {
        self.n_keys > MOST_BEHIND_CHUNKS
    }

    fn has_one_of(&self, var: VarRef, touched: &[TouchedChunk]) -> bool {
        let keys = self.keys.get(&var).filter(|keys| !keys.is_empty());
        keys.is_some_and(|keys| touched.iter().any(|one| keys.contains(&one.key[..])))
    }

    fn add(&mut self, unplaced: Unplaced) {
        for (chunk, _) in &unplaced.chunks {
            let is_new = self.keys.entry(chunk.var).or_default().insert(chunk.key.clone());
            self.n_keys += usize::from(is_new);
        }
        self.unplaced.push_back(unplaced);
    }

    fn forget(&mut self, chunk: &SharedChunk) {
        let was_there = self.keys.get_mut(&chunk.var).is_some_and(|keys| keys.remove(&chunk.key));
        self.n_keys -= usize::from(was_there);
    }
}

impl ParallelFile {
    /// How many rounds of puts, from the first on, this rank has sent through their filters.
    pub(crate) fn n_filtered_behind(&self) -> u64 {
        if self.behind.unplaced.is_empty() {
            return 0;
        }
        let task = |round: &Unplaced| match &round.own {
            OwnChunks::Filtering { task, .. } => Some(*task),
            OwnChunks::Filtered(..) => None,
        };
        self.replica.queue().n_filtered(self.behind.unplaced.iter().map(task)) as u64
    }

    /// Whether what waits for places takes memory on this rank that a put of so many bytes needs.
    pub(crate) fn is_short_behind(&self, bytes: usize) -> bool {
        !self.behind.unplaced.is_empty() && self.replica.queue().is_short_of(bytes as u64)
    }

    /// The end of a round of a put that nobody waits for: what is complete of this rank's chunks goes to its queue.
    pub(crate) fn leave_to_filters(
        &mut self,
        label: &PutLabel,
        put: &SharedPut<'_>,
        chunks: Vec<AssignedChunk>,
        ready: Result<()>,
    ) -> Result<()> {
        // A rank that could not make its elements ready has others with chunks that were begun and lack them.
        self.forget_torn(&chunks)?;
        let own = self.own_behind(label, put, &chunks);
        let (own, done) = match own {
            Ok(own) => (own, ready),
            Err(error) => {
                let n_owned = chunks.iter().filter(|one| one.owner == self.team.rank()).count();
                let nothing = (0..n_owned).map(|_| None).collect();
                (OwnChunks::Filtered(nothing, CountedBytes::of_process(0)), ready.and(Err(error)))
            }
        };
        if let Err(error) = done {
            self.notes.note_failure(label, &error);
        }
        let chunks = chunks.into_iter().map(|one| (one.chunk, one.owner)).collect();
        self.behind.add(Unplaced { put: label.clone(), chunks, own });
        Ok(())
    }

    /// This rank's chunks of a round: in its queue, where there is room; else filtered now.
    fn own_behind(
        &mut self,
        label: &PutLabel,
        put: &SharedPut<'_>,
        chunks: &[AssignedChunk],
    ) -> Result<OwnChunks> {
        let me = self.team.rank();
        let owned: Vec<&AssignedChunk> = chunks.iter().filter(|one| one.owner == me).collect();
        let shared = self.shared_chunks()?;
        let is_held = |one: &AssignedChunk| !one.is_whole && shared.is_complete(&one.chunk);
        let held: Vec<bool> = owned.iter().map(|one| is_held(one)).collect();
        let is_whole = |one: &AssignedChunk| one.is_whole && put.own.is_some();
        let n_whole = owned.iter().filter(|one| is_whole(one)).count();
        let (mut next_whole, mut next_held) = (0..n_whole, n_whole..);
        let place = |(one, held): (&&AssignedChunk, &bool)| match () {
            () if is_whole(one) => next_whole.next(),
            () if *held => next_held.next(),
            () => None,
        };
        let places: Vec<Option<usize>> = owned.iter().zip(&held).map(place).collect();
        let n = places.iter().flatten().count();
        if n > 0 {
            let bytes = put.grid.chunk_bytes.saturating_mul(n as u64);
            let keys = |of: &dyn Fn(usize, &AssignedChunk) -> bool| -> Vec<&[u64]> {
                let chosen = owned.iter().enumerate().filter(|(at, one)| of(*at, one));
                chosen.map(|(_, one)| &one.chunk.key[..]).collect()
            };
            let whole = keys(&|_, one| is_whole(one));
            let complete = keys(&|at, _| held.get(at).copied().unwrap_or(false));
            if let Some(counted) = self.replica.queue().room_for(bytes) {
                let elements = put.own.map(|own| own.elements());
                let of = elements.as_ref().filter(|_| !whole.is_empty());
                let of = of.map(|of| (of, &whole[..]));
                // Without memory for copies they are filtered from where they are.
                if let Ok(detached) = self.shared_chunks()?.detach(put.var, of, &complete) {
                    let task = self.replica.queue().filter_later(label.clone(), detached, counted);
                    return Ok(OwnChunks::Filtering { task, places, n_whole });
                }
            }
        }
        let filtered = self.filter_complete(chunks, put.own)?;
        let bytes = filtered.iter().flatten().map(|chunk| chunk.bytes.capacity() as u64);
        let counted = self.replica.queue().counted(bytes.fold(0, u64::saturating_add));
        Ok(OwnChunks::Filtered(filtered, counted))
    }

    /// What the filters made of this rank's chunks of a round, when they have. Chunks that they refused wait on where they waited.
    fn filtered_behind(
        &mut self,
        chunks: &[(SharedChunk, usize)],
        own: OwnChunks,
    ) -> Result<(Vec<Option<FilteredBytes>>, CountedBytes)> {
        let (task, places, n_whole) = match own {
            OwnChunks::Filtered(filtered, counted) => return Ok((filtered, counted)),
            OwnChunks::Filtering { task, places, n_whole } => (task, places, n_whole),
        };
        let done = self.replica.queue().filtered(task);
        let (done, counted) = done.unwrap_or_else(|| (Vec::new(), CountedBytes::of_process(0)));
        let mut done: Vec<Option<FilterResult>> = done.into_iter().map(Some).collect();
        let me = self.team.rank();
        let owned = chunks.iter().filter(|(_, owner)| *owner == me);
        let mut filtered = Vec::with_capacity(places.len());
        for ((chunk, _), place) in owned.zip(places) {
            let result = place.and_then(|place| done.get_mut(place)?.take());
            filtered.push(match result {
                Some(Ok(bytes)) => Some(bytes),
                Some(Err(refused)) => {
                    // What a put had whole it is told to have failed; what waited has elements of other puts.
                    if place.is_some_and(|place| place >= n_whole) {
                        self.shared_chunks()?.hold_again(chunk, refused.bytes);
                    }
                    None
                }
                None => None,
            });
        }
        Ok((filtered, counted))
    }

    /// All ranks give places to the chunks of so many rounds of puts, when they have been through their filters, and have their queues write them.
    ///
    /// # Errors
    /// Those of ranks that lost each other; the file would become too long, which all ranks find: then all is as it was.
    pub(crate) fn place_behind(&mut self, call: &'static str, n_rounds: u64) -> Result<()> {
        let most = self.behind.unplaced.len();
        let n = usize::try_from(n_rounds).unwrap_or(usize::MAX).min(most);
        if n == 0 {
            return Ok(());
        }
        let rounds: Vec<Unplaced> = self.behind.unplaced.drain(..n).collect();
        let (mut heads, mut all, mut own) = (Vec::with_capacity(n), Vec::new(), Vec::new());
        for Unplaced { put, chunks, own: own_of_round } in rounds {
            let (filtered, counted) = self.filtered_behind(&chunks, own_of_round)?;
            heads.push((put, chunks.len(), filtered.len(), counted));
            all.extend(chunks);
            own.extend(filtered);
        }
        // What went wrong is told by its number, with the agreement on a call.
        let (told, own) = self.tell_lengths(call, &all, Ok(own))?;
        let (mut all, mut told, mut own) = (all.into_iter(), told.into_iter(), own.into_iter());
        let (mut done, mut left) = (Ok(()), VecDeque::new());
        for (put, n_chunks, n_own, counted) in heads {
            let chunks: Vec<(SharedChunk, usize)> = all.by_ref().take(n_chunks).collect();
            let told: Vec<Told> = told.by_ref().take(n_chunks).collect();
            let own: Vec<Option<FilteredBytes>> = own.by_ref().take(n_own).collect();
            let lens: Vec<u64> = told.iter().flatten().map(|(len, _)| *len).collect();
            let places = match &done {
                Ok(()) => self.shared_chunks()?.take_places(&lens),
                Err(_) => Ok(Vec::new()),
            };
            match places {
                Ok(at) if done.is_ok() => {
                    self.write_behind(put, (chunks, told), at, (own, counted))?;
                }
                places => {
                    let own = OwnChunks::Filtered(own, counted);
                    left.push_back(Unplaced { put, chunks, own });
                    done = done.and(places.map(drop));
                }
            }
        }
        left.append(&mut self.behind.unplaced);
        self.behind.unplaced = left;
        done
    }

    /// Has the queue write this rank's chunks of a round, which have places now.
    fn write_behind(
        &mut self,
        put: PutLabel,
        (chunks, told): (Vec<(SharedChunk, usize)>, Vec<Told>),
        at: Vec<u64>,
        (own, counted): (Vec<Option<FilteredBytes>>, CountedBytes),
    ) -> Result<()> {
        let (me, mut at) = (self.team.rank(), at.into_iter());
        let (mut placed, mut of_me) = (Vec::new(), Vec::new());
        for ((chunk, owner), told) in chunks.into_iter().zip(told) {
            let place = told.and_then(|(len, mask)| Some(ChunkPlace { at: at.next()?, len, mask }));
            let Some(place) = place else {
                // It was not complete: it waits with its owner.
                self.behind.forget(&chunk);
                continue;
            };
            self.ledger.remove(&chunk);
            if owner == me {
                of_me.push(place);
            }
            placed.push((chunk, place));
        }
        if placed.is_empty() {
            return Ok(());
        }
        let own = own.into_iter().flatten().zip(of_me).collect();
        // There is memory for it since the filters have been through.
        let written = self.shared_chunks()?.to_write(own);
        let written = written.map_err(|error| self.lose(error))?;
        self.replica.queue().accept_chunks(put.clone(), written, counted);
        self.behind.placed.push_back(Placed { put, chunks: placed });
        Ok(())
    }

    /// Enters the chunks of puts before one with this number: all ranks know that all have written them.
    pub(crate) fn enter_behind(&mut self, before: u64) -> Result<()> {
        while self.behind.placed.front().is_some_and(|round| round.put.number < before)
            && let Some(round) = self.behind.placed.pop_front()
        {
            let entries: Vec<(&SharedChunk, ChunkPlace, bool)> =
                round.chunks.iter().map(|(chunk, place)| (chunk, *place, true)).collect();
            // It can fail for lack of memory on this rank alone.
            let entered = self.shared_chunks()?.enter(&entries);
            entered.map_err(|error| self.lose(error))?;
            round.chunks.iter().for_each(|(chunk, _)| self.behind.forget(chunk));
        }
        Ok(())
    }

    /// All chunks of puts that have returned are in the file and entered, on all ranks. Whether there were any.
    ///
    /// # Errors
    /// What keeps a queue from going on, and what is told once, on all ranks.
    pub(crate) fn settle_behind(&mut self, call: &'static str) -> Result<bool> {
        if self.behind.is_empty() {
            return Ok(false);
        }
        self.place_behind(call, u64::MAX)?;
        if !self.behind.placed.is_empty() {
            self.settle(call)?;
        }
        Ok(true)
    }

    /// Before ranks put to chunks of a variable: chunks of earlier puts among them are in the file, or wait with their owners.
    pub(crate) fn settle_touched(
        &mut self,
        call: &'static str,
        var: VarRef,
        touched: &[TouchedChunk],
    ) -> Result<()> {
        if !self.behind.has_one_of(var, touched) {
            return Ok(());
        }
        self.place_behind(call, u64::MAX)?;
        if self.behind.has_one_of(var, touched) { self.settle(call) } else { Ok(()) }
    }

    /// Gives up what is not entered: it cannot be stored, and the file ends.
    pub(crate) fn forget_behind(&mut self) -> Result<()> {
        self.replica.queue().give_up_filters();
        self.behind.unplaced.clear();
        while let Some(round) = self.behind.placed.pop_back() {
            let places: Vec<ChunkPlace> = round.chunks.iter().map(|(_, place)| *place).collect();
            self.shared_chunks()?.give_places_back(&places);
        }
        self.behind = ChunksBehind::default();
        Ok(())
    }
}
