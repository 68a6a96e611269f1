//! The chunks that a selection touches, a bounded number at a time, and where they are.

use smallvec::SmallVec;

use crate::selection::{Coords, GridSelection};
use crate::table::{ChunkAt, ChunkTable};
use crate::tuning::{MOST_LOOKUP_BOXES, SPARSE_CHUNKS};
use crate::{ChunkError, TableError};

/// Parts of a request that are looked up together: parts with successive numbers, a box of pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartBatch {
    /// Numbers of its parts.
    pub begin: usize,
    pub end: usize,
    /// First piece and the one behind the last, per dimension.
    pieces: SmallVec<[(usize, usize); 4]>,
}

/// Cuts the parts of a selection into batches of at most `most`.
pub(crate) fn batches(selection: &GridSelection, most: usize) -> impl Iterator<Item = PartBatch> {
    let counts: SmallVec<[usize; 4]> = selection.cuts().map(|cuts| cuts.n_pieces()).collect();
    // Dimensions from `split` on are whole in each batch, and `inner` parts.
    let (mut split, mut inner) = (counts.len(), 1usize);
    while let Some(&n) = split.checked_sub(1).and_then(|d| counts.get(d)) {
        match inner.checked_mul(n).filter(|product| *product <= most) {
            Some(product) => inner = product,
            None => break,
        }
        split -= 1;
    }
    // The dimension before is cut into runs of `per`; those before it are taken one by one.
    let cut = split.checked_sub(1).map_or(1, |d| counts[d]);
    let per = (most / inner).clamp(1, cut);
    let runs = cut.div_ceil(per);
    let outer: usize = counts[..split.saturating_sub(1)].iter().product();
    (0..outer * runs).map(move |i| {
        let (mut rest, run) = (i / runs, i % runs);
        let (first, behind) = (run * per, (run * per + per).min(cut));
        let begin = rest * cut + first;
        let mut pieces: SmallVec<[(usize, usize); 4]> =
            counts.iter().map(|&count| (0, count)).collect();
        if let Some(d) = split.checked_sub(1) {
            pieces[d] = (first, behind);
            for d in (0..d).rev() {
                let k = rest % counts[d];
                rest /= counts[d];
                pieces[d] = (k, k + 1);
            }
        }
        PartBatch { begin: begin * inner, end: (begin + behind - first) * inner, pieces }
    })
}

/// Where the chunks of a batch's parts are, by part number from `batch.begin` on.
pub(crate) fn locate(
    table: &dyn ChunkTable,
    selection: &GridSelection,
    batch: &PartBatch,
) -> Result<Vec<Option<ChunkAt>>, ChunkError> {
    let n = batch.end - batch.begin;
    let mut places = Vec::new();
    let no_memory = ChunkError::NoMemory { bytes: (n * size_of::<Option<ChunkAt>>()) as u64 };
    places.try_reserve_exact(n).map_err(|_| no_memory)?;
    places.resize(n, None);
    let inside: SmallVec<[(usize, usize); 4]> = batch
        .pieces
        .iter()
        .zip(selection.cuts())
        .map(|(&(first, behind), cuts)| (first, behind.min(cuts.n_chunks())))
        .collect();
    if inside.iter().any(|(first, behind)| first >= behind) {
        return Ok(places);
    }
    let mut found = |chunk: &[u64], at: ChunkAt| {
        if let Some(number) = number_of(selection, batch, chunk) {
            places[number - batch.begin] = Some(at);
        }
    };
    boxes(selection, &inside, |first, last| table.locate(first, last, &mut found))
        .map_err(ChunkError::Table)?;
    Ok(places)
}

/// The number of the part in this chunk, if it belongs to the batch.
fn number_of(selection: &GridSelection, batch: &PartBatch, chunk: &[u64]) -> Option<usize> {
    if chunk.len() != selection.axes.len() {
        return None;
    }
    let mut number = 0;
    for ((axis, &index), &(first, behind)) in selection.axes.iter().zip(chunk).zip(&batch.pieces) {
        let k = axis.piece_in(index).filter(|k| (first..behind).contains(k))?;
        number = number * axis.cuts.n_pieces() + k;
    }
    Some(number)
}

/// Calls `look` with boxes of the chunk grid that together hold the pieces.
fn boxes(
    selection: &GridSelection,
    pieces: &[(usize, usize)],
    mut look: impl FnMut(&[u64], &[u64]) -> Result<(), TableError>,
) -> Result<(), TableError> {
    let mut n_boxes = 1usize;
    // Per dimension how many boxes there are, and pieces in each.
    let mut steps: SmallVec<[(usize, usize); 4]> = SmallVec::new();
    for (axis, &(first, behind)) in selection.axes.iter().zip(pieces) {
        let n = behind - first;
        let (from, to) = axis.chunks(first, behind - 1);
        let sparse = n > 1 && (to - from) / SPARSE_CHUNKS >= n as u64;
        let alone = n_boxes.checked_mul(n).filter(|&n| sparse && n <= MOST_LOOKUP_BOXES);
        n_boxes = alone.unwrap_or(n_boxes);
        steps.push(if alone.is_some() { (n, 1) } else { (1, n) });
    }
    for i in 0..n_boxes {
        let mut rest = i;
        let rank = pieces.len();
        let (mut lower, mut upper) = (Coords::from_elem(0, rank), Coords::from_elem(0, rank));
        for d in (0..rank).rev() {
            let (n, per) = steps[d];
            let first = pieces[d].0 + rest % n * per;
            rest /= n;
            (lower[d], upper[d]) = selection.axes[d].chunks(first, first + per - 1);
        }
        look(&lower, &upper)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonda_model::Hyperslab;

    fn selection(
        chunk: &[u64],
        count: &[usize],
        stride: &[isize],
        extent: &[u64],
    ) -> GridSelection {
        let start = vec![0; count.len()];
        let slab = Hyperslab { start: &start, count, stride: Some(stride) };
        GridSelection::new(chunk, extent, &slab).expect("valid")
    }

    #[test]
    fn batches_cover_all_parts_in_order() {
        let selection = selection(&[1, 2, 3], &[4, 9, 10], &[1, 1, 1], &[4, 9, 8]);
        let total: usize = selection.cuts().map(|cuts| cuts.n_pieces()).product();
        assert_eq!(total, 4 * 5 * 4);
        for most in 1..100 {
            let mut next = 0;
            for batch in batches(&selection, most) {
                assert_eq!(batch.begin, next);
                assert!(batch.end - batch.begin <= most && batch.end > batch.begin);
                let volume: usize = batch.pieces.iter().map(|(a, b)| b - a).product();
                assert_eq!(volume, batch.end - batch.begin);
                next = batch.end;
            }
            assert_eq!(next, total);
        }
    }

    /// A table in which every chunk exists; remembers how many it told of.
    #[derive(Debug, Default)]
    struct Everywhere(std::sync::atomic::AtomicUsize);

    impl ChunkTable for Everywhere {
        fn locate(
            &self,
            first: &[u64],
            last: &[u64],
            found: &mut dyn FnMut(&[u64], ChunkAt),
        ) -> Result<(), TableError> {
            for a in first[0]..=last[0] {
                for b in first[1]..=last[1] {
                    self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    found(&[a, b], ChunkAt { at: a * 1000 + b, len: 1, mask: 0 });
                }
            }
            Ok(())
        }
    }

    #[test]
    fn places_belong_to_parts_and_far_strides_leave_chunks_out() {
        let selection = selection(&[2, 1], &[5, 3], &[1, 100], &[4, 1000]);
        let table = Everywhere::default();
        for most in [1, 4, 100] {
            let mut all = Vec::new();
            for batch in batches(&selection, most) {
                all.extend(locate(&table, &selection, &batch).expect("table"));
            }
            let all: Vec<_> = all.iter().map(|place| place.map(|place| place.at)).collect();
            let row = |a: u64| [Some(a), Some(a + 100), Some(a + 200)];
            assert_eq!(all, [row(0), row(1000), [None; 3]].concat());
        }
        assert_eq!(table.0.into_inner(), 3 * 6);
    }
}
