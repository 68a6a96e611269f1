//! One dimension of a selection, and single tests of it; each format makes them in its own order.

/// The smallest positive stride that `nc_*_vars` and `nc_*_varm` refuse (`X_INT_MAX`). In netCDF-4 files they accept any
/// positive stride.
pub const STRIDE_LIMIT: isize = 0x7FFF_FFFF;
/// Largest index of a record that `nc_*_vara` and `nc_*_vars` accept (`X_UINT_MAX`), in any classic format.
pub const MAX_RECORD: u64 = 0xFFFF_FFFF;

/// Whether the reference takes a stride, in elements: from 1 up to [`STRIDE_LIMIT`], not included.
#[inline]
#[must_use]
pub const fn is_stride(stride: isize) -> bool {
    stride > 0 && stride < STRIDE_LIMIT
}

/// How a selection leaves a variable. The error code of the C interface depends on the format and on the call; it is
/// mostly the one that is named here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfBounds {
    /// The first element is outside (`NC_EINVALCOORDS`).
    AtStart,
    /// A later one is (`NC_EEDGE`).
    AtEnd,
    /// The stride is not one that the format accepts (`NC_ESTRIDE`).
    ByStride,
}

/// Where a selection leaves a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisOutOfBounds {
    /// Number of the dimension, the slowest being 0.
    pub axis: usize,
    /// How it leaves the variable there.
    pub why: OutOfBounds,
}

/// One dimension of a selection, in elements.
///
/// Each test checks one thing, so that a format decides in which order they are made. `len` is the length of the
/// dimension; [`u64::MAX`] for one without end. Sums that overflow are beyond every other length.
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

    /// [`Axis::start_within`] and [`Axis::first_within`]: the reference's usual test of a start.
    ///
    /// # Errors
    /// [`OutOfBounds::AtStart`].
    #[inline]
    pub fn start_and_first_within(self, len: u64) -> Result<(), OutOfBounds> {
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
