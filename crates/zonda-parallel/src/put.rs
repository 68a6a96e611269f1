//! Puts: alone, or of all ranks together.

use zonda_convert::Converted;
use zonda_format::{
    Access, Error, Grown, PutTogether, Result, TeamWrite, Transfer, UnfilledRun, Values, VarRef,
};
use zonda_model::{Answer, NcError};
use zonda_slab::Hyperslab;
use zonda_team::Reduction;

use crate::coverage;
use crate::exchange::Rounds;
use crate::file::{FAILED, MORE, ParallelFile};
use crate::later::LaterPut;
use crate::queue::{BOUNDED, PutBounds};

/// Dimensions whose lengths come with the agreement on a put; variables that can grow along others need one more reduction.
const NEEDED: usize = 8;

/// Where it is whether a rank keeps puts that it made alone.
const KEPT: usize = NEEDED + 1;

/// Where the rounds are in which short runs come together.
const ROUNDS: usize = NEEDED + 2;

/// Where it is whether puts of a rank wait in its queue.
const QUEUED: usize = NEEDED + 4;

/// Where the complement of the number of the first put is that is not in the file on a rank; 0 where all are.
const PENDING: usize = NEEDED + 5;

/// Where it is whether something waits that a rank put alone to the variable.
const ALONE: usize = NEEDED + 6;

/// Where the complements of the places are where puts begin along the first dimensions.
const FIRSTS: usize = NEEDED + 7;

/// Where the complement is of how many rounds of puts, from the first on, a rank has sent through their filters.
const FILTERED: usize = FIRSTS + BOUNDED;

/// Where it is whether a rank has no memory for more while these have no places.
const SHORT: usize = FILTERED + 1;

const _: () = assert!(SHORT + 1 == MORE && FAILED == NEEDED + 3);

/// What all ranks know of a put before they make it.
struct AgreedPut {
    /// The lengths that it needs along the first dimensions.
    needed: [u64; NEEDED],
    /// The rounds in which short runs come together.
    n_rounds: u64,
    /// Puts of a rank wait in its queue, so that nobody waits for the end of the put.
    is_queued: bool,
    bounds: PutBounds,
}

/// How messages name a put.
pub(crate) const CALL: &str = "nc_put_var";

impl ParallelFile {
    pub(crate) fn in_team(&mut self) -> Result<&mut dyn TeamWrite> {
        self.file.writer().ok_or_else(Error::only_read)?.in_team()
    }

    pub(crate) fn check_put_by_ranks(&mut self, put: &mut Transfer<Access<'_>>) -> Result<()> {
        self.check_whole()?;
        // One that was checked before and never made is none.
        self.begun = None;
        let var = put.of().var;
        self.end_implied_definitions()?;
        let checked = self.in_team().and_then(|file| file.check_put_in_place(put));
        if !self.takes_part(var) {
            checked?;
            return if self.kept.is_allowed() || self.grid_of_shared(var).is_none() {
                Ok(())
            } else {
                Err(alone_to_filters())
            };
        }
        match checked {
            Ok(()) => {
                self.begun = Some(var);
                Ok(())
            }
            Err(own) => {
                // The others make the put; this rank has its error to itself.
                self.put_together(var, None)?;
                Err(own)
            }
        }
    }

    /// Definitions in data mode end with the next put, on all ranks.
    fn end_implied_definitions(&mut self) -> Result<()> {
        if self.file.in_define_mode() && self.defines_by_itself() {
            self.end_definitions_together()?;
        }
        Ok(())
    }

    /// Whether all ranks come together in puts to a variable.
    fn takes_part(&self, var: VarRef) -> bool {
        self.access.is_collective(var)
            && !self.file.in_define_mode()
            && self.file.is_writable()
            && self.file.definitions().var(var).is_ok()
    }

    pub(crate) fn put_by_ranks(
        &mut self,
        put: &Transfer<Access<'_>>,
        values: Values<'_>,
    ) -> Result<Converted> {
        if self.begun.take().is_some() {
            let done = self.put_together(put.of().var, Some((put, values)))?;
            return Ok(done.unwrap_or_default());
        }
        self.check_filled()?;
        self.replica.queue().failure().map_or(Ok(()), Err)?;
        let (var, needed) = (put.of().var, needed(put));
        let file = self.in_team()?;
        if file.extent(var).iter().zip(&needed).any(|(len, needed)| needed > len) {
            if !file.grows_alone() {
                return Err(self.not_alone(var));
            }
            file.take_lengths(&needed);
        }
        if self.grid_of_shared(var).is_some() {
            return self.keep_put(put, values);
        }
        let is_in_definitions = self.in_team()?.is_in_definitions(var);
        let noted = is_in_definitions.then(|| LaterPut::of(put, &values));
        if self.is_queued() {
            self.notes.current = Some(self.label(var, true));
        }
        let done = self.writing(|file| file.in_team()?.put_in_place(put, values));
        self.notes.current = None;
        let done = done?;
        self.later.extend(noted);
        self.uncommitted.alone = true;
        Ok(done)
    }

    /// The error of a put of one rank that would make a variable longer.
    #[cold]
    fn not_alone(&self, var: VarRef) -> Error {
        let name = self.object(var);
        let text = format!(
            "{name}: one rank alone cannot make it longer; call nc_var_par_access with NC_COLLECTIVE for it on all ranks, and put on all ranks"
        );
        Error::with_text(NcError::CantExtend, text)
    }

    /// A put of all ranks: with values, or with nothing.
    fn put_together(
        &mut self,
        var: VarRef,
        own: Option<(&Transfer<Access<'_>>, Values<'_>)>,
    ) -> Result<Option<Converted>> {
        self.n_puts_together = self.n_puts_together.wrapping_add(1);
        self.uncommitted.together = true;
        let needed = own.as_ref().map_or_else(Vec::new, |(put, _)| needed(put));
        let slab = own.as_ref().filter(|(put, _)| put.n_elems > 0).map(|(put, _)| put.of().slab);
        let wanted = own.as_ref().map_or(Rounds::NONE, |(put, _)| self.rounds_of(put));
        let n_bytes = own.as_ref().map_or(0, |(put, _)| put.n_bytes);
        let agreed = self.agree_on_put(var, (&needed, slab, wanted), n_bytes)?;
        let shared = match self.grid_of_shared(var) {
            Some(grid) => {
                let slabs = self.slabs_of_all(CALL, slab, grid.chunk_dims.len())?;
                self.commit_if_due(CALL, (var, &grid), &slabs)?;
                Some((slabs, grid))
            }
            None => None,
        };
        let grown = self.grow_for(var, (needed, slab), &agreed.needed)?;
        if let Some((slabs, grid)) = shared {
            let label = agreed.is_queued.then(|| self.label(var, false));
            return self.put_shared((CALL, label), (var, &grid), &slabs, own);
        }
        let is_in_definitions = self.in_team()?.is_in_definitions(var);
        let waits = agreed.is_queued && !is_in_definitions;
        let label = waits.then(|| self.label(var, false));
        self.notes.current = label.clone().filter(|_| self.is_queued());
        let rounds = (wanted, agreed.n_rounds);
        let done = self.put_places(own, rounds, (grown.is_some(), is_in_definitions));
        self.notes.current = None;
        let done = done?;
        if let Some(label) = label {
            let end = (done, grown.unwrap_or_default());
            return Ok(self.leave_to_queues(&label, agreed.bounds, end));
        }
        let done = self.share(CALL, done);
        if let (Err(error), Some(covered)) = (&done, grown) {
            self.leave_unfilled(covered, error);
        }
        let done = done?;
        if is_in_definitions {
            self.put_what_is_noted(CALL)?;
        }
        Ok(done)
    }

    /// What all ranks tell each other of a put before they make it: the lengths that it needs along the first dimensions, lengths that
    /// ranks made alone, and what has to come before it. Does that.
    fn agree_on_put(
        &mut self,
        var: VarRef,
        (needed, slab, wanted): (&[u64], Option<Hyperslab<'_>>, Rounds),
        n_bytes: usize,
    ) -> Result<AgreedPut> {
        let mut numbers = [0; MORE];
        numbers.iter_mut().zip(needed).take(NEEDED).for_each(|(to, needed)| *to = *needed);
        let own_lengths = self.in_team()?.own_lengths();
        numbers[NEEDED] = own_lengths.first().copied().unwrap_or_default();
        numbers[KEPT] = u64::from(!self.kept.is_empty());
        numbers[ROUNDS] = wanted.n;
        numbers[FAILED] = self.own_failure();
        numbers[QUEUED] = u64::from(self.is_queued());
        let queue = self.replica.queue();
        numbers[PENDING] = queue.first_number().map_or(0, |number| !number);
        numbers[ALONE] = u64::from(queue.has_alone(var));
        numbers[FILTERED] = !self.n_filtered_behind();
        numbers[SHORT] = u64::from(self.is_short_behind(n_bytes));
        let starts = slab.map_or(&[][..], |slab| slab.start);
        let firsts = numbers[FIRSTS..].iter_mut().zip(starts);
        firsts.for_each(|(to, &start)| *to = !(start as u64));
        let has_noted = u64::from(!self.later.is_empty());
        let has_noted = self.agree(CALL, Some(var), has_noted, &mut numbers)?;
        if !own_lengths.is_empty() {
            self.in_team()?.take_lengths(&numbers[NEEDED..=NEEDED]);
        }
        self.heed(CALL, numbers[FAILED])?;
        self.notes.unsettled.settled_before(!numbers[PENDING]);
        self.enter_behind(!numbers[PENDING])?;
        // What takes places before this put does has to come after the puts before it.
        let has_others = has_noted > 0 || numbers[KEPT] != 0 || self.has_unplaced_or_unfilled();
        let is_full = numbers[SHORT] != 0 || self.behind.are_too_many();
        let n_filtered = if has_others || is_full { u64::MAX } else { !numbers[FILTERED] };
        self.place_behind(CALL, n_filtered)?;
        let bounds = self.bounds(var, &numbers)?;
        if numbers[ALONE] != 0 || self.notes.unsettled.keeps_waiting(&bounds) {
            self.settle(CALL)?;
        }
        // What an error left unfilled is filled before anybody puts there.
        self.settle_places(CALL)?;
        if has_noted > 0 {
            // What ranks put alone came before what they put now.
            self.put_what_is_noted(CALL)?;
        }
        if numbers[KEPT] != 0 {
            self.place_kept(CALL)?;
        }
        let mut needed = [0; NEEDED];
        needed.copy_from_slice(&numbers[..NEEDED]);
        let (n_rounds, is_queued) = (numbers[ROUNDS], numbers[QUEUED] != 0);
        Ok(AgreedPut { needed, n_rounds, is_queued, bounds })
    }

    /// The box around what all ranks put, by what they told each other.
    fn bounds(&self, var: VarRef, numbers: &[u64; MORE]) -> Result<PutBounds> {
        let n_axes = self.file.definitions().var(var)?.dims.len().min(BOUNDED);
        let mut axes = [(0, 0); BOUNDED];
        let told = numbers[FIRSTS..].iter().zip(numbers);
        axes.iter_mut().zip(told).for_each(|(axis, (first, end))| *axis = (!first, *end));
        Ok(PutBounds { var, axes, n_axes })
    }

    /// This rank's part of a put of all ranks into what has places. The outer error is that of ranks that lost each other, the inner one that of
    /// this rank.
    fn put_places(
        &mut self,
        own: Option<(&Transfer<Access<'_>>, Values<'_>)>,
        (wanted, n_rounds): (Rounds, u64),
        (has_grown, is_in_definitions): (bool, bool),
    ) -> Result<Result<Option<Converted>>> {
        // Elements that nobody puts may be the last ones of the file.
        let reached = match has_grown && self.team.rank() == 0 {
            true => self.writing(|file| file.in_team()?.reach_end()),
            false => Ok(()),
        };
        if n_rounds > 0 {
            let own = own.filter(|_| reached.is_ok());
            let made = self.put_by_rounds(CALL, own, (wanted, n_rounds))?;
            return Ok(reached.and(made));
        }
        if let Err(error) = reached {
            return Ok(Err(error));
        }
        let Some((put, values)) = own else { return Ok(Ok(None)) };
        let noted = is_in_definitions.then(|| LaterPut::of(put, &values));
        let done = self.writing(|file| file.in_team()?.put_in_place(put, values));
        if done.is_ok() {
            self.later.extend(noted);
        }
        Ok(done.map(Some))
    }

    /// Makes a variable as long as the puts of all ranks need: of this rank `own`, of all along the first dimensions `most`. If it has become
    /// longer, gives the new places that are not filled, as the puts cover them.
    fn grow_for(
        &mut self,
        var: VarRef,
        (own, slab): (Vec<u64>, Option<Hyperslab<'_>>),
        most: &[u64],
    ) -> Result<Option<Vec<UnfilledRun>>> {
        let extent = self.in_team()?.extent(var);
        let definitions = self.file.definitions();
        let can_grow = |dim| definitions.dim(dim).is_ok_and(|dim| dim.is_unlimited);
        let dims = definitions.var(var)?.dims;
        let mut needed = most.to_vec();
        if dims.iter().skip(NEEDED).any(|&dim| can_grow(dim)) {
            needed = own;
            needed.resize(extent.len(), 0);
            let together = self.team.reduce(self.step(CALL), Reduction::Max, &mut needed);
            together.map_err(|error| self.lost_team(error))?;
        }
        needed.resize(extent.len(), 0);
        let grown: Vec<u64> = extent.iter().zip(&needed).map(|(&a, &b)| a.max(b)).collect();
        if grown == extent {
            return Ok(None);
        }
        if self.grid_of_shared(var).is_none() {
            // It gets its places now, after those of the puts before it.
            self.place_behind(CALL, u64::MAX)?;
        }
        let file = self.in_team()?;
        let (in_memory, may_fail) = (file.grows_in_memory(), file.growth_may_fail());
        if !in_memory {
            if self.notes.unsettled.has_any(None) {
                // Rank 0 finds in the file what all have put.
                self.settle(CALL)?;
            }
            let Grown { unfilled, .. } =
                self.common(CALL, |file| file.in_team()?.grow(var, &grown))?;
            return self.fill(CALL, unfilled).map(|()| Some(Vec::new()));
        }
        let done = self.in_memory(|file| file.grow(var, &grown));
        if !may_fail {
            return done.map(|_| Some(Vec::new()));
        }
        let (Grown { unfilled, padded, .. }, is_covered) = self.all_grew(done, slab)?;
        if !is_covered {
            return self.fill(CALL, unfilled).map(|()| Some(Vec::new()));
        }
        // What lies beyond the lengths is the same whether or not a put covers all before.
        if let Err(error) = self.fill(CALL, padded) {
            self.leave_unfilled(unfilled, &error);
            return Err(error);
        }
        Ok(Some(unfilled))
    }

    /// All ranks learn whether growth in memory failed on one of them, and whether they put all elements that are new. Gives what has to be filled.
    fn all_grew(&self, done: Result<Grown>, slab: Option<Hyperslab<'_>>) -> Result<(Grown, bool)> {
        let region = done.as_ref().ok().and_then(|grown| grown.elements.as_ref());
        let own =
            slab.zip(region).and_then(|(slab, region)| coverage::values_within(&slab, region));
        let [a, b, c, d] = own.unwrap_or_default();
        let mut sums = [a, b, c, d, u64::from(done.is_err())];
        let together = self.team.reduce(self.step(CALL), Reduction::Sum, &mut sums);
        together.map_err(|error| self.lost_team(error))?;
        let [sum @ .., n_failed] = sums;
        match done {
            // Some ranks have a longer variable, and some have not.
            _ if n_failed != 0 && n_failed != self.team.size() as u64 => {
                let why = "a variable became longer on some ranks and could not on others; the file can only be closed";
                Err(self.lose(Error::answered(NcError::Mpi, Answer::Request, why)))
            }
            Ok(grown) => {
                let covers = |region| coverage::parts_cover(region, sum);
                let is_covered = grown.elements.as_ref().is_some_and(covers);
                Ok((grown, is_covered))
            }
            Err(error) => Err(error),
        }
    }

    /// Does on this rank what all ranks do, and asks nothing of the file's metadata.
    fn in_memory<T>(&mut self, work: impl FnOnce(&mut dyn TeamWrite) -> Result<T>) -> Result<T> {
        self.replica.state().stay_in_memory();
        let done = self.in_team().and_then(work);
        self.replica.state().be_own();
        done
    }
}

impl PutTogether for ParallelFile {
    fn n_puts_together(&self) -> u64 {
        self.n_puts_together
    }

    fn take_part(&mut self, var: VarRef) -> Result<()> {
        self.begun = None;
        if !self.file.is_writable() || self.is_lost() {
            return Ok(());
        }
        // The others end definitions by their puts, also where each then puts alone.
        self.end_implied_definitions()?;
        if self.takes_part(var) { self.put_together(var, None).map(drop) } else { Ok(()) }
    }
}

/// What a put by a rank alone is told whose chunks go through filters.
fn alone_to_filters() -> Error {
    let why = "chunks that go through filters are put to by all ranks together: call nc_var_par_access with NC_COLLECTIVE";
    Error::because(NcError::HdfErr, why)
}

/// The lengths that a put needs. One of no elements needs none.
fn needed(put: &Transfer<Access<'_>>) -> Vec<u64> {
    let slab: &Hyperslab<'_> = &put.of().slab;
    let rank = slab.start.len().min(slab.count.len());
    if put.n_elems == 0 {
        return vec![0; rank];
    }
    (0..rank).map(|axis| slab.axis(axis).end()).collect()
}
