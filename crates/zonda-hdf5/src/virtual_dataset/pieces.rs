//! The pieces of a request that a mapping gives.

use smallvec::SmallVec;

use super::dim_pieces::{DimPiece, dim_pieces};
use super::request::{MappingRequest, Piece, Slab};
use super::{NAME, VirtualSource};
use crate::selection::{DimValues, HyperslabDim, Selection, side};
use crate::{HdfError, Result};

/// A selection with a form of its own in each dimension.
pub(super) struct RegularSelection {
    pub(super) dims: SmallVec<[HyperslabDim; 3]>,
    /// How many elements of each dimension take part.
    pub(super) lens: DimValues,
}

impl RegularSelection {
    pub(super) fn of(selection: &Selection, extent: &[u64]) -> Option<RegularSelection> {
        let dims: SmallVec<[HyperslabDim; 3]> = match selection {
            Selection::All => extent.iter().map(|&dim| HyperslabDim::run(0, dim)).collect(),
            Selection::Hyperslab(dims) if dims.len() == extent.len() => dims.clone(),
            _ => return None,
        };
        let lens = dims.iter().map(HyperslabDim::len).collect();
        Some(RegularSelection { dims, lens })
    }

    /// A block, by its first and its last element.
    pub(super) fn of_block((first, last): (&[u64], &[u64])) -> RegularSelection {
        let run = |(&a, &b): (&u64, &u64)| HyperslabDim::run(a, side(a, b));
        let dims: SmallVec<[HyperslabDim; 3]> = first.iter().zip(last).map(run).collect();
        let lens = dims.iter().map(HyperslabDim::len).collect();
        RegularSelection { dims, lens }
    }

    /// Where element `ordinal` is, and how many follow it along the last dimension, itself included.
    pub(super) fn at(&self, ordinal: u64) -> Option<(DimValues, u64)> {
        let mut above = ordinal;
        let mut run = 1;
        let mut at = DimValues::new();
        for (place, (dim, &len)) in self.dims.iter().zip(&self.lens).enumerate().rev() {
            let i = above.checked_rem(len)?;
            above = above.checked_div(len)?;
            if place.saturating_add(1) == self.dims.len() {
                run = dim.contiguous(i).min(len.saturating_sub(i));
            }
            at.push(dim.at(i));
        }
        at.reverse();
        (above == 0).then_some((at, run))
    }
}

impl VirtualSource {
    /// Whether any element of a request is mapped here, whatever the source has; `dims` is the extent of
    /// the virtual dataset.
    #[must_use]
    pub fn touches(&self, dims: &[u64], request: &MappingRequest<'_>) -> bool {
        let meets = |regular: &RegularSelection| {
            regular.dims.iter().zip(&regular.lens).enumerate().all(|(dim, (slab, &len))| {
                !dim_pieces(slab, slab, len, u64::MAX, request.dim(dim)).is_empty()
            })
        };
        match &self.target {
            Selection::None => false,
            Selection::All | Selection::Hyperslab(_) => {
                RegularSelection::of(&self.target, dims).is_none_or(|target| meets(&target))
            }
            Selection::Points { rank, coords } => {
                coords.chunks_exact((*rank).max(1)).any(|point| {
                    point.iter().enumerate().all(|(dim, &at)| request.dim(dim).place(at).is_some())
                })
            }
            Selection::Blocks(blocks) => {
                blocks.iter().any(|corners| meets(&RegularSelection::of_block(corners)))
            }
        }
    }

    /// Tells `found` of the pieces of a request that this mapping gives. Elements that are outside
    /// the source's extent are left out. Of a numbered mapping, ask [`block`](VirtualSource::block)
    /// for each of its blocks instead.
    ///
    /// `dims` is the extent of the virtual dataset, `source_dims` that of the source. The number of
    /// pieces is not larger than that of elements in the box around the request.
    ///
    /// # Errors
    /// [`HdfError::BadValue`] where selections do not fit the extents or each other.
    pub fn pieces(
        &self,
        dims: &[u64],
        source_dims: &[u64],
        request: &MappingRequest<'_>,
        found: &mut dyn FnMut(&Piece) -> Result<()>,
    ) -> Result<()> {
        let bad = |what, value| Err(HdfError::BadValue { structure: NAME, at: 0, what, value });
        for (selection, dims) in [(&self.target, dims), (&self.source, source_dims)] {
            if selection.rank().is_some_and(|rank| rank != dims.len()) {
                let rank = selection.rank().unwrap_or(0) as u64;
                return bad("the number of dimensions of a selection", rank);
            }
        }
        if [request.start, request.count, request.stride].iter().any(|n| n.len() != dims.len()) {
            return bad("the number of dimensions of a request", request.count.len() as u64);
        }
        let mut target = RegularSelection::of(&self.target, dims);
        let mut source = RegularSelection::of(&self.source, source_dims);
        if let Some(dim) = self.target.unlimited_dim() {
            let Some(slices) = self.slices(source_dims) else {
                return bad("a dimension that is unlimited in the target alone", dim as u64);
            };
            let ends = [(&mut target, Some(dim)), (&mut source, self.source.unlimited_dim())];
            for (side, dim) in ends {
                let lens = side.as_mut().map(|side| &mut side.lens);
                if let Some(len) = lens.zip(dim).and_then(|(lens, dim)| lens.get_mut(dim)) {
                    *len = slices;
                }
            }
        } else if let Some(dim) = self.source.unlimited_dim() {
            return bad("a dimension that is unlimited in the source alone", dim as u64);
        }
        if let (Some(target), Some(source)) = (&target, &source)
            && let Some(pairs) = paired_dims(target, source)
        {
            return box_pieces(target, source, &pairs, source_dims, request, found);
        }
        self.pieces_by_ordinal(target.as_ref(), source.as_ref(), source_dims, request, found)
    }
}

/// The dimensions of target and source of more than one element, in pairs of the same length; `None`
/// where they have no such pairs.
fn paired_dims(
    target: &RegularSelection,
    source: &RegularSelection,
) -> Option<SmallVec<[(usize, usize); 4]>> {
    let long = |side: &RegularSelection| -> SmallVec<[(usize, u64); 4]> {
        side.lens.iter().copied().enumerate().filter(|&(_, len)| len != 1).collect()
    };
    let (target, source) = (long(target), long(source));
    let same = target.len() == source.len() && target.iter().zip(&source).all(|(a, b)| a.1 == b.1);
    same.then(|| target.iter().zip(&source).map(|(a, b)| (a.0, b.0)).collect())
}

/// Tells `found` of the pieces of a mapping whose dimensions have pairs: boxes.
fn box_pieces(
    target: &RegularSelection,
    source: &RegularSelection,
    pairs: &[(usize, usize)],
    source_dims: &[u64],
    request: &MappingRequest<'_>,
    found: &mut dyn FnMut(&Piece) -> Result<()>,
) -> Result<()> {
    let Some(base) = single_elements(target, source, pairs, source_dims, request) else {
        return Ok(());
    };
    let mut all: SmallVec<[Vec<DimPiece>; 4]> = SmallVec::new();
    for &(t, s) in pairs {
        let (Some(a), Some(b), Some(&len), Some(&extent)) =
            (target.dims.get(t), source.dims.get(s), target.lens.get(t), source_dims.get(s))
        else {
            return Ok(());
        };
        let of_dim = dim_pieces(a, b, len, extent, request.dim(t));
        if of_dim.is_empty() {
            return Ok(());
        }
        all.push(of_dim);
    }
    // All combinations, the last dimension fastest.
    let mut i: SmallVec<[usize; 4]> = SmallVec::from_elem(0, all.len());
    loop {
        let mut piece = base.clone();
        for ((&(t, s), of_dim), &i) in pairs.iter().zip(&all).zip(&i) {
            let Some(one) = of_dim.get(i) else { return Ok(()) };
            piece.source.set(s, one.source, one.source_step, one.count);
            piece.target.set(t, one.target, one.target_step, one.count);
        }
        found(&piece)?;
        let mut dim = all.len();
        loop {
            let Some(outer) = dim.checked_sub(1) else { return Ok(()) };
            dim = outer;
            let (Some(i), Some(of_dim)) = (i.get_mut(dim), all.get(dim)) else { return Ok(()) };
            *i = i.saturating_add(1);
            if *i < of_dim.len() {
                break;
            }
            *i = 0;
        }
    }
}

/// A piece with the places of dimensions that have a single element, and for the others zeros. `None`
/// where one of these elements is not requested or is outside of the source.
fn single_elements(
    target: &RegularSelection,
    source: &RegularSelection,
    pairs: &[(usize, usize)],
    source_dims: &[u64],
    request: &MappingRequest<'_>,
) -> Option<Piece> {
    let source_start: DimValues = source.dims.iter().map(|dim| dim.at(0)).collect();
    let mut target_start = DimValues::new();
    for (dim, slab) in target.dims.iter().enumerate() {
        let is_paired = pairs.iter().any(|pair| pair.0 == dim);
        target_start.push(if is_paired { 0 } else { request.dim(dim).place(slab.at(0))? });
    }
    for (dim, (slab, extent)) in source.dims.iter().zip(source_dims).enumerate() {
        if slab.at(0) >= *extent && !pairs.iter().any(|pair| pair.1 == dim) {
            return None;
        }
    }
    Some(Piece { source: Slab::row(source_start, 1, 1), target: Slab::row(target_start, 1, 1) })
}
