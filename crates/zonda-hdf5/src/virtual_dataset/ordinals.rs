//! Pieces of selections that do not have the same form on both sides: elements are paired by their
//! ordinals. The ordinal of an element is how many others its selection has before it.

use smallvec::SmallVec;

use super::VirtualSource;
use super::pieces::RegularSelection;
use super::request::{MappingRequest, Piece, Slab};
use crate::Result;
use crate::selection::{DimValues, Selection};

/// A source whose elements are found by their ordinals, and what is asked of it.
struct OrdinalSource<'a> {
    selection: &'a Selection,
    /// The same, where it is regular.
    regular: Option<&'a RegularSelection>,
    dims: &'a [u64],
    request: &'a MappingRequest<'a>,
}

impl OrdinalSource<'_> {
    /// Where the element of an ordinal is, and how many follow it side by side, itself included.
    fn at(&self, ordinal: u64) -> Option<(DimValues, u64)> {
        match (self.regular, self.selection) {
            (Some(regular), _) => regular.at(ordinal),
            (None, Selection::Points { rank, coords }) => {
                let i = usize::try_from(ordinal).ok()?.checked_mul(*rank)?;
                Some((coords.get(i..i.checked_add(*rank)?)?.into(), 1))
            }
            (None, Selection::Blocks(blocks)) => blocks.at(ordinal),
            _ => None,
        }
    }

    /// The pieces for `len` elements of the target along its last dimension, the first of which is at
    /// `at` and has this ordinal.
    fn run_pieces(
        &self,
        at: &[u64],
        len: u64,
        ordinal: u64,
        found: &mut dyn FnMut(&Piece) -> Result<()>,
    ) -> Result<()> {
        let mut place = DimValues::new();
        for (dim, &at) in at.iter().enumerate().take(at.len().saturating_sub(1)) {
            match self.request.dim(dim).place(at) {
                Some(coord) => place.push(coord),
                None => return Ok(()),
            }
        }
        let request = self.request.dim(at.len().saturating_sub(1));
        let begin = at.last().copied().unwrap_or(0);
        let end = begin.saturating_add(len).min(request.end());
        let mut coord = request.next(begin);
        while coord < end {
            let Some((from, n)) = self.at(ordinal.saturating_add(coord.saturating_sub(begin)))
            else {
                return Ok(());
            };
            // Elements side by side in both; of those, every `stride`-th.
            let n = n.min(end.saturating_sub(coord)).max(1);
            let count = n.div_ceil(request.stride);
            let inside = from.last().zip(self.dims.last()).map_or(0, |(from, dim)| {
                dim.saturating_sub(*from).div_ceil(request.stride).min(count)
            });
            let is_outside = from.iter().zip(self.dims).any(|(from, dim)| from >= dim);
            if let Some(begins) = request.place(coord).filter(|_| inside > 0 && !is_outside) {
                let mut to = place.clone();
                to.push(begins);
                found(&Piece {
                    source: Slab::row(from, request.stride, inside),
                    target: Slab::row(to, 1, inside),
                })?;
            }
            coord = coord.saturating_add(count.saturating_mul(request.stride));
        }
        Ok(())
    }
}

impl VirtualSource {
    /// Tells `found` of the pieces of a request, pairing elements by their ordinals. `target` and
    /// `source` are the selections where they are regular.
    pub(super) fn pieces_by_ordinal(
        &self,
        target: Option<&RegularSelection>,
        source: Option<&RegularSelection>,
        source_dims: &[u64],
        request: &MappingRequest<'_>,
        found: &mut dyn FnMut(&Piece) -> Result<()>,
    ) -> Result<()> {
        let source =
            OrdinalSource { selection: &self.source, regular: source, dims: source_dims, request };
        let mut run = |at: &[u64], len, ordinal| source.run_pieces(at, len, ordinal, found);
        match (target, &self.target) {
            (Some(target), _) => target_runs(target, request, &mut run),
            (None, Selection::Points { rank, coords }) => {
                for (ordinal, at) in (0..).zip(coords.chunks_exact(*rank)) {
                    run(at, 1, ordinal)?;
                }
                Ok(())
            }
            (None, Selection::Blocks(blocks)) => {
                for corners in blocks.iter() {
                    let block = RegularSelection::of_block(corners);
                    target_runs(&block, request, &mut |at, len, _| {
                        run(at, len, blocks.before(at))
                    })?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Takes a run along the last dimension: where it begins, its elements, the ordinal of the first.
type VisitRun<'a> = dyn FnMut(&[u64], u64, u64) -> Result<()> + 'a;

/// The runs of a regular selection in the box around a request, with the ordinal of the first element
/// of each.
fn target_runs(
    target: &RegularSelection,
    request: &MappingRequest<'_>,
    run: &mut VisitRun<'_>,
) -> Result<()> {
    let bounds: SmallVec<[(u64, u64); 4]> = target
        .dims
        .iter()
        .zip(&target.lens)
        .enumerate()
        .map(|(dim, (slab, &len))| {
            let request = request.dim(dim);
            (slab.before(request.start), slab.before(request.end()).min(len))
        })
        .collect();
    if bounds.iter().any(|(low, high)| low >= high) {
        return Ok(());
    }
    let mut i: DimValues = bounds.iter().map(|bound| bound.0).collect();
    loop {
        let at: DimValues = i.iter().zip(&target.dims).map(|(&i, slab)| slab.at(i)).collect();
        let ordinal = i
            .iter()
            .zip(&target.lens)
            .fold(0u64, |n, (&i, &len)| n.saturating_mul(len).saturating_add(i));
        let (Some(inner), Some(slab), Some(bound)) =
            (i.last_mut(), target.dims.last(), bounds.last())
        else {
            return Ok(());
        };
        let n = slab.contiguous(*inner).min(bound.1.saturating_sub(*inner)).max(1);
        run(&at, n, ordinal)?;
        *inner = inner.saturating_add(n);
        let mut dim = i.len();
        loop {
            dim = match dim.checked_sub(1) {
                Some(dim) => dim,
                None => return Ok(()),
            };
            let (Some(coord), Some(bound)) = (i.get_mut(dim), bounds.get(dim)) else {
                return Ok(());
            };
            if *coord < bound.1 {
                break;
            }
            *coord = bound.0;
            if let Some(outer) = dim.checked_sub(1).and_then(|outer| i.get_mut(outer)) {
                *outer = outer.saturating_add(1);
            }
        }
    }
}
