//! Puts by a rank alone to chunks that go through filters, where the program asked for that: the rank keeps them, in chunks that it holds for
//! itself, and all ranks place them together in the next call that all make.
//!
//! What is kept is in the format's own store of chunks that wait: it takes memory by the same limit, goes to the same file without a name
//! where there is too little, and the rank's gets find it. Nobody else sees it.

use std::collections::{BTreeMap, BTreeSet};

use zonda_convert::Converted;
use zonda_format::{
    Access, Error, FilteredBytes, GroupId, HeldChunk, MergedChunk, Result, SharedChunk, SlabBytes,
    Transfer, Values, VarRef,
};
use zonda_model::{NcError, VarId};
use zonda_team::{Message, Reduction};

use crate::file::ParallelFile;
use crate::plan::{Plan, RankSlab, TouchedChunk};
use crate::shared_put::damaged_message;
use crate::tuning::{KEPT_ROUND_BYTES, KEPT_ROUND_LEAST, KEPT_ROUND_MOST, KEPT_ROUND_MOST_BYTES};

/// What a rank keeps.
#[derive(Debug, Default)]
pub(crate) struct KeptPuts {
    /// The program asked for it.
    is_allowed: bool,
    /// The chunks that this rank put to alone.
    chunks: BTreeSet<SharedChunk>,
}

impl KeptPuts {
    pub(crate) fn is_allowed(&self) -> bool {
        self.is_allowed
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }
}

/// Bytes of a variable's numbers.
const VAR_BYTES: usize = 6;

fn write_var(var: VarRef, out: &mut Vec<u8>) {
    out.extend_from_slice(&var.group.0.to_le_bytes());
    out.extend_from_slice(&var.var.0.to_le_bytes());
}

fn read_vars(bytes: &[u8]) -> Option<BTreeSet<VarRef>> {
    let (vars, rest) = bytes.as_chunks::<VAR_BYTES>();
    let of = |&[a, b, c, d, e, f]: &[u8; VAR_BYTES]| VarRef {
        group: GroupId(u16::from_le_bytes([a, b])),
        var: VarId(i32::from_le_bytes([c, d, e, f])),
    };
    rest.is_empty().then(|| vars.iter().map(of).collect())
}

/// The chunks of all variables that ranks put to alone, in one row: those of one variable after those of another.
struct Row {
    /// The place of each variable's first chunk, and how many chunks it has along each dimension.
    vars: Vec<(VarRef, u64, Vec<u64>)>,
    /// Places of a round.
    round: u64,
}

impl Row {
    /// The place of a chunk.
    fn place(&self, chunk: &SharedChunk) -> Option<u64> {
        let at = self.vars.binary_search_by_key(&chunk.var, |of| of.0).ok()?;
        let (_, first, counts) = &self.vars[at];
        let number = counts.iter().zip(&chunk.key);
        let number = number.fold(0u64, |sum, (&n, &key)| sum.saturating_mul(n).saturating_add(key));
        Some(first.saturating_add(number))
    }

    /// The chunk at a place.
    fn chunk(&self, place: u64) -> Option<SharedChunk> {
        let at = self.vars.partition_point(|of| of.1 <= place).checked_sub(1)?;
        let (var, first, counts) = self.vars.get(at)?;
        let mut key = vec![0; counts.len()];
        zonda_slab::unrank(place - first, counts, &mut key);
        Some(SharedChunk { var: *var, key })
    }
}

/// How many chunks there are along each dimension.
fn chunk_counts(extent: &[u64], chunk_dims: &[u64]) -> Vec<u64> {
    extent.iter().zip(chunk_dims).map(|(&len, &dim)| len.div_ceil(dim.max(1))).collect()
}

/// How many chunks these are; `None` where that is no number of 64 bits.
fn n_chunks(counts: &[u64]) -> Option<u64> {
    counts.iter().try_fold(1u64, |n, &count| n.checked_mul(count))
}

/// How many places a round has, where the largest chunk has so many bytes.
fn places_of_round(largest: u64) -> u64 {
    let largest = largest.max(1);
    let least = (KEPT_ROUND_MOST_BYTES / largest).clamp(1, KEPT_ROUND_LEAST);
    (KEPT_ROUND_BYTES / largest).clamp(least, KEPT_ROUND_MOST)
}

/// A chunk of a round, the ranks that put to it in ascending order, and which of them stores it.
struct RoundChunk {
    chunk: SharedChunk,
    ranks: Vec<usize>,
    owner: usize,
}

/// What came of each rank: parts of this rank's chunks, chunk after chunk.
type PartsOfRanks = BTreeMap<usize, Vec<u8>>;

/// What another rank put of a chunk, and whether that goes over what this rank put.
type PartAndPlace<'a> = (&'a [u8], bool);

/// The ranks whose bits are set at each place of a round, and who stores it: one of them, another one for each place.
fn ranks_of_places(maps: &[&[u8]], begin: u64) -> Vec<(u64, Vec<usize>, usize)> {
    let n_bytes = maps.iter().map(|map| map.len()).max().unwrap_or(0);
    let mut found = Vec::new();
    for nth in 0..n_bytes * 8 {
        let is_set = |map: &&[u8]| map.get(nth / 8).is_some_and(|byte| byte >> (nth % 8) & 1 == 1);
        let ranks: Vec<usize> =
            maps.iter().enumerate().filter(|(_, map)| is_set(map)).map(|(rank, _)| rank).collect();
        if ranks.is_empty() {
            continue;
        }
        let place = begin.saturating_add(nth as u64);
        let turn = place.checked_rem(ranks.len() as u64).unwrap_or(0);
        let owner = ranks[usize::try_from(turn).unwrap_or(0)];
        found.push((place, ranks, owner));
    }
    found
}

impl ParallelFile {
    /// Lets each rank put alone to chunks that go through filters; all ranks have to be told the same.
    pub fn allow_independent_filters(&mut self, allows: bool) {
        self.kept.is_allowed = allows;
    }

    /// A put by this rank alone to chunks that go through filters.
    pub(crate) fn keep_put(
        &mut self,
        put: &Transfer<Access<'_>>,
        values: Values<'_>,
    ) -> Result<Converted> {
        let var = put.of().var;
        let grid = self.grid_of_shared(var).ok_or(NcError::Internal)?;
        if put.n_elems > 0 && !self.shared_chunks()?.has_room_to_hold() {
            return Err(self.without_room(var));
        }
        let extent = self.in_team()?.extent(var);
        let (bytes, converted) = self.shared_chunks()?.in_file_form(put, values)?;
        if put.n_elems == 0 {
            return Ok(converted);
        }
        let slab = RankSlab::of(&put.of().slab, grid.chunk_dims.len());
        let touched: Vec<TouchedChunk> =
            Plan::new(&grid, &extent, std::slice::from_ref(&slab)).collect();
        let of = SlabBytes { slab: slab.slab(), bytes: &bytes };
        let chunks: Vec<HeldChunk<'_>> = touched
            .iter()
            .map(|one| HeldChunk { key: &one.key, is_covered: one.whole_by.is_some() })
            .collect();
        let held = self.shared_chunks()?.hold(var, &of, &chunks, false);
        for one in touched {
            let chunk = SharedChunk { var, key: one.key };
            // After an error some may have got their elements, and some not.
            if held.is_ok() || self.shared_chunks()?.holds(&chunk) {
                self.kept.chunks.insert(chunk);
            }
        }
        self.uncommitted.alone = true;
        held.map(|()| converted)
    }

    /// The error of a put for which there is no room until what was put before is in the file.
    #[cold]
    fn without_room(&self, var: VarRef) -> Error {
        let name = self.object(var);
        let text = format!(
            "{name}: there is neither memory (ZONDA_MEMORY) nor room on the device for more of what this rank puts alone; call nc_sync on all ranks, \
             which places it, and put again"
        );
        Error::with_text(NcError::NoMem, text)
    }

    /// Before a rank puts alone to a variable to which all put together: what waits of it goes into the file, since owners keep nothing of chunks
    /// that others put to alone, and what waits in a queue would come after what another rank puts then. All ranks make the call.
    ///
    /// # Errors
    /// Those of the ranks that come together, and of the storage.
    pub fn before_independent(&mut self, var: VarRef) -> Result<()> {
        const CALL: &str = "nc_var_par_access";
        if self.is_lost() || !self.waits_for_independent(var) {
            return Ok(());
        }
        let ends = self.kept.is_allowed && self.ledger.has_any(var);
        if self.is_unsettled(var) || self.behind.has_any(var) || ends && self.ledger.is_dirty(var) {
            // Of a classic file any variable stands for all.
            let of = self.file.capabilities().dialect.is_netcdf4().then_some(var);
            self.agree_when_written(CALL, of)?;
            let _were_any = self.settle_behind(CALL)?;
        }
        if ends { self.end_waiting_of(CALL, var) } else { Ok(()) }
    }

    /// Whether [`ParallelFile::before_independent`] has something to do.
    #[must_use]
    pub fn waits_for_independent(&self, var: VarRef) -> bool {
        let waits = self.is_unsettled(var) || self.behind.has_any(var);
        self.kept.is_allowed && self.ledger.has_any(var) || waits
    }

    /// Whether what ranks put together to what is switched with a variable may wait in a queue.
    fn is_unsettled(&self, var: VarRef) -> bool {
        let is_each = self.file.capabilities().dialect.is_netcdf4();
        self.notes.unsettled.has_any(is_each.then_some(var))
    }

    /// Places what all ranks put alone: all call it, when one of them has something.
    pub(crate) fn place_kept(&mut self, call: &'static str) -> Result<()> {
        let row = self.row_of_kept(call)?;
        let mut from = 0;
        while let Some((begin, round)) = self.next_round(call, &row, from)? {
            self.place_round(call, round)?;
            from = begin.saturating_add(row.round);
        }
        Ok(())
    }

    /// The chunks of all variables that any rank put to alone.
    fn row_of_kept(&mut self, call: &'static str) -> Result<Row> {
        let mut mine = Vec::new();
        let vars: BTreeSet<VarRef> = self.kept.chunks.iter().map(|chunk| chunk.var).collect();
        vars.iter().for_each(|var| write_var(*var, &mut mine));
        let gathered = self.team.gather(self.step(call), 0, &mine);
        let gathered = gathered.map_err(|error| self.lost_team(error))?.concat();
        let mut all = Vec::new();
        match read_vars(&gathered) {
            Some(union) => union.iter().for_each(|var| write_var(*var, &mut all)),
            // No list of variables, so that all ranks learn of it.
            None => all.push(0),
        }
        let told = self.team.broadcast(self.step(call), 0, &mut all);
        told.map_err(|error| self.lost_team(error))?;
        let union = read_vars(&all).ok_or_else(|| self.lose(damaged_message()))?;
        let (mut row, mut next, mut largest) = (Vec::new(), 0u64, 1);
        for var in union {
            // Ranks may have changed over to puts of all since they put alone.
            self.end_waiting_of(call, var)?;
            let grid = self.grid_of_shared(var).ok_or_else(|| self.lose(damaged_message()))?;
            self.shared_chunks()?.begin_put(var);
            let extent = self.in_team()?.extent(var);
            let counts = chunk_counts(&extent, &grid.chunk_dims);
            // Far below: a variable has at most `MOST_TEAM_CHUNKS`. The same on all ranks.
            let end = n_chunks(&counts).and_then(|n| next.checked_add(n));
            let end = end.filter(|&end| end < u64::MAX).ok_or(NcError::Internal)?;
            row.push((var, next, counts));
            next = end;
            largest = largest.max(grid.chunk_bytes);
        }
        Ok(Row { vars: row, round: places_of_round(largest) })
    }

    /// Where the next round begins, and its chunks; `None` after the last.
    fn next_round(
        &mut self,
        call: &'static str,
        row: &Row,
        from: u64,
    ) -> Result<Option<(u64, Vec<RoundChunk>)>> {
        // In the order of their places, as in that of variables and keys.
        let places = self.kept.chunks.iter().filter_map(|chunk| row.place(chunk));
        let mut own = places.skip_while(|place| *place < from).peekable();
        let mut first = [own.peek().copied().unwrap_or(u64::MAX)];
        let told = self.team.reduce(self.step(call), Reduction::Min, &mut first);
        told.map_err(|error| self.lost_team(error))?;
        let [begin] = first;
        if begin == u64::MAX {
            return Ok(None);
        }
        let n_bytes = usize::try_from(row.round.div_ceil(8)).map_err(|_| NcError::NoMem)?;
        let mut map = vec![0; n_bytes];
        for place in own.take_while(|place| *place - begin < row.round) {
            let nth = place - begin;
            if let Some(byte) = usize::try_from(nth / 8).ok().and_then(|at| map.get_mut(at)) {
                *byte |= 1 << (nth % 8);
            }
        }
        let gathered = self.team.gather(self.step(call), 0, &map);
        let mut all = gathered.map_err(|error| self.lost_team(error))?.concat();
        let told = self.team.broadcast(self.step(call), 0, &mut all);
        told.map_err(|error| self.lost_team(error))?;
        if all.len() != n_bytes * self.team.size() {
            return Err(self.lose(damaged_message()));
        }
        let maps: Vec<&[u8]> = all.chunks(n_bytes).collect();
        let chunk = |(place, ranks, owner)| {
            row.chunk(place).map(|chunk| RoundChunk { chunk, ranks, owner })
        };
        let round: Option<Vec<RoundChunk>> =
            ranks_of_places(&maps, begin).into_iter().map(chunk).collect();
        let round = round.ok_or_else(|| self.lose(damaged_message()))?;
        Ok(Some((begin, round)))
    }

    /// Places the chunks of a round. After an error ranks keep what they put.
    fn place_round(&mut self, call: &'static str, round: Vec<RoundChunk>) -> Result<()> {
        let (received, sent) = self.exchange_parts(call, &round)?;
        let ready = sent.and_then(|()| self.filter_round(&round, &received));
        drop(received);
        let listed: Vec<(SharedChunk, usize)> =
            round.into_iter().map(|one| (one.chunk, one.owner)).collect();
        self.store_together(call, &listed, ready)?;
        for (chunk, _) in &listed {
            self.kept.chunks.remove(chunk);
        }
        Ok(())
    }

    /// Sends what this rank kept of chunks that others store. Gives what came. The outer error is that of ranks that lost each other.
    fn exchange_parts(
        &mut self,
        call: &'static str,
        round: &[RoundChunk],
    ) -> Result<(PartsOfRanks, Result<()>)> {
        let (me, mut done) = (self.team.rank(), Ok(()));
        let mut received = BTreeMap::new();
        if round.iter().all(|one| one.ranks.len() < 2) {
            return Ok((received, done));
        }
        let mut of_owner: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        for one in round.iter().filter(|one| one.owner != me && one.ranks.contains(&me)) {
            let out = of_owner.entry(one.owner).or_default();
            if done.is_ok() {
                done = self.shared_chunks().and_then(|shared| shared.kept_part(&one.chunk, out));
            }
        }
        let messages = of_owner.into_iter().map(|(rank, bytes)| Message { rank, bytes }).collect();
        match self.exchange(call, messages)? {
            Ok(messages) => {
                received.extend(messages.into_iter().map(|Message { rank, bytes }| (rank, bytes)));
            }
            Err(error) => done = done.and(Err(error)),
        }
        Ok((received, done))
    }

    /// Sends this rank's chunks of a round through their filters, with what others put to them: where two put the same element, it is that
    /// of the greater rank.
    fn filter_round(
        &mut self,
        round: &[RoundChunk],
        received: &PartsOfRanks,
    ) -> Result<Vec<Option<FilteredBytes>>> {
        let me = self.team.rank();
        let shared = self.shared_chunks()?;
        let mut rests: BTreeMap<usize, &[u8]> =
            received.iter().map(|(rank, bytes)| (*rank, &bytes[..])).collect();
        let mut merged: Vec<(&SharedChunk, Vec<PartAndPlace<'_>>)> = Vec::new();
        for one in round.iter().filter(|one| one.owner == me) {
            let mut part_of = |&rank: &usize| {
                let rest = rests.get_mut(&rank)?;
                let len = shared.kept_len(one.chunk.var, rest)?;
                let (part, behind) = rest.split_at_checked(len)?;
                *rest = behind;
                Some((part, rank > me))
            };
            let others = one.ranks.iter().filter(|rank| **rank != me);
            // What could not be sent is missing: its rank says so, and nothing is stored.
            let mut parts: Vec<PartAndPlace<'_>> = others.filter_map(&mut part_of).collect();
            // Lower ranks from the greatest down, each where nobody above it has put; then the ranks above this one.
            let n_below = parts.iter().filter(|part| !part.1).count();
            parts[..n_below].reverse();
            merged.push((&one.chunk, parts));
        }
        let list: Vec<MergedChunk<'_>> =
            merged.iter().map(|(chunk, parts)| MergedChunk { chunk, parts }).collect();
        Ok(shared.filter_merged(&list)?.into_iter().map(Some).collect())
    }

    /// Gives up what this rank kept: the file ends, and it cannot be placed.
    pub(crate) fn forget_kept(&mut self) -> Result<()> {
        for chunk in std::mem::take(&mut self.kept.chunks) {
            self.shared_chunks()?.forget(&chunk);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_come_back() {
        let vars = [VarRef { group: GroupId(2), var: VarId(7) }, VarRef::from(VarId(1))];
        let mut bytes = Vec::new();
        vars.iter().for_each(|var| write_var(*var, &mut bytes));
        assert_eq!(read_vars(&bytes), Some(vars.into_iter().collect()));
        assert_eq!(read_vars(&bytes[1..]), None);
    }

    #[test]
    fn chunks_that_have_no_number_are_found() {
        assert_eq!(n_chunks(&chunk_counts(&[5, 7, 0], &[2, 7, 1])), Some(0));
        assert_eq!(n_chunks(&chunk_counts(&[5, 7], &[2, 7])), Some(3));
        assert_eq!(n_chunks(&chunk_counts(&[1 << 31; 3], &[1; 3])), None);
    }

    #[test]
    fn a_round_of_large_chunks_has_few() {
        let of = |bytes: u64| places_of_round(bytes);
        assert_eq!([of(0), of(1 << 10), of(1 << 20), of(2 << 20)], [4096, 4096, 64, 32]);
        assert_eq!([of(16 << 20), of(64 << 20), of(512 << 20), of(4 << 30)], [32, 8, 1, 1]);
    }

    #[test]
    fn places_are_those_of_chunks() {
        let of = |n| VarRef::from(VarId(n));
        let vars = vec![(of(1), 0, vec![2, 3]), (of(4), 6, vec![5]), (of(6), 11, vec![1, 1, 2])];
        let row = Row { vars, round: 4 };
        let chunks: Vec<SharedChunk> = (0..13).map(|place| row.chunk(place).unwrap()).collect();
        assert!(chunks.is_sorted());
        for (place, chunk) in chunks.iter().enumerate() {
            assert_eq!(row.place(chunk), Some(place as u64), "{chunk:?}");
        }
        assert_eq!(row.place(&SharedChunk { var: of(2), key: vec![0] }), None);
    }

    #[test]
    fn chunks_of_several_ranks_are_stored_by_each_in_turn() {
        let found = ranks_of_places(&[&[0b0111, 0], &[0b0110, 0b1000_0000]], 10);
        let expected =
            [(10, vec![0], 0), (11, vec![0, 1], 1), (12, vec![0, 1], 0), (25, vec![1], 1)];
        assert_eq!(found, expected);
    }
}
