//! A selection of elements of a variable.

use crate::axis::{Axis, AxisOutOfBounds, OutOfBounds};

/// A hyperslab in elements: `start`, `count` and optionally `stride` per dimension.
///
/// All slices have the variable's rank; row-major, last dimension fastest. Without `stride` the
/// selection is contiguous in each dimension (`nc_put_vara`), with it every `stride[i]`-th element
/// is taken, `count[i]` of them (`nc_put_vars`). The mapping of memory (`imap`) is the caller's
/// side of a transfer and not part of the selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hyperslab<'a> {
    /// Index of the first element in each dimension.
    pub start: &'a [usize],
    /// Number of elements in each dimension.
    pub count: &'a [usize],
    /// Distance between elements in each dimension, at least 1; `None` for all ones.
    pub stride: Option<&'a [isize]>,
}

/// In which order dimensions are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// From the slowest to the fastest.
    Up,
    /// From the fastest to the slowest.
    Down,
}

impl<'a> Hyperslab<'a> {
    /// Number of elements selected, `None` beyond the address space. A scalar selects one.
    #[must_use]
    pub fn n_elems(&self) -> Option<usize> {
        // A zero anywhere makes the product zero, however large the other counts are.
        if self.is_empty() {
            return Some(0);
        }
        self.count.iter().try_fold(1usize, |product, &n| product.checked_mul(n))
    }

    /// Whether no element is selected.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count.contains(&0)
    }

    /// The hyperslab, cut to `rank` dimensions: callers may have longer lists than the variable has dimensions. `None`
    /// where a list is shorter.
    #[inline]
    #[must_use]
    pub fn ranked(&self, rank: usize) -> Option<Hyperslab<'a>> {
        let stride = match self.stride {
            Some(stride) => Some(stride.get(..rank)?),
            None => None,
        };
        Some(Hyperslab { start: self.start.get(..rank)?, count: self.count.get(..rank)?, stride })
    }

    /// Whether all strides are one, given or not.
    #[inline]
    #[must_use]
    pub fn is_unit(&self) -> bool {
        self.stride.is_none_or(|stride| stride.iter().all(|&stride| stride == 1))
    }

    /// Whether all strides, if they are given, pass a test. That of the reference is [`is_stride`](crate::is_stride).
    #[inline]
    #[must_use]
    pub fn strides_are(&self, fits: impl Fn(isize) -> bool) -> bool {
        self.stride.is_none_or(|stride| stride.iter().all(|&stride| fits(stride)))
    }

    /// The selection along a dimension. Missing numbers count as zero, missing or negative strides as one.
    #[inline]
    #[must_use]
    pub fn axis(&self, axis: usize) -> Axis {
        let of = |list: &[usize]| list.get(axis).map_or(0, |&value| value as u64);
        let stride = u64::try_from(self.stride_of(axis)).unwrap_or(1);
        Axis { start: of(self.start), count: of(self.count), stride }
    }

    /// The stride along a dimension as the caller gave it; one where it is missing.
    #[inline]
    #[must_use]
    pub fn stride_of(&self, axis: usize) -> isize {
        self.stride.and_then(|stride| stride.get(axis).copied()).unwrap_or(1)
    }

    /// Tests the dimensions that have a start and a count, one after the other. `test` gets the number of a dimension and the
    /// selection along it. The first error ends the walk.
    ///
    /// The reference goes through the dimensions more than once in some calls, with other tests each time; a format calls
    /// this once for each time. The format chooses the tests and the order.
    ///
    /// # Errors
    /// The error of `test`, with the number of the dimension.
    ///
    /// ```
    /// use zonda_slab::{AxisOutOfBounds, Hyperslab, Order, OutOfBounds};
    ///
    /// let slab = Hyperslab { start: &[1, 4], count: &[5, 1], stride: None };
    /// let lens = [3, 3];
    /// // All starts before all edges: the second dimension is refused first.
    /// let refused = slab
    ///     .each_axis(Order::Up, |d, axis| axis.start_and_first_within(lens[d]))
    ///     .and_then(|()| slab.each_axis(Order::Up, |d, axis| axis.count_within(lens[d])));
    /// assert_eq!(refused, Err(AxisOutOfBounds { axis: 1, why: OutOfBounds::AtStart }));
    /// ```
    #[inline]
    pub fn each_axis(
        &self,
        order: Order,
        mut test: impl FnMut(usize, Axis) -> Result<(), OutOfBounds>,
    ) -> Result<(), AxisOutOfBounds> {
        let mut axes = self.start.iter().zip(self.count).enumerate();
        let at = |(axis, (&start, &count)): (usize, (&usize, &usize))| {
            let stride = u64::try_from(self.stride_of(axis)).unwrap_or(1);
            let along = Axis { start: start as u64, count: count as u64, stride };
            test(axis, along).map_err(|why| AxisOutOfBounds { axis, why })
        };
        match order {
            Order::Up => axes.try_for_each(at),
            Order::Down => axes.rev().try_for_each(at),
        }
    }
}
