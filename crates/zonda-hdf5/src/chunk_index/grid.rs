//! The grid of chunks and its linear order: every chunk has one number, its key.
//!
//! Trees keep chunks in the order of their coordinates, arrays by a number that follows from the
//! shape. Both are a row-major order within some bounds of the grid, with one dimension moved to
//! the front for extensible arrays. So all indexes here use keys, and a box is a few runs of keys.

use smallvec::SmallVec;

use crate::message::ChunkIndexKind;
pub(super) use crate::selection::DimValues;
use crate::{HdfError, Result};

const NAME: &str = "chunk grid";

/// How chunks lie in the dataset and in which order they are numbered.
#[derive(Debug)]
pub(super) struct ChunkGrid {
    /// Shape of a chunk in elements.
    pub(super) chunk: DimValues,
    /// Extent of the dataset in elements.
    pub(super) dims: DimValues,
    /// Chunks along each dimension, the last perhaps cut by the extent.
    pub(super) counts: DimValues,
    /// Which dimension is slowest, next, ..., fastest.
    order: SmallVec<[usize; 4]>,
    /// Chunks along `order[i]` as far as numbering goes: up to the largest extent for arrays.
    spans: DimValues,
    /// Keys from one chunk to the next along `order[i]`.
    strides: DimValues,
    /// Keys in all.
    pub(super) total: u64,
}

fn bad(what: &'static str, value: u64) -> HdfError {
    HdfError::BadValue { structure: NAME, at: 0, what, value }
}

fn get(numbers: &[u64], i: usize) -> u64 {
    numbers.get(i).copied().unwrap_or(0)
}

/// In which order an index numbers chunks: the dimensions from the slowest to the fastest, and the
/// chunks along each of them. `counts` are the chunks of the extent, `most` those of the largest one.
fn numbering(
    kind: ChunkIndexKind,
    max_dims: &[u64],
    counts: &DimValues,
    most: &DimValues,
) -> Result<(SmallVec<[usize; 4]>, DimValues)> {
    let mut order: SmallVec<[usize; 4]> = (0..counts.len()).collect();
    let spans = match kind {
        ChunkIndexKind::BtreeV1
        | ChunkIndexKind::BtreeV2 { .. }
        | ChunkIndexKind::Single { .. } => counts.clone(),
        ChunkIndexKind::Implicit | ChunkIndexKind::FixedArray { .. } => {
            if max_dims.contains(&u64::MAX) {
                return Err(bad("the largest extent", u64::MAX));
            }
            most.clone()
        }
        ChunkIndexKind::ExtensibleArray { .. } => {
            let mut unlimited = max_dims.iter().enumerate().filter(|(_, dim)| **dim == u64::MAX);
            let (Some((front, _)), None) = (unlimited.next(), unlimited.next()) else {
                let n = max_dims.iter().filter(|&&dim| dim == u64::MAX).count();
                return Err(bad("the number of unlimited dimensions", n as u64));
            };
            order.retain(|dim| *dim != front);
            order.insert(0, front);
            let mut spans: DimValues = order.iter().map(|&dim| get(most, dim)).collect();
            if let Some(first) = spans.first_mut() {
                *first = get(counts, front);
            }
            spans
        }
    };
    Ok((order, spans))
}

impl ChunkGrid {
    /// The grid of a dataset; `max_dims` is empty where the extent cannot grow.
    pub(super) fn new(
        kind: ChunkIndexKind,
        chunk: &[u64],
        dims: &[u64],
        max_dims: &[u64],
    ) -> Result<ChunkGrid> {
        let rank = dims.len();
        if rank == 0 || chunk.len() != rank {
            return Err(bad("the number of dimensions of a chunk", chunk.len() as u64));
        }
        if !max_dims.is_empty() && max_dims.len() != rank {
            return Err(bad("the number of largest extents", max_dims.len() as u64));
        }
        let max_dims = if max_dims.is_empty() { dims } else { max_dims };
        if chunk.contains(&0) {
            return Err(bad("the length of a chunk", 0));
        }
        let chunks = |dims: &[u64]| -> DimValues {
            dims.iter().zip(chunk).map(|(&dim, &chunk)| dim.div_ceil(chunk)).collect()
        };
        let (counts, most) = (chunks(dims), chunks(max_dims));
        let (order, spans) = numbering(kind, max_dims, &counts, &most)?;
        // An extent beyond the largest one would give chunks numbers that belong to others.
        for (place, &dim) in order.iter().enumerate() {
            if get(&spans, place) < get(&counts, dim) {
                return Err(bad("the extent beyond the largest one", get(dims, dim)));
            }
        }
        let mut strides: DimValues = spans.iter().map(|_| 1).collect();
        let mut total = Some(1u64);
        for (stride, &span) in strides.iter_mut().zip(&spans).rev() {
            *stride = total.unwrap_or(0);
            total = total.and_then(|total| total.checked_mul(span));
        }
        let Some(total) = total else { return Err(bad("the number of chunks", u64::MAX)) };
        Ok(ChunkGrid {
            chunk: chunk.into(),
            dims: dims.into(),
            counts,
            order,
            spans,
            strides,
            total,
        })
    }

    /// Number of dimensions.
    pub(super) fn rank(&self) -> usize {
        self.order.len()
    }

    /// The key of a chunk; `None` outside the extent.
    pub(super) fn key(&self, coords: &[u64]) -> Option<u64> {
        if coords.len() != self.rank() {
            return None;
        }
        let mut key = 0u64;
        for (&dim, &stride) in self.order.iter().zip(&self.strides) {
            let coord = get(coords, dim);
            if coord >= get(&self.counts, dim) {
                return None;
            }
            // No overflow: the key is below `total`.
            key = key.wrapping_add(coord.wrapping_mul(stride));
        }
        Some(key)
    }

    /// How many chunks inside the grid come before these coordinates, which may be outside; only for
    /// grids in the order of coordinates. Separators of trees are compared by this.
    pub(super) fn rank_of(&self, coords: &[u64]) -> u64 {
        let mut key = 0u64;
        for ((&coord, &span), &stride) in coords.iter().zip(&self.spans).zip(&self.strides) {
            if coord >= span {
                return key.saturating_add(span.saturating_mul(stride));
            }
            key = key.saturating_add(coord.saturating_mul(stride));
        }
        key
    }

    /// The coordinates that belong to a key below `total`.
    pub(super) fn coords(&self, key: u64, coords: &mut [u64]) {
        let mut remainder = key;
        for (&dim, &stride) in self.order.iter().zip(&self.strides) {
            if let Some(coord) = coords.get_mut(dim) {
                *coord = remainder.checked_div(stride).unwrap_or(0);
            }
            remainder = remainder.checked_rem(stride).unwrap_or(0);
        }
    }

    /// From the coordinates of a key to those of the next one.
    pub(super) fn advance(&self, coords: &mut [u64]) {
        for (&dim, &span) in self.order.iter().zip(&self.spans).rev() {
            let Some(coord) = coords.get_mut(dim) else { return };
            *coord = coord.wrapping_add(1);
            if *coord < span {
                return;
            }
            *coord = 0;
        }
    }

    /// Whether the extent cuts the chunk.
    pub(super) fn is_cut(&self, coords: &[u64]) -> bool {
        coords
            .iter()
            .zip(&self.chunk)
            .zip(&self.dims)
            .any(|((&coord, &chunk), &dim)| coord.saturating_add(1).saturating_mul(chunk) > dim)
    }
}

/// A box of chunks as runs of keys.
#[derive(Debug)]
pub(super) struct Region<'a> {
    grid: &'a ChunkGrid,
    first: DimValues,
    last: DimValues,
    /// The box covers all dimensions after this place wholly, so its runs go along the dimension at
    /// this place.
    along: usize,
}

impl<'a> Region<'a> {
    /// The part of a box (both corners included) that is in the grid; `None` where there is none.
    pub(super) fn new(grid: &'a ChunkGrid, first: &[u64], last: &[u64]) -> Option<Region<'a>> {
        if first.len() != grid.rank() || last.len() != grid.rank() || grid.total == 0 {
            return None;
        }
        let mut from = DimValues::new();
        let mut to = DimValues::new();
        for &dim in &grid.order {
            let end = get(&grid.counts, dim).checked_sub(1)?;
            let (low, high) = (get(first, dim), get(last, dim).min(end));
            if low > high {
                return None;
            }
            from.push(low);
            to.push(high);
        }
        let whole = |i: usize| {
            get(&from, i) == 0 && get(&to, i).checked_add(1) == grid.spans.get(i).copied()
        };
        let mut along = grid.rank().saturating_sub(1);
        while along > 0 && whole(along) {
            along = along.saturating_sub(1);
        }
        Some(Region { grid, first: from, last: to, along })
    }

    /// Chunks in the box.
    pub(super) fn len(&self) -> u64 {
        let sides = self.first.iter().zip(&self.last);
        sides.fold(1, |n, (a, b)| b.saturating_sub(*a).saturating_add(1).saturating_mul(n))
    }

    /// The next keys of the box at or after `key`: from the first up to, not including, the second.
    pub(super) fn next(&self, key: u64) -> Option<(u64, u64)> {
        let places = self.along.saturating_add(1);
        let mut coords = DimValues::new();
        let mut remainder = key;
        for place in 0..places {
            let stride = get(&self.grid.strides, place);
            let coord = remainder.checked_div(stride)?;
            if coord < get(&self.first, place) {
                coords.extend(self.first.iter().copied().take(places).skip(place));
                remainder = 0;
                break;
            }
            if coord > get(&self.last, place) {
                // The slower dimensions go on by one where they can; the faster ones begin again.
                loop {
                    let last = coords.pop()?;
                    let place = coords.len();
                    if last < get(&self.last, place) {
                        coords.push(last.wrapping_add(1));
                        break;
                    }
                }
                let done = coords.len();
                coords.extend(self.first.iter().copied().take(places).skip(done));
                remainder = 0;
                break;
            }
            coords.push(coord);
            remainder = remainder.checked_rem(stride)?;
        }
        let mut low = 0u64;
        for (&coord, &stride) in coords.iter().zip(&self.grid.strides) {
            low = low.wrapping_add(coord.wrapping_mul(stride));
        }
        let stride = get(&self.grid.strides, self.along);
        let steps = get(&self.last, self.along).wrapping_sub(*coords.last()?).wrapping_add(1);
        let high = low.wrapping_add(steps.wrapping_mul(stride));
        Some((low.wrapping_add(remainder), high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxes(kind: ChunkIndexKind, max_dims: &[u64]) {
        let grid = ChunkGrid::new(kind, &[2, 3, 1], &[7, 9, 4], max_dims).unwrap();
        assert_eq!(grid.counts.as_slice(), [4, 3, 4]);
        let mut all = Vec::new();
        for a in 0..4 {
            for b in 0..3 {
                for c in 0..4 {
                    all.push([a, b, c]);
                }
            }
        }
        for first in &all {
            for last in &all {
                let mut want: Vec<u64> = all
                    .iter()
                    .filter(|at| (0..3).all(|d| first[d] <= at[d] && at[d] <= last[d]))
                    .map(|at| grid.key(at).unwrap())
                    .collect();
                want.sort_unstable();
                let mut got = Vec::new();
                if let Some(region) = Region::new(&grid, first, last) {
                    let mut run = region.next(0);
                    while let Some((low, high)) = run {
                        let mut coords = [0; 3];
                        grid.coords(low, &mut coords);
                        for key in low..high {
                            assert_eq!(grid.key(&coords), Some(key));
                            got.push(key);
                            grid.advance(&mut coords);
                        }
                        run = region.next(high);
                    }
                    for key in 0..grid.total + 3 {
                        let next = region.next(key).map(|(low, _)| low);
                        assert_eq!(next, want.iter().copied().find(|&want| want >= key));
                    }
                }
                assert_eq!(got, want, "{first:?} {last:?}");
            }
        }
    }

    #[test]
    fn boxes_become_runs_of_keys() {
        boxes(ChunkIndexKind::BtreeV1, &[]);
        boxes(ChunkIndexKind::FixedArray { page_bits: 10 }, &[9, 9, 5]);
        let array = ChunkIndexKind::ExtensibleArray {
            max_bits: 32,
            index_elems: 4,
            min_pointers: 4,
            min_elems: 16,
            page_bits: 10,
        };
        boxes(array, &[8, u64::MAX, 6]);
        boxes(array, &[7, 9, u64::MAX]);
        assert!(ChunkGrid::new(array, &[1, 1], &[1, 1], &[u64::MAX, u64::MAX]).is_err());
        assert!(ChunkGrid::new(array, &[1, 1], &[5, 1], &[4, u64::MAX]).is_err());
        assert!(ChunkGrid::new(array, &[0, 1], &[5, 1], &[]).is_err());
    }

    #[test]
    fn separators_outside_the_grid_keep_their_order() {
        let grid = ChunkGrid::new(ChunkIndexKind::BtreeV1, &[1, 1], &[2, 3], &[]).unwrap();
        let ranks: Vec<u64> = [[0, 0], [0, 2], [0, 3], [0, 99], [1, 0], [1, 3], [2, 0], [9, 9]]
            .iter()
            .map(|coords| grid.rank_of(coords))
            .collect();
        assert_eq!(ranks, [0, 2, 3, 3, 3, 6, 6, 6]);
    }
}
