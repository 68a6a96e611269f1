//! Dataspace selections: which elements of a dataset are meant, by region references and by the
//! mappings of virtual datasets.
//! Spec: HDF5 File Format, "Appendix A: Dataspace Selection" (versions 1 to 3).
//! Selections have an order. Points come as they are listed, everything else in row-major order of
//! the elements, whatever the order of blocks in the file.

use smallvec::SmallVec;

use crate::{HdfError, Reader, Result};

/// One number per dimension.
pub type Numbers = SmallVec<[u64; 4]>;

/// One dimension of a regular hyperslab: `count` blocks of `block` elements each, the first at
/// `start`, one after `stride` elements from the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HyperslabDim {
    /// First element.
    pub start: u64,
    /// Elements from the beginning of one block to that of the next.
    pub stride: u64,
    /// Number of blocks, [`UNLIMITED`] for as many as there are.
    pub count: u64,
    /// Elements of a block, [`UNLIMITED`] for all to the end.
    pub block: u64,
}

/// The count or block of a hyperslab without end.
pub const UNLIMITED: u64 = u64::MAX;

/// Blocks of an irregular hyperslab. They do not overlap in sound files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    rank: usize,
    /// For each block its first element, then its last one.
    corners: Box<[u64]>,
}

/// Selected elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// None.
    None,
    /// All that there are.
    All,
    /// Single elements, in this order.
    Points {
        /// Number of dimensions.
        rank: usize,
        /// Coordinates, point after point.
        coords: Box<[u64]>,
    },
    /// A regular hyperslab.
    Hyperslab(SmallVec<[HyperslabDim; 3]>),
    /// An irregular one.
    Blocks(Blocks),
}

/// The newest version of any kind of selection.
const NEWEST: u32 = 3;

const NONE: u32 = 0;
const POINTS: u32 = 1;
const HYPERSLAB: u32 = 2;
const ALL: u32 = 3;

/// A rank that the format allows for, and that takes bytes.
fn rank(reader: &mut Reader<'_>) -> Result<usize> {
    let rank = reader.u32()?;
    match usize::try_from(rank) {
        Ok(rank @ 1..=32) => Ok(rank),
        _ => Err(reader.bad("the number of dimensions", u64::from(rank))),
    }
}

fn width(reader: &mut Reader<'_>) -> Result<usize> {
    let width = reader.u8()?;
    if matches!(width, 2 | 4 | 8) {
        Ok(usize::from(width))
    } else {
        Err(reader.bad("the bytes of a number", u64::from(width)))
    }
}

/// `n` lists of `each` numbers.
fn numbers(reader: &mut Reader<'_>, n: u64, each: usize, width: usize) -> Result<Box<[u64]>> {
    let n = reader.count(n, each.saturating_mul(width))?;
    let all = n.saturating_mul(each);
    let mut out = Vec::with_capacity(all);
    for _ in 0..all {
        out.push(reader.uint(width)?);
    }
    Ok(out.into())
}

impl HyperslabDim {
    /// From `start` on, `n` elements.
    #[must_use]
    pub fn run(start: u64, n: u64) -> HyperslabDim {
        HyperslabDim { start, stride: 1, count: 1, block: n }
    }

    /// Whether it has no end.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        self.count == UNLIMITED || self.block == UNLIMITED
    }

    /// Elements, [`UNLIMITED`] where there is no end.
    #[must_use]
    pub fn len(&self) -> u64 {
        if self.is_unlimited() { UNLIMITED } else { self.count.saturating_mul(self.block) }
    }

    /// Whether it has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The step between all its elements, if there is one.
    pub(crate) fn step(&self) -> Option<u64> {
        if self.block == 1 {
            Some(self.stride)
        } else if self.count == 1 || self.stride == self.block {
            Some(1)
        } else {
            None
        }
    }

    /// Where element `i` is.
    #[must_use]
    pub fn at(&self, i: u64) -> u64 {
        let block = self.block.max(1);
        let blocks = i.checked_div(block).unwrap_or(0).saturating_mul(self.stride);
        self.start.saturating_add(blocks).saturating_add(i.checked_rem(block).unwrap_or(0))
    }

    /// How many elements come before `at`.
    #[must_use]
    pub fn before(&self, at: u64) -> u64 {
        let Some(past) = at.checked_sub(self.start) else { return 0 };
        // The stride of a single block says nothing.
        let stride = if self.count <= 1 { self.block } else { self.stride }.max(1);
        let blocks = past.checked_div(stride).unwrap_or(0);
        if blocks >= self.count {
            return self.len();
        }
        let inside = past.checked_rem(stride).unwrap_or(0).min(self.block);
        blocks.saturating_mul(self.block).saturating_add(inside)
    }

    /// How many elements follow element `i` side by side, itself included.
    pub(crate) fn contiguous(&self, i: u64) -> u64 {
        if self.step() == Some(1) {
            return self.len().saturating_sub(i);
        }
        let block = self.block.max(1);
        block.saturating_sub(i.checked_rem(block).unwrap_or(0))
    }
}

impl Blocks {
    /// Blocks of `rank` dimensions from their corners, first and last element of each in turn;
    /// `None` where one ends before it begins, or numbers are missing.
    #[must_use]
    pub fn new(rank: usize, corners: Vec<u64>) -> Option<Blocks> {
        let each = rank.checked_mul(2).filter(|&each| each > 0)?;
        let blocks = Blocks { rank, corners: corners.into() };
        let is_whole = blocks.corners.len().is_multiple_of(each);
        let is_sound =
            |(first, last): (&[u64], &[u64])| first.iter().zip(last).all(|(a, b)| a <= b);
        (is_whole && blocks.iter().all(is_sound)).then_some(blocks)
    }

    /// Number of dimensions.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// First and last element of each block.
    pub fn iter(&self) -> impl Iterator<Item = (&[u64], &[u64])> {
        self.corners
            .chunks_exact(self.rank.saturating_mul(2))
            .map(|corners| corners.split_at(self.rank))
    }

    /// Elements before `at` in row-major order.
    pub(crate) fn before(&self, at: &[u64]) -> u64 {
        let mut n = 0u64;
        for (first, last) in self.iter() {
            // In each dimension: those that are below there, with all before it being equal.
            let mut sizes: Numbers = first.iter().zip(last).map(|(a, b)| side(*a, *b)).collect();
            sizes.push(1);
            let mut rest: u64 = sizes.iter().fold(1, |n, &size| n.saturating_mul(size));
            for ((&at, &size), (&a, &b)) in at.iter().zip(&sizes).zip(first.iter().zip(last)) {
                rest = rest.checked_div(size).unwrap_or(0);
                n = n.saturating_add(at.saturating_sub(a).min(size).saturating_mul(rest));
                if at < a || at > b {
                    break;
                }
            }
        }
        n
    }

    /// Where the element is that `ordinal` others come before, and how many follow it in its row of
    /// its block, itself included.
    pub(crate) fn at(&self, ordinal: u64) -> Option<(Numbers, u64)> {
        let mut at = Numbers::from_elem(0, self.rank);
        for dim in 0..self.rank {
            // The largest coordinate that no more than `ordinal` elements come before.
            let corners = || self.iter().flat_map(move |(a, b)| [a.get(dim), b.get(dim)]);
            let mut low = corners().flatten().min().copied()?;
            let mut high = corners().flatten().max().copied()?;
            while low < high {
                let middle = high.saturating_sub(high.saturating_sub(low) / 2);
                if let Some(place) = at.get_mut(dim) {
                    *place = middle;
                }
                if self.before(&at) <= ordinal {
                    low = middle;
                } else {
                    high = middle.saturating_sub(1);
                }
            }
            if let Some(place) = at.get_mut(dim) {
                *place = low;
            }
        }
        let inside = |(first, last): &(&[u64], &[u64])| {
            at.iter().zip(first.iter().zip(last.iter())).all(|(at, (a, b))| a <= at && at <= b)
        };
        let (_, last) = self.iter().find(inside)?;
        let run = side(*at.last()?, *last.last()?);
        (self.before(&at) == ordinal).then_some((at, run))
    }
}

/// Elements from `a` to `b`, both included.
fn side(a: u64, b: u64) -> u64 {
    b.saturating_sub(a).saturating_add(1)
}

impl Selection {
    /// Takes a selection out of what a reader has left.
    ///
    /// # Errors
    /// Types and versions that are not known; more points or blocks than there are bytes; blocks
    /// that end before they begin.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Selection> {
        let kind = reader.u32()?;
        let version = reader.u32()?;
        let (structure, at) = (reader.structure(), reader.at());
        let unknown = HdfError::BadVersion { structure, at, version, newest: NEWEST };
        match (kind, version) {
            (NONE, 1) => reader.skip(8).map(|()| Selection::None),
            (ALL, 1) => reader.skip(8).map(|()| Selection::All),
            (POINTS, 1) => {
                reader.skip(8)?;
                let rank = rank(reader)?;
                let n = u64::from(reader.u32()?);
                Ok(Selection::Points { rank, coords: numbers(reader, n, rank, 4)? })
            }
            (POINTS, 2) => {
                let width = width(reader)?;
                let rank = rank(reader)?;
                let n = reader.uint(width)?;
                Ok(Selection::Points { rank, coords: numbers(reader, n, rank, width)? })
            }
            (HYPERSLAB, 1) => {
                reader.skip(8)?;
                let rank = rank(reader)?;
                blocks(reader, rank, 4)
            }
            (HYPERSLAB, 2) => {
                let flags = reader.u8()?;
                reader.skip(4)?;
                if flags & 1 == 0 {
                    return Err(reader.bad("the flags of a hyperslab", u64::from(flags)));
                }
                let rank = rank(reader)?;
                regular(reader, rank, 8)
            }
            (HYPERSLAB, 3) => {
                let flags = reader.u8()?;
                let width = width(reader)?;
                let rank = rank(reader)?;
                if flags & 1 == 0 {
                    blocks(reader, rank, width)
                } else {
                    regular(reader, rank, width)
                }
            }
            (NONE..=ALL, _) => Err(unknown),
            _ => Err(reader.bad("the type of a selection", u64::from(kind))),
        }
    }

    /// Number of dimensions; `None` where the selection does not say.
    #[must_use]
    pub fn rank(&self) -> Option<usize> {
        match self {
            Selection::None | Selection::All => None,
            Selection::Points { rank, .. } => Some(*rank),
            Selection::Hyperslab(dims) => Some(dims.len()),
            Selection::Blocks(blocks) => Some(blocks.rank),
        }
    }

    /// The dimension without end, if there is one.
    #[must_use]
    pub fn unlimited_dim(&self) -> Option<usize> {
        match self {
            Selection::Hyperslab(dims) => dims.iter().position(HyperslabDim::is_unlimited),
            _ => None,
        }
    }

    /// The coordinate after the last selected one in a dimension; `None` where there is none, or no
    /// end.
    #[must_use]
    pub fn end(&self, dim: usize) -> Option<u64> {
        let last = match self {
            Selection::None | Selection::All => None,
            Selection::Points { rank, coords } => {
                coords.chunks_exact(*rank).filter_map(|at| at.get(dim)).max().copied()
            }
            Selection::Hyperslab(dims) => {
                let dim = dims.get(dim).filter(|dim| !dim.is_unlimited())?;
                dim.len().checked_sub(1).map(|last| dim.at(last))
            }
            Selection::Blocks(blocks) => {
                blocks.iter().filter_map(|(_, last)| last.get(dim)).max().copied()
            }
        };
        last.map(|last| last.saturating_add(1))
    }

    /// Selected elements of a dataset with the extent `dims`.
    #[must_use]
    pub fn n_elems(&self, dims: &[u64]) -> u64 {
        match self {
            Selection::None => 0,
            Selection::All => product(dims.iter().copied()),
            Selection::Points { rank, coords } => {
                coords.len().checked_div(*rank).unwrap_or(0) as u64
            }
            Selection::Hyperslab(slab) => product(slab.iter().zip(dims).map(|(slab, &dim)| {
                if slab.is_unlimited() { slab.before(dim) } else { slab.len() }
            })),
            Selection::Blocks(blocks) => blocks
                .iter()
                .map(|(first, last)| product(first.iter().zip(last).map(|(a, b)| side(*a, *b))))
                .fold(0, u64::saturating_add),
        }
    }

    /// Tells `found` of the selected elements inside the extent `dims` in order: where each run
    /// along the last dimension begins, and its elements. Ends where `found` says `false`.
    ///
    /// # Errors
    /// [`HdfError::BadValue`] where the selection has another number of dimensions.
    pub fn for_each_run(
        &self,
        dims: &[u64],
        found: &mut dyn FnMut(&[u64], u64) -> bool,
    ) -> Result<()> {
        if self.rank().is_some_and(|rank| rank != dims.len()) {
            let value = self.rank().unwrap_or(0) as u64;
            let what = "the number of dimensions";
            return Err(HdfError::BadValue { structure: "selection", at: 0, what, value });
        }
        let inside = |at: &[u64]| at.iter().zip(dims).all(|(at, dim)| at < dim);
        match self {
            Selection::None => {}
            Selection::All => {
                let all: SmallVec<[HyperslabDim; 3]> =
                    dims.iter().map(|&dim| HyperslabDim::run(0, dim)).collect();
                slab_runs(&all, dims, found);
            }
            Selection::Points { rank, coords } => {
                for at in coords.chunks_exact(*rank) {
                    if inside(at) && !found(at, 1) {
                        break;
                    }
                }
            }
            Selection::Hyperslab(slab) => slab_runs(slab, dims, found),
            Selection::Blocks(blocks) => {
                let all: Vec<_> = blocks.iter().collect();
                block_runs(&all, dims, &mut Numbers::new(), found);
            }
        }
        Ok(())
    }
}

fn product(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(1, u64::saturating_mul)
}

fn regular(reader: &mut Reader<'_>, rank: usize, width: usize) -> Result<Selection> {
    let bits = u32::try_from(width).unwrap_or(8).saturating_mul(8);
    let all_ones = u64::MAX.checked_shr(64u32.saturating_sub(bits)).unwrap_or(0);
    let endless = |value| if value == all_ones { UNLIMITED } else { value };
    let mut dims = SmallVec::new();
    let mut unlimited = 0u64;
    for _ in 0..rank {
        let start = reader.uint(width)?;
        let stride = reader.uint(width)?;
        let count = endless(reader.uint(width)?);
        let block = endless(reader.uint(width)?);
        let dim = HyperslabDim { start, stride, count, block };
        unlimited = unlimited.saturating_add(u64::from(dim.is_unlimited()));
        // Blocks must not overlap.
        if count > 1 && (stride == 0 || stride < block) {
            return Err(reader.bad("the stride of a hyperslab", stride));
        }
        dims.push(dim);
    }
    if unlimited > 1 {
        return Err(reader.bad("the number of unlimited dimensions", unlimited));
    }
    Ok(Selection::Hyperslab(dims))
}

fn blocks(reader: &mut Reader<'_>, rank: usize, width: usize) -> Result<Selection> {
    let n = reader.uint(width)?;
    let corners = numbers(reader, n, rank.saturating_mul(2), width)?;
    let blocks = Blocks { rank, corners };
    for (first, last) in blocks.iter() {
        if let Some((first, _)) = first.iter().zip(last).find(|(first, last)| first > last) {
            return Err(reader.bad("the beginning of a block, after its end:", *first));
        }
    }
    Ok(Selection::Blocks(blocks))
}

/// The runs of a regular hyperslab, in order.
fn slab_runs(slab: &[HyperslabDim], dims: &[u64], found: &mut dyn FnMut(&[u64], u64) -> bool) {
    let lens: Numbers = slab.iter().zip(dims).map(|(slab, &dim)| slab.before(dim)).collect();
    let Some((inner, &len)) = slab.last().zip(lens.last()) else { return };
    if lens.contains(&0) {
        return;
    }
    let mut i = Numbers::from_elem(0, slab.len());
    let mut at: Numbers = slab.iter().map(|slab| slab.at(0)).collect();
    loop {
        let mut from = 0u64;
        while from < len {
            let run = inner.contiguous(from).min(len.saturating_sub(from)).max(1);
            if let Some(place) = at.last_mut() {
                *place = inner.at(from);
            }
            if !found(&at, run) {
                return;
            }
            from = from.saturating_add(run);
        }
        // The next row.
        let mut dim = slab.len().saturating_sub(1);
        loop {
            let Some(outer) = dim.checked_sub(1) else { return };
            dim = outer;
            let (Some(i), Some(at), Some(slab), Some(&len)) =
                (i.get_mut(dim), at.get_mut(dim), slab.get(dim), lens.get(dim))
            else {
                return;
            };
            *i = i.saturating_add(1);
            let more = *i < len;
            if !more {
                *i = 0;
            }
            *at = slab.at(*i);
            if more {
                break;
            }
        }
    }
}

/// The runs of blocks in row-major order, those of the rows that begin with `at`. `false` to end.
fn block_runs(
    blocks: &[(&[u64], &[u64])],
    dims: &[u64],
    at: &mut Numbers,
    found: &mut dyn FnMut(&[u64], u64) -> bool,
) -> bool {
    let dim = at.len();
    let Some(&extent) = dims.get(dim) else { return true };
    let is_last = dim.saturating_add(1) == dims.len();
    let end = |block: &(&[u64], &[u64])| {
        block.1.get(dim).map_or(0, |last| last.saturating_add(1)).min(extent)
    };
    let begin = |block: &(&[u64], &[u64])| block.0.get(dim).copied().unwrap_or(0);
    let mut key = 0u64;
    loop {
        // Blocks that have `key`, and how far it is the same ones.
        let here: Vec<_> =
            blocks.iter().filter(|b| begin(b) <= key && key < end(b)).copied().collect();
        let stop = here.iter().map(end).min();
        let next = blocks.iter().map(begin).filter(|&begin| begin > key && begin < extent).min();
        let Some(stop) = stop else {
            match next {
                Some(next) => key = next,
                None => return true,
            }
            continue;
        };
        let stop = next.map_or(stop, |next| next.min(stop));
        if is_last {
            at.push(key);
            let go_on = found(at, stop.saturating_sub(key));
            at.pop();
            if !go_on {
                return false;
            }
        } else {
            for row in key..stop {
                at.push(row);
                let go_on = block_runs(&here, dims, at, found);
                at.pop();
                if !go_on {
                    return false;
                }
            }
        }
        key = stop;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sizes;

    fn decode(bytes: &[u8]) -> Result<Selection> {
        Selection::decode(&mut Reader::new("selection", bytes, 0, Sizes::EIGHT))
    }

    fn runs(selection: &Selection, dims: &[u64]) -> Vec<(Vec<u64>, u64)> {
        let mut out = Vec::new();
        let told = selection.for_each_run(dims, &mut |at, n| {
            out.push((at.to_vec(), n));
            true
        });
        told.unwrap();
        out
    }

    fn u32s(numbers: &[u32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    #[test]
    fn every_type_and_version() {
        assert_eq!(decode(&u32s(&[0, 1, 0, 0])).unwrap(), Selection::None);
        assert_eq!(decode(&u32s(&[3, 1, 0, 0])).unwrap(), Selection::All);
        let points = Selection::Points { rank: 2, coords: [4, 5, 1, 2].into() };
        assert_eq!(decode(&u32s(&[1, 1, 0, 24, 2, 2, 4, 5, 1, 2])).unwrap(), points);
        let mut bytes = u32s(&[1, 2]);
        bytes.push(2);
        bytes.extend(u32s(&[2]));
        for number in [2u16, 4, 5, 1, 2] {
            bytes.extend(number.to_le_bytes());
        }
        assert_eq!(decode(&bytes).unwrap(), points);
        let corners = [0, 0, 1, 1, 3, 0, 4, 1];
        let blocks = Selection::Blocks(Blocks { rank: 2, corners: corners.map(u64::from).into() });
        let mut bytes = u32s(&[2, 1, 0, 36, 2, 2]);
        bytes.extend(u32s(&corners));
        assert_eq!(decode(&bytes).unwrap(), blocks);
        let mut bytes = u32s(&[2, 3]);
        bytes.extend([0, 4]);
        bytes.extend(u32s(&[2, 2]));
        bytes.extend(u32s(&corners));
        assert_eq!(decode(&bytes).unwrap(), blocks);
        let dim = HyperslabDim { start: 1, stride: 4, count: UNLIMITED, block: 2 };
        let slab = Selection::Hyperslab([dim].into_iter().collect());
        let mut bytes = u32s(&[2, 2]);
        bytes.push(1);
        bytes.extend(u32s(&[36, 1]));
        [1, 4, UNLIMITED, 2].iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        assert_eq!(decode(&bytes).unwrap(), slab);
        let mut bytes = u32s(&[2, 3]);
        bytes.extend([1, 2]);
        bytes.extend(u32s(&[1]));
        [1u16, 4, u16::MAX, 2].iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        assert_eq!(decode(&bytes).unwrap(), slab);
        assert_eq!(slab.n_elems(&[12]), 6);
        assert_eq!(slab.unlimited_dim(), Some(0));
        for end in 0..bytes.len() {
            assert!(decode(&bytes[..end]).is_err());
        }
        for bad in [&[4, 1, 0, 0][..], &[0, 2, 0, 0], &[1, 1, 0, 24, 33, 0], &[1, 1, 0, 24, 2, 9]] {
            assert!(decode(&u32s(bad)).is_err());
        }
        // A block that ends before it begins; blocks over each other.
        assert!(decode(&u32s(&[2, 1, 0, 0, 1, 1, 5, 4])).is_err());
        let mut bytes = u32s(&[2, 3]);
        bytes.extend([1, 4]);
        bytes.extend(u32s(&[1, 0, 2, 2, 3]));
        assert!(decode(&bytes).is_err());
    }

    #[test]
    fn runs_of_a_hyperslab() {
        let slab = |dims: &[(u64, u64, u64, u64)]| {
            let dim = |&(start, stride, count, block)| HyperslabDim { start, stride, count, block };
            Selection::Hyperslab(dims.iter().map(dim).collect())
        };
        let two = slab(&[(1, 3, 2, 2), (0, 4, 2, 2)]);
        let want: Vec<_> =
            [1, 2, 4, 5].iter().flat_map(|&row| [(vec![row, 0], 2), (vec![row, 4], 2)]).collect();
        assert_eq!(runs(&two, &[9, 9]), want);
        assert_eq!(runs(&two, &[3, 5]).last(), Some(&(vec![2, 4], 1)));
        assert_eq!(runs(&slab(&[(2, 3, 1, 4)]), &[9]), [(vec![2], 4)]);
        assert_eq!(runs(&slab(&[(0, 2, 3, 2)]), &[9]), [(vec![0], 6)]);
        assert_eq!(runs(&slab(&[(0, 2, 0, 2)]), &[9]), []);
        assert!(two.for_each_run(&[9], &mut |_, _| true).is_err());
        assert_eq!(runs(&Selection::All, &[2, 3]), [(vec![0, 0], 3), (vec![1, 0], 3)]);
    }

    #[test]
    fn blocks_are_in_row_major_order_whatever_theirs() {
        // Two side by side with one below, given the wrong way round.
        let corners = [[2, 0, 2, 3], [0, 3, 1, 4], [0, 0, 1, 1]];
        let blocks = Blocks { rank: 2, corners: corners.concat().into() };
        let selection = Selection::Blocks(blocks.clone());
        let got = runs(&selection, &[3, 4]);
        let row = |row, at, n| (vec![row, at], n);
        assert_eq!(got, [row(0, 0, 2), row(0, 3, 1), row(1, 0, 2), row(1, 3, 1), row(2, 0, 4)]);
        assert_eq!(selection.n_elems(&[]), 12);
        let mut ordinal = 0;
        for (at, n) in runs(&selection, &[9, 9]) {
            for i in 0..n {
                let here = [at[0], at[1] + i];
                assert_eq!(blocks.before(&here), ordinal);
                assert_eq!(blocks.at(ordinal), Some((here.as_slice().into(), n - i)));
                ordinal += 1;
            }
        }
        assert_eq!(blocks.at(ordinal), None);
    }
}
