//! One dimension of a selection, and the tests of it that all formats put together in their order.

/// First stride that `nc_*_vars` and `nc_*_varm` refuse (`X_INT_MAX`), but for netCDF-4 files, which
/// take any that is positive.
pub const STRIDE_LIMIT: isize = 0x7FFF_FFFF;
/// Largest index of a record that `nc_*_vara` and `nc_*_vars` take (`X_UINT_MAX`), in any classic format.
pub const MAX_RECORD: u64 = 0xFFFF_FFFF;

/// Whether the reference takes a stride, in elements: from 1 up to [`STRIDE_LIMIT`], not included.
#[inline]
#[must_use]
pub const fn is_stride(stride: isize) -> bool {
    stride > 0 && stride < STRIDE_LIMIT
}

/// How a selection leaves a variable. Which code of the C interface that is depends on the format and on the
/// call; mostly the one that is named here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfBounds {
    /// The first element is outside (`NC_EINVALCOORDS`).
    AtStart,
    /// A later one is (`NC_EEDGE`).
    AtEnd,
    /// The distance of the elements is none (`NC_ESTRIDE`).
    ByStride,
}

/// Where a selection leaves a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisOutOfBounds {
    /// Number of the dimension, the slowest being 0.
    pub axis: usize,
    /// In which way.
    pub why: OutOfBounds,
}

/// One dimension of a selection, in elements.
///
/// The tests look at one thing each, so that a format says in which order they are made. `len` is the length
/// of the dimension; [`u64::MAX`] for one that has no end. Sums that cannot be counted are beyond every other
/// length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Index of the first element.
    pub start: u64,
    /// Number of elements.
    pub count: u64,
    /// Distance from one to the next, at least 1 in all that a format accepts.
    pub stride: u64,
}

impl Axis {
    /// Index of the last element; `None` where there is none, and where it cannot be counted.
    #[inline]
    #[must_use]
    pub fn last(self) -> Option<u64> {
        self.count.checked_sub(1)?.checked_mul(self.stride)?.checked_add(self.start)
    }

    /// The index behind the last element, at most [`u64::MAX`]; the start where there are no elements.
    #[inline]
    #[must_use]
    pub fn end(self) -> u64 {
        match (self.count, self.last()) {
            (0, _) => self.start,
            (_, Some(last)) => last.saturating_add(1),
            (_, None) => u64::MAX,
        }
    }

    /// `start` is at most `len`: a start at the end is one of no elements.
    ///
    /// # Errors
    /// [`OutOfBounds::AtStart`].
    #[inline]
    pub fn start_within(self, len: u64) -> Result<(), OutOfBounds> {
        if self.start > len { Err(OutOfBounds::AtStart) } else { Ok(()) }
    }

    /// The first element, if there is one, is not at the end: what follows [`Axis::start_within`].
    ///
    /// # Errors
    /// [`OutOfBounds::AtStart`].
    #[inline]
    pub fn first_within(self, len: u64) -> Result<(), OutOfBounds> {
        if self.count > 0 && self.start == len { Err(OutOfBounds::AtStart) } else { Ok(()) }
    }

    /// Both: the reference's usual test of a start.
    ///
    /// # Errors
    /// [`OutOfBounds::AtStart`].
    #[inline]
    pub fn begin_within(self, len: u64) -> Result<(), OutOfBounds> {
        self.start_within(len)?;
        self.first_within(len)
    }

    /// `start + count` is at most `len`, whatever the stride: the reference's test of an edge.
    ///
    /// # Errors
    /// [`OutOfBounds::AtEnd`].
    #[inline]
    pub fn count_within(self, len: u64) -> Result<(), OutOfBounds> {
        if self.start.saturating_add(self.count) > len { Err(OutOfBounds::AtEnd) } else { Ok(()) }
    }

    /// The last element, if there is one, is inside.
    ///
    /// # Errors
    /// [`OutOfBounds::AtEnd`].
    #[inline]
    pub fn last_within(self, len: u64) -> Result<(), OutOfBounds> {
        if self.count == 0 || self.last().is_some_and(|last| last < len) {
            Ok(())
        } else {
            Err(OutOfBounds::AtEnd)
        }
    }
}
