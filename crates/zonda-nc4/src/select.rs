//! Checks whether a hyperslab is inside a variable, in the reference's order.
//!
//! Along an unlimited dimension the bound is the length of the dimension. The variable may have fewer elements: the others
//! are read as fill values. Along any other dimension the bound is what the variable has.

use std::fmt;

use zonda_model::{Hyperslab, NcError};
use zonda_slab::Order;

/// One axis of a variable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    /// Number of elements that the variable has.
    pub(crate) extent: u64,
    /// Length of the dimension, if that is unlimited.
    pub(crate) unlimited: Option<u64>,
}

/// Where a hyperslab leaves a variable. Its text is that of classic files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SelectionMisfit {
    pub(crate) code: NcError,
    axis: usize,
    first: u64,
    count: u64,
    stride: isize,
    /// Length of the dimension; `None` for one that grows with a put.
    len: Option<u64>,
}

impl SelectionMisfit {
    #[cold]
    pub(crate) fn new(
        code: NcError,
        slab: &Hyperslab<'_>,
        axis: usize,
        len: Option<u64>,
    ) -> SelectionMisfit {
        let along = slab.axis(axis);
        let stride = slab.stride_of(axis);
        SelectionMisfit { code, axis, first: along.start, count: along.count, stride, len }
    }

    /// The error about lists that are shorter than the variable's rank.
    #[cold]
    pub(crate) fn short() -> SelectionMisfit {
        SelectionMisfit { code: NcError::Inval, axis: 0, first: 0, count: 0, stride: 1, len: None }
    }

    /// The error about the first stride that is not positive.
    #[cold]
    pub(crate) fn stride(slab: &Hyperslab<'_>) -> SelectionMisfit {
        let first = |stride: &[isize]| stride.iter().position(|&stride| stride <= 0);
        let axis = slab.stride.and_then(first).unwrap_or(0);
        SelectionMisfit::new(NcError::Stride, slab, axis, None)
    }
}

impl fmt::Display for SelectionMisfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SelectionMisfit { code, axis, first, count, stride, len } = *self;
        match code {
            NcError::Inval => {
                write!(
                    f,
                    "start, count or stride has fewer numbers than the variable has dimensions"
                )
            }
            NcError::Stride => {
                write!(
                    f,
                    "stride {stride} in dimension {axis} is out of range: expected at least 1"
                )
            }
            NcError::InvalidCoords => {
                write!(
                    f,
                    "start {first} is outside dimension {axis} of length {}",
                    len.unwrap_or(0)
                )
            }
            _ => {
                write!(f, "start {first} + count {count}")?;
                if stride != 1 {
                    write!(f, " at stride {stride}")?;
                }
                match len {
                    Some(len) => {
                        write!(f, " is beyond the end of dimension {axis} of length {len}")
                    }
                    None => write!(f, " in dimension {axis} is beyond the end of any dimension"),
                }
            }
        }
    }
}

/// Checks strides, then axis by axis the first and the last element.
pub(crate) fn check(axes: &[Axis], slab: &Hyperslab<'_>) -> Result<(), SelectionMisfit> {
    let slab = ranked(slab, axes.len())?;
    let len = |at: usize| axes.get(at).map_or(0, |axis| axis.unlimited.unwrap_or(axis.extent));
    let inside = slab.each_axis(Order::Up, |at, axis| {
        axis.start_and_first_within(len(at))?;
        axis.last_within(len(at))
    });
    let refused = |misfit: zonda_slab::AxisOutOfBounds| {
        SelectionMisfit::new(misfit.why.into(), &slab, misfit.axis, Some(len(misfit.axis)))
    };
    inside.map_err(refused)
}

/// The hyperslab, cut to the variable's rank; and the check of its strides, which the reference makes first.
#[inline]
pub(crate) fn ranked<'s>(
    slab: &Hyperslab<'s>,
    rank: usize,
) -> Result<Hyperslab<'s>, SelectionMisfit> {
    let slab = slab.ranked(rank).ok_or_else(SelectionMisfit::short)?;
    // For netCDF-4 files the reference accepts any positive stride.
    if slab.strides_are(|stride| stride > 0) {
        Ok(slab)
    } else {
        Err(SelectionMisfit::stride(&slab))
    }
}

/// How many elements of an axis exist in the variable, of those selected.
#[inline]
fn existing_along(axis: &Axis, along: zonda_slab::Axis) -> u64 {
    let beyond = axis.extent.saturating_sub(along.start);
    // A division takes longer than all else here.
    let n = if along.stride <= 1 { beyond } else { beyond.div_ceil(along.stride) };
    n.min(along.count)
}

/// Whether all elements that are selected exist in the variable.
#[inline]
pub(crate) fn exist(axes: &[Axis], slab: &Hyperslab<'_>) -> bool {
    let all = |(axis, at): (&Axis, usize)| {
        let along = slab.axis(at);
        existing_along(axis, along) == along.count
    };
    axes.iter().zip(0..).all(all)
}

/// How many elements of each axis exist in the variable, of those selected.
pub(crate) fn existing(axes: &[Axis], slab: &Hyperslab<'_>) -> Vec<usize> {
    let count = |(axis, at): (&Axis, usize)| {
        usize::try_from(existing_along(axis, slab.axis(at))).unwrap_or(usize::MAX)
    };
    axes.iter().zip(0..).map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(axes: &[Axis], start: &[usize], count: &[usize], stride: Option<&[isize]>) -> i32 {
        check(axes, &Hyperslab { start, count, stride })
            .map_or_else(|misfit| misfit.code.code(), |()| 0)
    }

    #[test]
    fn order_and_edges() {
        let fixed = Axis { extent: 4, unlimited: None };
        let grown = Axis { extent: 2, unlimited: Some(6) };
        assert_eq!(code(&[fixed], &[0], &[4], None), 0);
        assert_eq!(code(&[fixed], &[4], &[0], None), 0);
        assert_eq!(code(&[fixed], &[4], &[1], None), NcError::InvalidCoords.code());
        assert_eq!(code(&[fixed], &[5], &[0], None), NcError::InvalidCoords.code());
        assert_eq!(code(&[fixed], &[1], &[4], None), NcError::Edge.code());
        assert_eq!(code(&[fixed], &[1], &[usize::MAX], None), NcError::Edge.code());
        assert_eq!(code(&[fixed], &[0], &[2], Some(&[3])), 0);
        assert_eq!(code(&[fixed], &[0], &[2], Some(&[4])), NcError::Edge.code());
        assert_eq!(code(&[fixed], &[9], &[9], Some(&[0])), NcError::Stride.code());
        assert_eq!(code(&[grown, fixed], &[3, 5], &[3, 1], None), NcError::InvalidCoords.code());
        assert_eq!(code(&[grown, fixed], &[3, 0], &[4, 9], None), NcError::Edge.code());
        assert_eq!(code(&[], &[], &[], None), 0);
    }

    #[test]
    fn what_leaves_the_variable_is_said() {
        let axes = [Axis { extent: 4, unlimited: None }, Axis { extent: 2, unlimited: Some(6) }];
        let said = |start: &[usize], count: &[usize], stride: Option<&[isize]>| {
            check(&axes, &Hyperslab { start, count, stride }).unwrap_err().to_string()
        };
        let edge = said(&[0, 3], &[1, 4], None);
        assert_eq!(edge, "start 3 + count 4 is beyond the end of dimension 1 of length 6");
        assert_eq!(said(&[4, 0], &[1, 1], None), "start 4 is outside dimension 0 of length 4");
        let stride = said(&[0, 0], &[1, 1], Some(&[1, -2]));
        assert_eq!(stride, "stride -2 in dimension 1 is out of range: expected at least 1");
        let strided = said(&[1, 0], &[2, 1], Some(&[3, 1]));
        assert_eq!(
            strided,
            "start 1 + count 2 at stride 3 is beyond the end of dimension 0 of length 4"
        );
        assert!(said(&[0], &[1], None).contains("fewer numbers"));
    }

    #[test]
    fn what_exists() {
        let grown = Axis { extent: 5, unlimited: Some(9) };
        let slab = |start, count, stride| Hyperslab { start, count, stride };
        assert!(exist(&[grown], &slab(&[0], &[5], None)));
        assert!(!exist(&[grown], &slab(&[1], &[4], Some(&[2]))));
        assert_eq!(existing(&[grown], &slab(&[1], &[4], Some(&[2]))), [2]);
        assert_eq!(existing(&[grown], &slab(&[7], &[2], None)), [0]);
    }
}
