//! Is this hyperslab inside the variable? The checks of the reference, in its order.

use zonda_model::{Hyperslab, VarId};

use crate::error::{ClassicError, shown};
use crate::header::{Header, Var, Version};

/// Which way data goes: a put may go beyond the records there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Get {
        /// A reader and a writer get different codes for records that do not exist.
        writable: bool,
    },
    Put,
}

/// Largest record index the reference takes, in any format.
const MAX_RECORD: usize = 0xFFFF_FFFF;
/// First stride that the reference refuses.
const STRIDE_LIMIT: usize = 0x7FFF_FFFF;

/// The variable that a transfer means.
pub(crate) fn transfer_var(header: &Header, id: VarId) -> Result<&Var, ClassicError> {
    if id == VarId::GLOBAL { Err(ClassicError::GlobalNotVar) } else { header.var(id) }
}

struct Axis<'a> {
    var: &'a Var,
    axis: usize,
    start: usize,
    count: usize,
    len: u64,
}

impl Axis<'_> {
    fn invalid_coords(&self) -> ClassicError {
        ClassicError::InvalidCoords {
            variable: shown(&self.var.name),
            axis: self.axis,
            start: self.start,
            len: self.len,
        }
    }

    fn edge(&self) -> ClassicError {
        ClassicError::Edge {
            variable: shown(&self.var.name),
            axis: self.axis,
            start: self.start,
            count: self.count,
            len: self.len,
        }
    }

    fn end(&self) -> u64 {
        (self.start as u64).saturating_add(self.count as u64)
    }
}

fn axes<'a>(
    var: &'a Var,
    slab: &Hyperslab<'a>,
    n_records: u64,
) -> impl Iterator<Item = (bool, Axis<'a>)> {
    let (start, count) = (slab.start, slab.count);
    let is_record = var.is_record();
    var.shape.iter().zip(start).zip(count).enumerate().map(
        move |(axis, ((&len, &start), &count))| {
            let record = axis == 0 && is_record;
            let len = if record { n_records } else { len };
            (record, Axis { var, axis, start, count, len })
        },
    )
}

/// Rank of the arguments against rank of the variable: a fault of the calling layer.
pub(crate) fn check_rank(var: &Var, slab: &Hyperslab<'_>) -> Result<(), ClassicError> {
    let rank = var.shape.len();
    let stride_fits = slab.stride.is_none_or(|stride| stride.len() >= rank);
    if slab.start.len() >= rank && slab.count.len() >= rank && stride_fits {
        Ok(())
    } else {
        let what = "start, count or stride is shorter than the variable's rank";
        Err(ClassicError::InvalidArgument { what })
    }
}

/// The checks of `nc_get_vara` and `nc_put_vara`: first all starts, then all edges.
pub(crate) fn check_vara(
    var: &Var,
    slab: &Hyperslab<'_>,
    direction: Direction,
    n_records: u64,
) -> Result<(), ClassicError> {
    for (record, axis) in axes(var, slab, n_records) {
        if record {
            let reader_beyond =
                direction == Direction::Get { writable: false } && axis.start as u64 > n_records;
            if axis.start > MAX_RECORD || reader_beyond {
                return Err(axis.invalid_coords());
            }
        } else if axis.start as u64 > axis.len {
            return Err(axis.invalid_coords());
        }
    }
    for (record, axis) in axes(var, slab, n_records) {
        let at_end = axis.start as u64 == axis.len && axis.count > 0;
        if record {
            if at_end && direction == (Direction::Get { writable: false }) {
                return Err(axis.invalid_coords());
            }
        } else if at_end {
            return Err(axis.invalid_coords());
        } else if axis.end() > axis.len {
            return Err(axis.edge());
        }
    }
    if direction != Direction::Put
        && let Some((true, axis)) = axes(var, slab, n_records).next()
        && axis.end() > n_records
    {
        return Err(axis.edge());
    }
    Ok(())
}

/// The checks of `nc_get_vars` and `nc_put_vars`, dimension by dimension. They look at `start +
/// count` as if the stride were one; [`check_last`] looks at the last element.
pub(crate) fn check_vars(
    var: &Var,
    slab: &Hyperslab<'_>,
    stride: &[isize],
    direction: Direction,
    n_records: u64,
) -> Result<(), ClassicError> {
    for ((record, axis), &stride) in axes(var, slab, n_records).zip(stride) {
        let open_ended = record && direction == Direction::Put;
        if !open_ended {
            let start = axis.start as u64;
            if start > axis.len || (start == axis.len && axis.count > 0) {
                return Err(axis.invalid_coords());
            }
            if axis.end() > axis.len {
                return Err(axis.edge());
            }
        }
        if usize::try_from(stride).is_ok_and(|stride| stride > 0 && stride < STRIDE_LIMIT) {
            continue;
        }
        return Err(ClassicError::BadStride {
            variable: shown(&var.name),
            axis: axis.axis,
            stride,
        });
    }
    Ok(())
}

/// Index of the last element selected in a dimension.
pub(crate) fn last_index(start: usize, count: usize, stride: isize) -> Option<u64> {
    let steps = (count as u64).checked_sub(1)?.checked_mul(u64::try_from(stride).ok()?)?;
    steps.checked_add(start as u64)
}

/// Where strides lead: the last element of each dimension must exist, too.
pub(crate) fn check_last(
    var: &Var,
    slab: &Hyperslab<'_>,
    stride: &[isize],
    direction: Direction,
    n_records: u64,
) -> Result<(), ClassicError> {
    // The reference meets the last element last, and looks at its record only after the rest.
    let mut beyond_records = None;
    for ((record, axis), &stride) in axes(var, slab, n_records).zip(stride) {
        let Some(last) = last_index(axis.start, axis.count, stride) else {
            return Err(axis.invalid_coords());
        };
        if record && last > MAX_RECORD as u64 {
            return Err(axis.invalid_coords());
        }
        match direction {
            Direction::Put if record => {}
            Direction::Get { writable: true } if record => {
                beyond_records = (last >= axis.len).then(|| axis.edge());
            }
            _ if last >= axis.len => return Err(axis.invalid_coords()),
            _ => {}
        }
    }
    beyond_records.map_or(Ok(()), Err)
}

/// The checks that follow [`check_vars`]: with strides of one those of `nc_*_vara`, else those on the
/// last elements.
pub(crate) fn check_last_or_vara(
    var: &Var,
    slab: &Hyperslab<'_>,
    stride: &[isize],
    direction: Direction,
    n_records: u64,
) -> Result<(), ClassicError> {
    if stride.iter().take(var.shape.len()).all(|&stride| stride == 1) {
        check_vara(var, slab, direction, n_records)
    } else {
        check_last(var, slab, stride, direction, n_records)
    }
}

/// A file of `n_records` records must be one that the format can count and address.
pub(crate) fn check_n_records(
    header: &Header,
    var: &Var,
    slab: &Hyperslab<'_>,
    n_records: u64,
) -> Result<(), ClassicError> {
    // All ones would be read as "streaming".
    let limit = if header.version == Version::Cdf5 { u64::MAX } else { u64::from(u32::MAX) };
    let end = n_records
        .checked_mul(header.layout.record_len)
        .and_then(|bytes| bytes.checked_add(header.layout.begin_rec))
        .filter(|&end| i64::try_from(end).is_ok());
    if n_records < limit && end.is_some() {
        return Ok(());
    }
    match axes(var, slab, n_records).next() {
        Some((_, axis)) => Err(axis.invalid_coords()),
        None => Ok(()),
    }
}
