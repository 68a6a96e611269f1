//! Puts: alone, or of all ranks together.

use zonda_convert::Converted;
use zonda_format::{
    Access, Error, Grown, Result, TeamWrite, Transfer, UnfilledRun, Values, VarRef,
};
use zonda_model::{Answer, NcError};
use zonda_slab::Hyperslab;
use zonda_team::Reduction;

use crate::coverage;
use crate::exchange::Rounds;
use crate::file::{MORE, ParallelFile};
use crate::later::LaterPut;

/// Dimensions whose lengths come with the agreement on a put; variables that can grow along others need one more reduction.
const NEEDED: usize = 8;

/// Where it is whether a rank keeps puts that it made alone.
const KEPT: usize = NEEDED + 1;

/// Where the rounds are in which short runs come together.
const ROUNDS: usize = NEEDED + 2;

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
        let file = self.in_team()?;
        let noted = file.is_in_definitions(var).then(|| LaterPut::of(put, &values));
        let done = file.put_in_place(put, values)?;
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

    /// How often this rank took part in puts of all ranks, or began one that it can still take part in.
    #[must_use]
    pub fn n_puts_together(&self) -> u64 {
        self.n_puts_together
    }

    /// Takes part with nothing in a put of all ranks: for a call that found an error before it came to its put, or had nothing to
    /// put. Does nothing where ranks put alone.
    ///
    /// # Errors
    /// Those of the other ranks: see [`DispatchWrite::put`](zonda_format::DispatchWrite::put).
    pub fn take_part(&mut self, var: VarRef) -> Result<()> {
        self.begun = None;
        if !self.file.is_writable() || self.is_lost() {
            return Ok(());
        }
        // The others end definitions by their puts, also where each then puts alone.
        self.end_implied_definitions()?;
        if self.takes_part(var) { self.put_together(var, None).map(drop) } else { Ok(()) }
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
        // What all ranks tell each other: the lengths that their puts need along the first dimensions, and those that they made alone.
        let mut numbers = [0; MORE];
        numbers.iter_mut().zip(&needed).take(NEEDED).for_each(|(to, needed)| *to = *needed);
        let own_lengths = self.in_team()?.own_lengths();
        numbers[NEEDED] = own_lengths.first().copied().unwrap_or_default();
        numbers[KEPT] = u64::from(!self.kept.is_empty());
        let wanted = own.as_ref().map_or(Rounds::NONE, |(put, _)| self.rounds_of(put));
        numbers[ROUNDS] = wanted.n;
        let has_noted = u64::from(!self.later.is_empty());
        let has_noted = self.agree(CALL, Some(var), has_noted, &mut numbers)?;
        if !own_lengths.is_empty() {
            self.in_team()?.take_lengths(&numbers[NEEDED..=NEEDED]);
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
        let slab = own.as_ref().filter(|(put, _)| put.n_elems > 0).map(|(put, _)| put.of().slab);
        let shared = match self.grid_of_shared(var) {
            Some(grid) => {
                let slabs = self.slabs_of_all(CALL, slab, grid.chunk_dims.len())?;
                self.commit_if_due(CALL, (var, &grid), &slabs)?;
                Some((slabs, grid))
            }
            None => None,
        };
        let grown = self.grow_for(var, (needed, slab), &numbers[..NEEDED])?;
        if let Some((slabs, grid)) = shared {
            return self.put_shared(CALL, (var, &grid), &slabs, own);
        }
        let is_first = self.team.rank() == 0;
        let file = self.in_team()?;
        let is_in_definitions = file.is_in_definitions(var);
        let (mut noted, mut done) = (None, Ok(None));
        // Elements that nobody puts may be the last ones of the file.
        let reached = if grown.is_some() && is_first { file.reach_end() } else { Ok(()) };
        let n_rounds = numbers[ROUNDS];
        match (reached, own) {
            (reached, own) if n_rounds > 0 => {
                let own = own.filter(|_| reached.is_ok());
                let made = self.put_by_rounds(CALL, own, (wanted, n_rounds))?;
                done = reached.and(made);
            }
            (Err(error), _) => done = Err(error),
            (Ok(()), Some((put, values))) => {
                noted = is_in_definitions.then(|| LaterPut::of(put, &values));
                done = file.put_in_place(put, values).map(Some);
            }
            (Ok(()), None) => {}
        }
        if done.is_ok() {
            self.later.extend(noted);
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
        let file = self.in_team()?;
        let (in_memory, may_fail) = (file.grows_in_memory(), file.growth_may_fail());
        if !in_memory {
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
