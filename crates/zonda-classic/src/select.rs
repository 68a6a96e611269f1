//! Is this hyperslab inside the variable? The checks of the reference, in its order.

use zonda_model::{Hyperslab, VarId};
use zonda_slab::{Axis, AxisOutOfBounds, MAX_RECORD, Order, OutOfBounds, is_stride};

use crate::error::{ClassicError, shown};
use crate::header::{Header, Var, Version};

/// Direction of a transfer: a put may go beyond the last record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Get {
        /// A reader and a writer get different codes for records that do not exist.
        writable: bool,
    },
    Put,
}

/// The variable of a transfer.
pub(crate) fn transfer_var(header: &Header, id: VarId) -> Result<&Var, ClassicError> {
    if id == VarId::GLOBAL { Err(ClassicError::GlobalNotVar) } else { header.var(id) }
}

/// A selection of a variable, and how many records there are.
struct Selected<'a> {
    var: &'a Var,
    slab: &'a Hyperslab<'a>,
    n_records: u64,
}

impl Selected<'_> {
    fn is_record(&self, axis: usize) -> bool {
        axis == 0 && self.var.is_record()
    }

    fn len(&self, axis: usize) -> u64 {
        let len = self.var.shape.get(axis).copied().unwrap_or(0);
        if self.is_record(axis) { self.n_records } else { len }
    }

    #[cold]
    fn error(&self, AxisOutOfBounds { axis, why }: AxisOutOfBounds) -> ClassicError {
        let (variable, len) = (shown(&self.var.name), self.len(axis));
        let of = |list: &[usize]| list.get(axis).copied().unwrap_or(0);
        let start = of(self.slab.start);
        match why {
            OutOfBounds::AtStart => ClassicError::InvalidCoords { variable, axis, start, len },
            OutOfBounds::AtEnd => {
                let (count, stride) = (of(self.slab.count), self.slab.stride_of(axis));
                ClassicError::Edge { variable, axis, start, count, stride, len }
            }
            OutOfBounds::ByStride => {
                ClassicError::BadStride { variable, axis, stride: self.slab.stride_of(axis) }
            }
        }
    }
}

/// Rank of the arguments against rank of the variable: a fault of the calling layer. Gives the selection
/// with no more than the rank.
pub(crate) fn check_rank<'s>(
    var: &Var,
    slab: &Hyperslab<'s>,
) -> Result<Hyperslab<'s>, ClassicError> {
    let what = "start, count or stride is shorter than the variable's rank";
    slab.ranked(var.shape.len()).ok_or(ClassicError::InvalidArgument(what))
}

/// The checks of `nc_get_vara` and `nc_put_vara`: first all starts, then all edges, then that of the records.
pub(crate) fn check_vara(
    var: &Var,
    slab: &Hyperslab<'_>,
    direction: Direction,
    n_records: u64,
) -> Result<(), ClassicError> {
    let of = Selected { var, slab, n_records };
    let reads = direction == Direction::Get { writable: false };
    let starts = |at, axis: Axis| match of.is_record(at) {
        true if reads => axis.start_within(MAX_RECORD.min(n_records)),
        true => axis.start_within(MAX_RECORD),
        false => axis.start_within(of.len(at)),
    };
    let edges = |at, axis: Axis| match of.is_record(at) {
        true if reads => axis.first_within(n_records),
        true => Ok(()),
        false => axis.first_within(of.len(at)).and_then(|()| axis.count_within(of.len(at))),
    };
    let records = |at, axis: Axis| match of.is_record(at) {
        true => axis.count_within(n_records),
        false => Ok(()),
    };
    slab.each_axis(Order::Up, starts)
        .and_then(|()| slab.each_axis(Order::Up, edges))
        .and_then(|()| match direction {
            Direction::Put => Ok(()),
            Direction::Get { .. } => slab.each_axis(Order::Up, records),
        })
        .map_err(|misfit| of.error(misfit))
}

/// The checks of `nc_get_vars` and `nc_put_vars`, dimension by dimension. They look at `start +
/// count` as if the stride were one; [`check_last`] looks at the last element.
pub(crate) fn check_vars(
    var: &Var,
    slab: &Hyperslab<'_>,
    direction: Direction,
    n_records: u64,
) -> Result<(), ClassicError> {
    let of = Selected { var, slab, n_records };
    slab.each_axis(Order::Up, |at, axis| {
        if !(direction == Direction::Put && of.is_record(at)) {
            axis.start_and_first_within(of.len(at))?;
            axis.count_within(of.len(at))?;
        }
        if is_stride(slab.stride_of(at)) { Ok(()) } else { Err(OutOfBounds::ByStride) }
    })
    .map_err(|misfit| of.error(misfit))
}

/// Where strides lead: the last element of each dimension must exist, too.
fn check_last(
    var: &Var,
    slab: &Hyperslab<'_>,
    direction: Direction,
    n_records: u64,
) -> Result<(), ClassicError> {
    let of = Selected { var, slab, n_records };
    let writes = direction != Direction::Get { writable: false };
    let outside = |_| OutOfBounds::AtStart;
    slab.each_axis(Order::Up, |at, axis| {
        let len = of.len(at);
        match of.is_record(at) {
            true if writes => axis.last_within(MAX_RECORD + 1),
            true => axis.last_within(len.min(MAX_RECORD + 1)),
            false => axis.last_within(len),
        }
        .map_err(outside)
    })
    // The reference meets the last element last, and looks at its record only after the rest.
    .and_then(|()| match direction {
        Direction::Get { writable: true } => slab.each_axis(Order::Up, |at, axis| {
            if of.is_record(at) { axis.last_within(n_records) } else { Ok(()) }
        }),
        _ => Ok(()),
    })
    .map_err(|misfit| of.error(misfit))
}

/// The checks that follow [`check_vars`]: with strides of one those of `nc_*_vara`, else those on the
/// last elements.
pub(crate) fn check_last_or_vara(
    var: &Var,
    slab: &Hyperslab<'_>,
    direction: Direction,
    n_records: u64,
) -> Result<(), ClassicError> {
    if slab.is_unit() {
        check_vara(var, slab, direction, n_records)
    } else {
        check_last(var, slab, direction, n_records)
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
    if slab.count.is_empty() {
        return Ok(());
    }
    let misfit = AxisOutOfBounds { axis: 0, why: OutOfBounds::AtStart };
    Err(Selected { var, slab, n_records }.error(misfit))
}
