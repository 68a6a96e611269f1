//! What is asked of a virtual dataset, and in which form its sources answer.

use crate::selection::DimValues;

/// Elements at equal steps in each dimension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slab {
    /// The first element.
    pub start: DimValues,
    /// Elements from one to the next, at least 1.
    pub step: DimValues,
    /// Number of elements.
    pub count: DimValues,
}

impl Slab {
    /// `count` elements along the last dimension, `step` from one to the next; one element of each
    /// other dimension.
    pub(super) fn row(start: DimValues, step: u64, count: u64) -> Slab {
        let mut slab = Slab {
            step: DimValues::from_elem(1, start.len()),
            count: DimValues::from_elem(1, start.len()),
            start,
        };
        if let (Some(last_step), Some(last_count)) = (slab.step.last_mut(), slab.count.last_mut()) {
            (*last_step, *last_count) = (step, count);
        }
        slab
    }

    /// Replaces one dimension.
    pub(super) fn set(&mut self, dim: usize, start: u64, step: u64, count: u64) {
        for (numbers, value) in
            [(&mut self.start, start), (&mut self.step, step), (&mut self.count, count)]
        {
            if let Some(place) = numbers.get_mut(dim) {
                *place = value;
            }
        }
    }
}

/// Elements of a source and where they go in the result of a request. Both sides have equally many
/// elements, in row-major order; their counts differ only by dimensions of one element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// In the source, in its elements.
    pub source: Slab,
    /// In the request, in elements of its result: element `i` of a dimension is the virtual
    /// dataset's element `start + i * stride`.
    pub target: Slab,
}

/// A hyperslab of the virtual dataset.
#[derive(Clone, Copy, Debug)]
pub struct MappingRequest<'a> {
    /// First element.
    pub start: &'a [u64],
    /// Number of elements.
    pub count: &'a [u64],
    /// Elements from one requested element to the next, at least 1.
    pub stride: &'a [u64],
}

impl MappingRequest<'_> {
    pub(super) fn dim(&self, dim: usize) -> RequestDim {
        let get = |numbers: &[u64]| numbers.get(dim).copied().unwrap_or(0);
        RequestDim {
            start: get(self.start),
            count: get(self.count),
            stride: get(self.stride).max(1),
        }
    }
}

/// One dimension of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestDim {
    pub(super) start: u64,
    pub(super) count: u64,
    pub(super) stride: u64,
}

impl RequestDim {
    /// The coordinate after the last requested one.
    pub(super) fn end(&self) -> u64 {
        let Some(last) = self.count.checked_sub(1) else { return self.start };
        self.start.saturating_add(last.saturating_mul(self.stride)).saturating_add(1)
    }

    /// The first requested coordinate at or after `at`, as if the request had no end.
    pub(super) fn next(&self, at: u64) -> u64 {
        let past = at.saturating_sub(self.start);
        self.start.saturating_add(past.div_ceil(self.stride).saturating_mul(self.stride))
    }

    /// The place in the result of a coordinate; `None` where it is not requested.
    pub(super) fn place(&self, at: u64) -> Option<u64> {
        let past = at.checked_sub(self.start)?;
        let place = past.checked_div(self.stride)?;
        (place.checked_mul(self.stride) == Some(past) && place < self.count).then_some(place)
    }
}
