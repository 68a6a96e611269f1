//! Which chunks a put of all ranks touches, and which ranks have parts of each. All ranks make the same plan, from what each puts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use zonda_format::SharedGrid;
use zonda_slab::Hyperslab;

/// What a rank puts, as all ranks know it. One of no elements puts nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RankSlab {
    start: Vec<usize>,
    count: Vec<usize>,
    stride: Vec<isize>,
}

/// A chunk that is put to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TouchedChunk {
    /// Its coordinates in the grid of chunks.
    pub(crate) key: Vec<u64>,
    /// Its number in the grid, row-major.
    pub(crate) number: u64,
    /// The ranks that have parts of it, in ascending order.
    pub(crate) ranks: Vec<usize>,
    /// The first of them that has all of it.
    pub(crate) whole_by: Option<usize>,
}

impl RankSlab {
    /// What a put of a variable of so many dimensions is; nothing where it has other numbers of dimensions.
    pub(crate) fn of(slab: &Hyperslab<'_>, rank: usize) -> RankSlab {
        let Some(slab) = slab.ranked(rank) else { return RankSlab::default() };
        let stride = (0..rank).map(|axis| slab.stride_of(axis)).collect();
        RankSlab { start: slab.start.to_vec(), count: slab.count.to_vec(), stride }
    }

    pub(crate) fn slab(&self) -> Hyperslab<'_> {
        Hyperslab { start: &self.start, count: &self.count, stride: Some(&self.stride) }
    }

    /// Where it begins along an axis; `None` for one of no elements.
    pub(crate) fn first(&self, axis: usize) -> Option<u64> {
        self.start.get(axis).filter(|_| !self.is_empty()).map(|&first| first as u64)
    }

    /// How many elements it has in a chunk.
    pub(crate) fn n_elems_in(&self, grid: &SharedGrid, key: &[u64]) -> u64 {
        let axes = RankWalk::of(self, grid).axes.into_iter().zip(key);
        axes.fold(1, |n: u64, ((cut, _), &chunk)| n.saturating_mul(cut.n_elems(chunk)))
    }

    fn is_empty(&self) -> bool {
        self.count.is_empty() || self.count.contains(&0)
    }

    /// Bytes that [`RankSlab::write_to`] writes for a variable of so many dimensions.
    pub(crate) fn n_bytes(rank: usize) -> usize {
        24 * rank
    }

    pub(crate) fn write_to(&self, rank: usize, out: &mut Vec<u8>) {
        for axis in 0..rank {
            let at = |list: &[usize]| list.get(axis).map_or(0, |&n| n as u64);
            let stride = self.stride.get(axis).map_or(1, |&n| (n as i64).cast_unsigned());
            for number in [at(&self.start), at(&self.count), stride] {
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
    }

    pub(crate) fn read_from(bytes: &[u8]) -> Option<RankSlab> {
        let mut slab = RankSlab::default();
        let (words, _) = bytes.as_chunks::<8>();
        for axis in words.chunks_exact(3) {
            let [start, count, stride] = axis else { return None };
            slab.start.push(usize::try_from(u64::from_le_bytes(*start)).ok()?);
            slab.count.push(usize::try_from(u64::from_le_bytes(*count)).ok()?);
            let stride = u64::from_le_bytes(*stride).cast_signed();
            slab.stride.push(isize::try_from(stride).ok()?);
        }
        Some(slab)
    }
}

/// What a put has of an array along one axis, of which chunks have `dim` elements.
#[derive(Clone, Copy, Debug)]
struct AxisCut {
    start: u64,
    count: u64,
    stride: u64,
    dim: u64,
    /// The length that the array can have.
    limit: u64,
}

impl AxisCut {
    fn of((start, count, stride): (usize, usize, isize), (dim, limit): (u64, u64)) -> AxisCut {
        let stride = if count <= 1 { 1 } else { stride.unsigned_abs().max(1) as u64 };
        AxisCut { start: start as u64, count: count as u64, stride, dim: dim.max(1), limit }
    }

    fn elem(&self, nth: u64) -> u64 {
        self.start.saturating_add(nth.saturating_mul(self.stride))
    }

    /// How many chunks it touches.
    fn n_chunks(&self) -> u64 {
        let Some(last) = self.count.checked_sub(1) else { return 0 };
        // Steps that are no longer than a chunk leave none out; after longer ones each element is in another chunk.
        if self.stride > self.dim {
            self.count
        } else {
            (self.elem(last) / self.dim - self.start / self.dim).saturating_add(1)
        }
    }

    /// One of these chunks, in ascending order.
    fn chunk(&self, nth: u64) -> u64 {
        if self.stride > self.dim {
            self.elem(nth) / self.dim
        } else {
            (self.start / self.dim).saturating_add(nth)
        }
    }

    /// How many elements it has in a chunk.
    fn n_elems(&self, chunk: u64) -> u64 {
        let begin = chunk.saturating_mul(self.dim);
        let end = begin.saturating_add(self.dim);
        let before = |at: u64| at.saturating_sub(self.start).div_ceil(self.stride).min(self.count);
        before(end).saturating_sub(before(begin))
    }

    /// Whether it has all elements that the array can have in a chunk.
    fn is_whole(&self, chunk: u64) -> bool {
        let begin = chunk.saturating_mul(self.dim);
        self.n_elems(chunk) == self.dim.min(self.limit.saturating_sub(begin))
    }
}

/// The chunks that the ranks' puts touch, in the order of their numbers. They are found one after the other, so that it takes as little memory
/// for a million of them as for one: some bytes for each rank and dimension.
#[derive(Debug)]
pub(crate) struct Plan {
    /// How many chunks the array has along each axis.
    counts: Vec<u64>,
    walks: Vec<RankWalk>,
    /// The number of the chunk to which each rank has come; the rank with the least one is next, of several the first.
    next: BinaryHeap<Reverse<(u64, usize)>>,
}

/// How far one rank's chunks have been walked through.
#[derive(Clone, Debug)]
struct RankWalk {
    /// For each axis: what the rank puts, and the place among the chunks that it touches.
    axes: Box<[(AxisCut, u64)]>,
}

impl RankWalk {
    /// The walk of a rank that puts something.
    fn of(slab: &RankSlab, grid: &SharedGrid) -> RankWalk {
        let of_slab = slab.start.iter().zip(&slab.count).zip(&slab.stride);
        let of_grid = grid.chunk_dims.iter().zip(&grid.limits);
        let axes = of_slab.zip(of_grid).map(|(((&start, &count), &stride), (&dim, &limit))| {
            (AxisCut::of((start, count, stride), (dim, limit)), 0)
        });
        RankWalk { axes: axes.collect() }
    }

    fn n_chunks(&self) -> u64 {
        self.axes.iter().fold(1, |n: u64, (cut, _)| n.saturating_mul(cut.n_chunks()))
    }

    /// The number of the chunk to which it has come, row-major.
    fn number(&self, counts: &[u64]) -> u64 {
        // There are far fewer chunks than 64 bits count: the format refuses an extent of more than ranks can keep the places of.
        let axes = self.axes.iter().zip(counts);
        axes.fold(0, |number: u64, ((cut, at), &count)| {
            number.saturating_mul(count).saturating_add(cut.chunk(*at))
        })
    }

    /// Whether the rank has all of the chunk to which it has come.
    fn is_whole(&self) -> bool {
        self.axes.iter().all(|(cut, at)| cut.is_whole(cut.chunk(*at)))
    }

    /// Goes on to the next chunk; `false` after the last one.
    fn advance(&mut self) -> bool {
        for (cut, at) in self.axes.iter_mut().rev() {
            *at += 1;
            if *at < cut.n_chunks() {
                return true;
            }
            *at = 0;
        }
        false
    }
}

impl Plan {
    /// The chunks that the ranks' puts touch, where the variable has this extent.
    pub(crate) fn new(grid: &SharedGrid, extent: &[u64], slabs: &[RankSlab]) -> Plan {
        let dims = extent.iter().zip(&grid.chunk_dims);
        let counts: Vec<u64> = dims.map(|(&len, &dim)| len.div_ceil(dim.max(1))).collect();
        let walks: Vec<RankWalk> = slabs.iter().map(|slab| RankWalk::of(slab, grid)).collect();
        let puts = |(rank, slab): (usize, &RankSlab)| {
            let walk = walks.get(rank).filter(|_| !slab.is_empty())?;
            Some(Reverse((walk.number(&counts), rank)))
        };
        let next = slabs.iter().enumerate().filter_map(puts).collect();
        Plan { counts, walks, next }
    }

    /// How many parts of chunks ranks put that are still to come, before the first of them was taken.
    pub(crate) fn n_parts(&self) -> u64 {
        let each = self.next.iter().filter_map(|Reverse((_, rank))| self.walks.get(*rank));
        each.fold(0, |sum: u64, walk| sum.saturating_add(walk.n_chunks()))
    }

    pub(crate) fn is_over(&self) -> bool {
        self.next.is_empty()
    }
}

impl Iterator for Plan {
    type Item = TouchedChunk;

    fn next(&mut self) -> Option<TouchedChunk> {
        let Reverse((number, _)) = *self.next.peek()?;
        let mut key = vec![0; self.counts.len()];
        zonda_slab::unrank(number, &self.counts, &mut key);
        let mut found = TouchedChunk { key, number, ranks: Vec::new(), whole_by: None };
        while let Some(mut least) = self.next.peek_mut()
            && least.0.0 == number
        {
            let rank = least.0.1;
            found.ranks.push(rank);
            let walk = self.walks.get_mut(rank)?;
            if walk.is_whole() {
                found.whole_by.get_or_insert(rank);
            }
            if walk.advance() {
                least.0.0 = walk.number(&self.counts);
            } else {
                PeekMut::pop(least);
            }
        }
        Some(found)
    }
}

impl TouchedChunk {
    /// Who owns it, where nobody does yet: the rank that has all of it, or one of those that have parts, another one for each number.
    pub(crate) fn new_owner(&self, of_var: u64) -> usize {
        let turn = self.number.wrapping_add(of_var);
        let nth = turn.checked_rem(self.ranks.len() as u64).unwrap_or(0);
        let in_turn = self.ranks.get(usize::try_from(nth).unwrap_or(0)).copied().unwrap_or(0);
        self.whole_by.unwrap_or(in_turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slab(start: &[usize], count: &[usize], stride: &[isize]) -> RankSlab {
        RankSlab::of(&Hyperslab { start, count, stride: Some(stride) }, start.len())
    }

    #[test]
    fn slabs_come_back() {
        let one = slab(&[3, 0], &[2, 5], &[1, 7]);
        let mut bytes = Vec::new();
        one.write_to(2, &mut bytes);
        assert_eq!(bytes.len(), RankSlab::n_bytes(2));
        assert_eq!(RankSlab::read_from(&bytes), Some(one));
    }

    /// Element by element.
    fn counted(grid: &SharedGrid, extent: &[u64], slabs: &[RankSlab]) -> Vec<TouchedChunk> {
        let mut all = std::collections::BTreeMap::<u64, Vec<(usize, u64)>>::new();
        let counts: Vec<u64> =
            extent.iter().zip(&grid.chunk_dims).map(|(len, dim)| len.div_ceil(*dim)).collect();
        for (rank, slab) in slabs.iter().enumerate() {
            for i in 0..slab.count[0] {
                for j in 0..slab.count[1] {
                    let key = [(i, 0), (j, 1)].map(|(n, axis): (usize, usize)| {
                        (slab.start[axis] + n * slab.stride[axis] as usize) as u64
                            / grid.chunk_dims[axis]
                    });
                    let parts = all.entry(key[0] * counts[1] + key[1]).or_default();
                    match parts.last_mut() {
                        Some(last) if last.0 == rank => last.1 += 1,
                        _ => parts.push((rank, 1)),
                    }
                }
            }
        }
        let chunk = |(number, parts): (u64, Vec<(usize, u64)>)| {
            let key = vec![number / counts[1], number % counts[1]];
            let possible: u64 = (0..2)
                .map(|axis| {
                    let begin = key[axis] * grid.chunk_dims[axis];
                    grid.chunk_dims[axis].min(grid.limits[axis] - begin)
                })
                .product();
            let whole_by = parts.iter().find(|part| part.1 == possible).map(|part| part.0);
            TouchedChunk { key, number, ranks: parts.iter().map(|part| part.0).collect(), whole_by }
        };
        all.into_iter().map(chunk).collect()
    }

    /// Four thousand million parts of chunks: nobody has a list of them.
    #[test]
    fn chunks_are_found_one_after_the_other() {
        let side = 2048;
        let (chunk_dims, limits) = (vec![1, 1], vec![side, side]);
        let grid = SharedGrid { chunk_dims, limits, elem_size: 4, ..SharedGrid::default() };
        let all = slab(&[0, 0], &[side as usize; 2], &[1, 1]);
        let mut plan = Plan::new(&grid, &[side, side], &vec![all; 1024]);
        assert_eq!(plan.n_parts(), 1024 * side * side);
        for number in 0..side + 10 {
            let one = plan.next().unwrap();
            assert_eq!((one.number, one.ranks.len(), one.whole_by), (number, 1024, Some(0)));
        }
    }

    #[test]
    fn plans_are_what_counting_gives() {
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..3000 {
            let chunk_dims = vec![rng.u64(1..5), rng.u64(1..5)];
            let extent = [rng.u64(1..12), rng.u64(1..12)];
            let limits = vec![if rng.bool() { u64::MAX } else { extent[0] }, extent[1]];
            let grid = SharedGrid { chunk_dims, limits, elem_size: 4, ..SharedGrid::default() };
            let slabs: Vec<RankSlab> = (0..rng.usize(1..5))
                .map(|_| {
                    let mut one = RankSlab::default();
                    for len in extent.map(|len| len as usize) {
                        let (start, stride) = (rng.usize(0..len), rng.usize(1..6));
                        one.start.push(start);
                        one.stride.push(stride as isize);
                        one.count.push(rng.usize(0..=(len - start).div_ceil(stride)));
                    }
                    one
                })
                .collect();
            let plan = Plan::new(&grid, &extent, &slabs);
            let n_parts = plan.n_parts();
            let found: Vec<TouchedChunk> = plan.collect();
            assert_eq!(found, counted(&grid, &extent, &slabs), "{slabs:?}");
            let parts: u64 = found.iter().map(|one| one.ranks.len() as u64).sum();
            assert_eq!(n_parts, parts, "{slabs:?}");
            // How many elements a rank has in a chunk is what ranks expect of each other.
            for (rank, slab) in slabs.iter().enumerate() {
                let of = |one: &&TouchedChunk| one.ranks.contains(&rank);
                let n = found.iter().filter(of).map(|one| slab.n_elems_in(&grid, &one.key));
                assert_eq!(n.sum::<u64>(), slab.count.iter().product::<usize>() as u64);
            }
        }
    }
}
