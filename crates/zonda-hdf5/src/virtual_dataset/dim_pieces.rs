//! One dimension of a request, of the target and of the source, brought together.

use super::request::RequestDim;
use crate::selection::HyperslabDim;

/// A run of elements in one dimension that has equal steps on both sides.
#[derive(Clone, Copy, Debug)]
pub(super) struct DimPiece {
    /// The first element in the source.
    pub(super) source: u64,
    pub(super) source_step: u64,
    /// The first element in the result of the request.
    pub(super) target: u64,
    pub(super) target_step: u64,
    pub(super) count: u64,
}

/// The elements of one dimension that are selected, requested and inside the source's extent, cut
/// where steps change. `len` elements of the dimension take part.
pub(super) fn dim_pieces(
    target: &HyperslabDim,
    source: &HyperslabDim,
    len: u64,
    source_extent: u64,
    request: RequestDim,
) -> Vec<DimPiece> {
    let mut out = Vec::new();
    let end = len.min(target.before(request.end())).min(source.before(source_extent));
    let mut i = target.before(request.start);
    while i < end {
        // `count` elements from `i` on have these steps.
        let left = end.saturating_sub(i);
        let (count, target_step, source_step) = match (target.step(), source.step()) {
            (Some(target_step), Some(source_step)) => (left, target_step, source_step),
            _ => (target.contiguous(i).min(source.contiguous(i)).clamp(1, left), 1, 1),
        };
        let (at, from) = (target.at(i), source.at(i));
        let last = at.saturating_add(count.saturating_sub(1).saturating_mul(target_step));
        let first = request.next(at);
        if first > last {
            i = i.saturating_add(count).max(target.before(first));
            continue;
        }
        let target_step = target_step.max(1);
        // One in `period` of the requested elements is selected.
        let period = target_step.checked_div(gcd(target_step, request.stride)).unwrap_or(1);
        let selected = first_selected((first, last), at, target_step, request.stride, period);
        if let Some(first) = selected
            && let Some(place) = request.place(first)
        {
            let stride = request.stride.saturating_mul(period);
            let n = last.saturating_sub(first).checked_div(stride).unwrap_or(0);
            let steps = first.saturating_sub(at).checked_div(target_step).unwrap_or(0);
            let jump = stride.checked_div(target_step).unwrap_or(1);
            out.push(DimPiece {
                source: from.saturating_add(steps.saturating_mul(source_step)),
                source_step: jump.saturating_mul(source_step),
                target: place,
                target_step: period,
                count: n.saturating_add(1),
            });
        }
        i = i.saturating_add(count);
    }
    out
}

/// The first of the requested coordinates `first`, `first + stride` and so on up to `last` that is a
/// multiple of `step` away from `at`; `None` where none of `period` is.
fn first_selected(
    (mut first, last): (u64, u64),
    at: u64,
    step: u64,
    stride: u64,
    period: u64,
) -> Option<u64> {
    let mut tries = 0u64;
    while tries < period && first <= last {
        if first.saturating_sub(at).checked_rem(step) == Some(0) {
            return Some(first);
        }
        first = first.saturating_add(stride);
        tries = tries.saturating_add(1);
    }
    None
}

/// The greatest common divisor, at least 1.
fn gcd(mut a: u64, mut b: u64) -> u64 {
    while let Some(remainder) = a.checked_rem(b) {
        (a, b) = (b, remainder);
    }
    a.max(1)
}
