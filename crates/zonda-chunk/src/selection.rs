//! What a hyperslab asks of a chunk grid: per dimension, how its elements fall into chunks.

use smallvec::SmallVec;
use zonda_model::Hyperslab;
use zonda_storage::RunRanges;

use crate::ChunkError;
use crate::memory_parts::AxisCuts;

/// One number per dimension, in a file; no memory is taken up to rank 4.
pub(crate) type Coords = SmallVec<[u64; 4]>;

/// One number per dimension, in memory; no memory is taken up to rank 4.
pub(crate) type DimNumbers = SmallVec<[usize; 4]>;

/// One dimension of a selection.
///
/// Its elements fall into *pieces*: one for each chunk touched, and a last one for those at or
/// beyond the extent, which are fill values whatever the file holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SelectedAxis {
    /// First element.
    pub start: u64,
    /// Distance between elements.
    pub stride: u64,
    /// Elements of a chunk.
    pub chunk: u64,
    /// Elements that the array has.
    pub extent: u64,
    /// Chunk of the first element, and that chunk's first coordinate.
    first: u64,
    begin: u64,
    /// Where the pieces begin and end, in selected elements.
    pub cuts: AxisCuts,
}

/// The elements of one dimension in one chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkPiece {
    /// Index of the chunk.
    pub chunk: u64,
    /// First selected element, from the chunk's first.
    pub within: u64,
}

impl SelectedAxis {
    fn new(start: u64, count: usize, stride: u64, chunk: u64, extent: u64) -> SelectedAxis {
        let n_in = match extent.checked_sub(start) {
            None | Some(0) => 0,
            Some(left) => usize::try_from((left - 1) / stride + 1).unwrap_or(usize::MAX).min(count),
        };
        let first = start / chunk;
        let begin = first * chunk;
        let cuts = AxisCuts::new(start - begin, stride, chunk, n_in, count);
        SelectedAxis { start, stride, chunk, extent, first, begin, cuts }
    }

    /// The coordinate of selected element `i`, which is inside the extent.
    pub(crate) fn coord(&self, i: usize) -> u64 {
        self.start.saturating_add((i as u64).saturating_mul(self.stride))
    }

    /// The chunk of piece `k`; `None` for the piece beyond the extent.
    pub(crate) fn piece(&self, k: usize) -> Option<ChunkPiece> {
        if k >= self.cuts.n_chunks() {
            return None;
        }
        let at = self.coord(self.cuts.lower(k));
        if self.stride > self.chunk && k > 0 {
            return Some(ChunkPiece { chunk: at / self.chunk, within: at % self.chunk });
        }
        // Neighbouring chunks: no division.
        let begin = self.begin + k as u64 * self.chunk;
        Some(ChunkPiece { chunk: self.first + k as u64, within: at - begin })
    }

    /// The piece in chunk `index`, if one is.
    pub(crate) fn piece_in(&self, index: u64) -> Option<usize> {
        let k = if self.stride <= self.chunk {
            index.checked_sub(self.first)?
        } else {
            // One element to a chunk: the first at or behind the chunk's begin.
            index.checked_mul(self.chunk)?.saturating_sub(self.start).div_ceil(self.stride)
        };
        let k = usize::try_from(k).ok()?;
        (self.piece(k)?.chunk == index).then_some(k)
    }

    /// Whether the piece `k` takes every element that the array has in that chunk.
    pub(crate) fn is_whole(&self, k: usize) -> bool {
        let Some(piece) = self.piece(k) else { return false };
        let begin = piece.chunk * self.chunk;
        let elems = self.chunk.min(self.extent.saturating_sub(begin));
        (self.stride == 1 || elems == 1) && piece.within == 0 && self.cuts.len(k) as u64 == elems
    }

    /// First and last chunk of the pieces `first..=last`, which are inside the extent.
    pub(crate) fn chunks(&self, first: usize, last: usize) -> (u64, u64) {
        let chunk = |k| self.piece(k).map_or(0, |piece| piece.chunk);
        (chunk(first), chunk(last))
    }
}

/// A hyperslab laid over a chunk grid.
#[derive(Clone, Debug)]
pub(crate) struct GridSelection {
    pub axes: SmallVec<[SelectedAxis; 4]>,
    pub n_elems: usize,
}

impl GridSelection {
    /// `chunk` has no zeros, and is as long as `extent`.
    pub(crate) fn new(
        chunk: &[u64],
        extent: &[u64],
        slab: &Hyperslab<'_>,
    ) -> Result<GridSelection, ChunkError> {
        let rank = chunk.len();
        let strides = slab.stride.map_or(rank, <[isize]>::len);
        if [extent.len(), slab.start.len(), slab.count.len(), strides] != [rank; 4] {
            return Err(ChunkError::Request {
                what: "the selection has another number of dimensions than the array",
            });
        }
        let n_elems = slab.n_elems().ok_or(ChunkError::Request {
            what: "the selection has more elements than memory can hold",
        })?;
        let mut axes = SmallVec::new();
        for d in 0..rank {
            let stride = match slab.stride {
                Some(strides) => u64::try_from(strides[d]).unwrap_or(0),
                None => 1,
            };
            if stride == 0 {
                return Err(ChunkError::Request { what: "the selection has a stride below 1" });
            }
            // One element has no next one, however far.
            let stride = if slab.count[d] <= 1 { 1 } else { stride };
            axes.push(SelectedAxis::new(
                slab.start[d] as u64,
                slab.count[d],
                stride,
                chunk[d],
                extent[d],
            ));
        }
        Ok(GridSelection { axes, n_elems })
    }

    /// Where in its chunk a part begins, and the distances of its elements, in bytes; `None` for a
    /// part beyond the extent. `steps` are the distances of neighbours in the chunk.
    pub(crate) fn place(&self, pieces: &[usize], steps: &[u64]) -> Option<(u64, Coords)> {
        let mut base = 0;
        let mut wide = Coords::from_slice(steps);
        for ((axis, &k), step) in self.axes.iter().zip(pieces).zip(&mut wide) {
            base += axis.piece(k)?.within * *step;
            // With one element there is no next one.
            if axis.stride > 1 && axis.cuts.len(k) > 1 {
                *step *= axis.stride;
            }
        }
        Some((base, wide))
    }

    /// The ranges of a part's elements, of `elem_size` bytes each, from where and with which distances [`GridSelection::place`] says.
    pub(crate) fn ranges(
        &self,
        pieces: &[usize],
        (base, steps): (u64, &[u64]),
        elem_size: usize,
    ) -> RunRanges {
        let counts = self.axes.iter().zip(pieces).map(|(axis, &k)| axis.cuts.len(k) as u64);
        let loops: SmallVec<[(u64, u64); 4]> = counts.zip(steps.iter().copied()).collect();
        RunRanges::new(base, elem_size as u64, loops.into_iter())
    }

    /// The coordinates, in the chunk grid, of the chunk that a part is in; the part is inside the extent.
    pub(crate) fn key(&self, pieces: &[usize]) -> Coords {
        let axes = self.axes.iter().zip(pieces);
        axes.map(|(axis, &k)| axis.piece(k).map_or(0, |piece| piece.chunk)).collect()
    }

    /// Whether a touched chunk reaches beyond the extent.
    pub(crate) fn is_edge(&self, key: &[u64]) -> bool {
        let mut axes = self.axes.iter().zip(key);
        axes.any(|(axis, &index)| axis.extent - index * axis.chunk < axis.chunk)
    }

    /// Whether a part has every element that the array has in the part's chunk.
    pub(crate) fn is_whole(&self, pieces: &[usize]) -> bool {
        self.axes.iter().zip(pieces).all(|(axis, &k)| axis.is_whole(k))
    }

    /// The cuts of all dimensions.
    pub(crate) fn cuts(&self) -> impl Iterator<Item = AxisCuts> + '_ {
        self.axes.iter().map(|axis| axis.cuts)
    }
}

/// Bytes from one element to the next in each dimension of a packed block.
pub(crate) fn steps(dims: &[u64], elem: usize) -> Option<Coords> {
    let mut steps = Coords::from_elem(0, dims.len());
    let mut step = elem as u64;
    for (d, &n) in dims.iter().enumerate().rev() {
        steps[d] = step;
        step = step.checked_mul(n)?;
    }
    Some(steps)
}

/// A request that is one run of elements, all of them inside one chunk and inside the extent: the
/// first, counted in the chunk, and how many. `origin` is the chunk's first coordinate.
#[inline]
pub(crate) fn run_in(
    chunk: &[u64],
    extent: &[u64],
    slab: &Hyperslab<'_>,
    origin: impl Fn(usize) -> u64,
) -> Option<(u64, usize)> {
    let rank = chunk.len();
    let (start, count) = (slab.start, slab.count);
    if extent.len() != rank || start.len() != rank || count.len() != rank {
        return None;
    }
    if slab.stride.is_some_and(|stride| {
        stride.len() != rank || stride.iter().zip(count).any(|(&s, &n)| n > 1 && s != 1)
    }) {
        return None;
    }
    let (mut first, mut step, mut n, mut whole) = (0u64, 1u64, 1usize, true);
    for d in (0..rank).rev() {
        let within = (start[d] as u64).checked_sub(origin(d))?;
        let here = count[d] as u64;
        // Every dimension but the slowest one with more than one element is taken whole.
        if here == 0 || (!whole && here != 1) {
            return None;
        }
        if within.checked_add(here)? > chunk[d] || (start[d] as u64).checked_add(here)? > extent[d]
        {
            return None;
        }
        whole = whole && here == chunk[d];
        first = first.checked_add(within.checked_mul(step)?)?;
        step = step.checked_mul(chunk[d])?;
        n = n.checked_mul(count[d])?;
    }
    Some((first, n))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces of an axis, found one element at a time.
    #[test]
    fn pieces_are_what_counting_gives() {
        for extent in 0..12u64 {
            for chunk in 1..6u64 {
                for start in 0..10u64 {
                    for stride in 1..8u64 {
                        for count in 0..6usize {
                            check(SelectedAxis::new(start, count, stride, chunk, extent), count);
                        }
                    }
                }
            }
        }
    }

    fn check(axis: SelectedAxis, count: usize) {
        let mut expected: Vec<(Option<u64>, usize)> = Vec::new();
        for i in 0..count {
            let at = axis.start + i as u64 * axis.stride;
            let chunk = (at < axis.extent).then_some(at / axis.chunk);
            match expected.last_mut() {
                Some(last) if last.0 == chunk => last.1 += 1,
                _ => expected.push((chunk, 1)),
            }
        }
        let found: Vec<_> = (0..axis.cuts.n_pieces())
            .map(|k| (axis.piece(k).map(|piece| piece.chunk), axis.cuts.len(k)))
            .collect();
        assert_eq!(found, expected, "{axis:?}");
        for k in 0..axis.cuts.n_chunks() {
            let piece = axis.piece(k).expect("inside");
            assert_eq!(axis.piece_in(piece.chunk), Some(k), "{axis:?}");
            let in_chunk = axis.chunk.min(axis.extent - piece.chunk * axis.chunk);
            assert_eq!(axis.is_whole(k), axis.cuts.len(k) as u64 == in_chunk, "{axis:?} {k}");
        }
        let touched: Vec<_> = expected.iter().filter_map(|(chunk, _)| *chunk).collect();
        for chunk in 0..12 {
            assert_eq!(axis.piece_in(chunk).is_some(), touched.contains(&chunk), "{axis:?}");
        }
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let axis = SelectedAxis::new(u64::MAX - 2, 5, u64::MAX / 2, 7, u64::MAX);
        assert_eq!(axis.cuts.n_chunks(), 1);
        assert_eq!(axis.cuts.n_pieces(), 2);
        let axis = SelectedAxis::new(u64::MAX - 9, 5, 2, u64::MAX, u64::MAX);
        assert_eq!((axis.cuts.n_pieces(), axis.cuts.len(0)), (1, 5));
    }
}
