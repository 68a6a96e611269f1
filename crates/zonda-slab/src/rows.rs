//! Hyperslabs of contiguous arrays: as rows, and as a span.

use crate::hyperslab::Hyperslab;
use crate::places::Places;

/// A hyperslab of a contiguous array as equal rows, which are as long as possible, and the loops around them.
///
/// The elements of a row are side by side, or all equally far from each other. Lengths of the array are in
/// elements, the slowest dimension first; places and distances are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Elements of a row.
    pub n: u64,
    /// Bytes from one of them to the next.
    pub step: u64,
    /// Number of the slowest dimensions whose indices each have rows of their own.
    pub outer: usize,
}

impl Rows {
    /// The rows of a hyperslab with elements of `elem` bytes. `None` where a number overflows, and where `extent` has
    /// another rank.
    #[inline]
    #[must_use]
    pub fn of(extent: &[u64], slab: &Hyperslab<'_>, elem: usize) -> Option<Rows> {
        let (mut n, mut inner, mut outer) = (1u64, elem as u64, extent.len());
        let mut step = elem as u64;
        while let Some(axis) = outer.checked_sub(1) {
            let along = slab.axis(axis);
            let len = *extent.get(axis)?;
            if n == 1 {
                // A row of single elements may have gaps.
                step = if along.count > 1 { inner.checked_mul(along.stride)? } else { elem as u64 };
            } else if step != elem as u64 || along.stride != 1 {
                break;
            }
            n = n.checked_mul(along.count)?;
            inner = inner.checked_mul(len)?;
            outer = axis;
            let has_gaps = step != elem as u64;
            if n > 1 && (has_gaps || along.count != len) {
                break;
            }
        }
        Some(Rows { n, step, outer })
    }

    /// Bytes of the row, if there is only one and it has no gaps; else 0.
    #[must_use]
    pub fn bytes(&self, elem: usize) -> u64 {
        let is_one = self.outer == 0 && self.step == elem as u64;
        if is_one { self.n.saturating_mul(elem as u64) } else { 0 }
    }

    /// Calls `each` with the first byte of every row, in the order in which the rows are in memory. `None` where one
    /// overflows: then `each` was not called.
    ///
    /// # Errors
    /// The first that `each` gives.
    #[inline]
    pub fn for_each<E>(
        &self,
        extent: &[u64],
        slab: &Hyperslab<'_>,
        elem: usize,
        mut each: impl FnMut(u64) -> Result<(), E>,
    ) -> Option<Result<(), E>> {
        if self.outer == 0 {
            // Most hyperslabs are one row, and the calls take some nanoseconds.
            return Some(each(self.first(extent, slab, elem)?));
        }
        Some(self.places(extent, slab, elem)?.for_each(each))
    }

    /// The first byte of the first row.
    #[inline]
    fn first(&self, extent: &[u64], slab: &Hyperslab<'_>, elem: usize) -> Option<u64> {
        let (mut step, mut first) = (elem as u64, 0u64);
        for (axis, &len) in extent.iter().enumerate().rev() {
            first = slab.axis(axis).start.checked_mul(step)?.checked_add(first)?;
            step = step.checked_mul(len)?;
        }
        Some(first)
    }

    fn places(&self, extent: &[u64], slab: &Hyperslab<'_>, elem: usize) -> Option<Places<u64>> {
        let (mut step, first) = (elem as u64, self.first(extent, slab, elem)?);
        // Of the outer dimensions, fastest first.
        let mut loops: smallvec::SmallVec<[(usize, u64); 8]> = smallvec::SmallVec::new();
        for (axis, &len) in extent.iter().enumerate().rev() {
            let along = slab.axis(axis);
            if axis < self.outer {
                let count = usize::try_from(along.count).ok()?;
                // A loop of one step has no distance.
                let far = if count > 1 { step.checked_mul(along.stride)? } else { 0 };
                loops.push((count, far));
            }
            step = step.checked_mul(len)?;
        }
        Places::new(first, loops.into_iter().rev())
    }
}

/// The bytes from the first element of a hyperslab to its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub start: u64,
    /// The byte behind the last.
    pub end: u64,
    /// There are bytes of other elements between them.
    pub has_gaps: bool,
}

impl Span {
    /// The span of a hyperslab of a contiguous array with elements of `elem` bytes. `None` for no elements, and where a
    /// number overflows.
    #[inline]
    #[must_use]
    pub fn of(extent: &[u64], slab: &Hyperslab<'_>, elem: usize) -> Option<Span> {
        let (mut start, mut end, mut n, mut step) = (0u64, elem as u64, elem as u64, elem as u64);
        for (axis, &len) in extent.iter().enumerate().rev() {
            let along = slab.axis(axis);
            start = start.checked_add(along.start.checked_mul(step)?)?;
            end = end.checked_add(along.last()?.checked_mul(step)?)?;
            n = n.checked_mul(along.count)?;
            step = step.checked_mul(len)?;
        }
        Some(Span { start, end, has_gaps: end.checked_sub(start)? != n })
    }
}
