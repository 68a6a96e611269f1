//! Which elements may be put, and how variables and dimensions grow with a put.

use zonda_model::{Hyperslab, NcError, VarId};
use zonda_slab::Order;

use super::store::VarStore;
use crate::model::{GroupId, Model};
use crate::select::{self, SelectionMisfit};

/// Checks strides, then axis by axis the first and the last element, as the reference does. `fixed`
/// has the length of each axis that cannot grow. Gives the hyperslab with no more than its rank.
#[inline]
pub(super) fn check<'s>(
    fixed: &[Option<u64>],
    slab: &Hyperslab<'s>,
) -> Result<Hyperslab<'s>, SelectionMisfit> {
    let slab = select::ranked(slab, fixed.len())?;
    let len = |at: usize| fixed.get(at).copied().flatten();
    let inside = slab.each_axis(Order::Up, |at, axis| match len(at) {
        Some(len) => {
            axis.start_and_first_within(len)?;
            axis.last_within(len.min(MOST))
        }
        None => {
            axis.start_within(MOST - 1)?;
            axis.last_within(MOST)
        }
    });
    match inside {
        Ok(()) => Ok(slab),
        Err(zonda_slab::AxisOutOfBounds { axis, why }) => {
            let len = len(axis);
            let code = if len.is_some() { why.into() } else { NcError::HdfErr };
            Err(SelectionMisfit::new(code, &slab, axis, len))
        }
    }
}

/// More than the length of any dimension.
pub(super) const MOST: u64 = i64::MAX as u64;

/// Makes a variable, and the dimensions it has, as long as a put needs them.
#[inline]
pub(super) fn grow(
    model: &mut Model,
    group: GroupId,
    id: VarId,
    store: &mut VarStore,
    slab: &Hyperslab<'_>,
) {
    for (axis, len) in store.fixed.iter().enumerate() {
        if len.is_none() {
            store.is_changed |= grow_along(model, group, id, axis, slab);
        }
    }
}

/// Makes a variable and its dimension as long as a put needs them along one axis, in the model. Whether the variable was
/// shorter.
#[inline]
pub(super) fn grow_along(
    model: &mut Model,
    group: GroupId,
    id: VarId,
    axis: usize,
    slab: &Hyperslab<'_>,
) -> bool {
    let along = slab.axis(axis);
    let need = along.end().max(along.start.saturating_add(1));
    grow_axis(model, group, id, axis, need)
}

/// Makes the variable, and the dimensions it has, as long as `extent` where they can grow.
pub(super) fn to(
    model: &mut Model,
    group: GroupId,
    id: VarId,
    store: &mut VarStore,
    extent: &[u64],
) {
    for ((axis, len), &need) in store.fixed.iter().enumerate().zip(extent) {
        if len.is_none() {
            store.is_changed |= grow_axis(model, group, id, axis, need);
        }
    }
}

/// Whether the variable was shorter along this axis.
#[inline]
fn grow_axis(model: &mut Model, group: GroupId, id: VarId, axis: usize, need: u64) -> bool {
    let Some(extent) = model.extent_of(group, id, axis).filter(|extent| **extent < need) else {
        return false;
    };
    *extent = need;
    if let Some(dim) = model.dim_of_axis(group, id, axis) {
        dim.len = dim.len.max(need);
    }
    true
}

impl Model {
    fn extent_of(&mut self, group: GroupId, var: VarId, axis: usize) -> Option<&mut u64> {
        let vars = &mut self.group_mut(group)?.vars;
        vars.get_mut(usize::try_from(var.0).ok()?)?.extent.get_mut(axis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(
        fixed: &[Option<u64>],
        start: &[usize],
        count: &[usize],
        stride: Option<&[isize]>,
    ) -> i32 {
        check(fixed, &Hyperslab { start, count, stride })
            .map_or_else(|misfit| misfit.code.code(), |_| 0)
    }

    #[test]
    fn what_may_be_put() {
        let (fixed, grows) = (Some(4), None);
        assert_eq!(code(&[fixed], &[0], &[4], None), 0);
        assert_eq!(code(&[fixed], &[4], &[0], None), 0);
        assert_eq!(code(&[fixed], &[4], &[1], None), NcError::InvalidCoords.code());
        assert_eq!(code(&[fixed], &[1], &[4], None), NcError::Edge.code());
        assert_eq!(code(&[fixed], &[0], &[2], Some(&[4])), NcError::Edge.code());
        assert_eq!(code(&[fixed], &[9], &[9], Some(&[0])), NcError::Stride.code());
        assert_eq!(code(&[grows, fixed], &[1 << 40, 0], &[9, 4], None), 0);
        assert_eq!(code(&[grows, fixed], &[1 << 40, 3], &[9, 2], None), NcError::Edge.code());
        assert_eq!(code(&[grows], &[usize::MAX], &[1], None), NcError::HdfErr.code());
        assert_eq!(code(&[], &[], &[], None), 0);
    }
}
