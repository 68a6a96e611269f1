//! From ranges that are wanted to requests: neighbours are joined, long ones are cut.

use std::ops::Range;

use super::tuning::{LEAST_PART_BYTES, MOST_PART_BYTES, MOST_REQUESTS};

/// What the planner knows of the way to the server and may spend.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlanTerms {
    /// The longest gap between two ranges that may be fetched with them.
    pub(super) gap: u64,
    /// Bytes of all gaps together that may be.
    pub(super) waste: u64,
}

/// Requests, and what of them nobody wants.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// First what is wanted first.
    pub(super) requests: Vec<Range<u64>>,
    /// Bytes of gaps.
    pub(super) wasted: u64,
}

impl Plan {
    /// Bytes of all requests.
    pub(super) fn bytes(&self) -> u64 {
        self.requests.iter().map(|range| range.end - range.start).sum()
    }
}

/// Plans requests for `wanted`, given in the order in which they will be read; they may overlap.
pub(super) fn plan(wanted: &[Range<u64>], terms: PlanTerms) -> Plan {
    let mut merged = merge(wanted);
    let wasted = join(&mut merged, terms);
    let total: u64 = merged.iter().map(|(range, _)| range.end - range.start).sum();
    zonda_runtime::sort::sort_by_key(&mut merged, |(_, order)| *order);
    let part = (total / (2 * MOST_REQUESTS as u64)).clamp(LEAST_PART_BYTES, MOST_PART_BYTES);
    let requests = merged.into_iter().flat_map(|(range, _)| cut(range, part)).collect();
    Plan { requests, wasted }
}

/// The ranges in order of their places, those that touch as one, each with its place among what is wanted.
fn merge(wanted: &[Range<u64>]) -> Vec<(Range<u64>, usize)> {
    let mut sorted: Vec<(Range<u64>, usize)> =
        wanted.iter().cloned().enumerate().map(|(order, range)| (range, order)).collect();
    sorted.retain(|(range, _)| range.start < range.end);
    zonda_runtime::sort::sort_by_key(&mut sorted, |(range, _)| range.start);
    let mut merged: Vec<(Range<u64>, usize)> = Vec::with_capacity(sorted.len());
    for (range, order) in sorted {
        match merged.last_mut() {
            Some((last, first)) if range.start <= last.end => {
                last.end = last.end.max(range.end);
                *first = order.min(*first);
            }
            _ => merged.push((range, order)),
        }
    }
    merged
}

/// Joins neighbours, those with the shortest gaps first, as long as the gaps may be fetched. Returns the bytes of gaps.
fn join(merged: &mut Vec<(Range<u64>, usize)>, terms: PlanTerms) -> u64 {
    let mut gaps: Vec<(u64, usize)> =
        merged.windows(2).enumerate().map(|(i, two)| (two[1].0.start - two[0].0.end, i)).collect();
    gaps.retain(|(gap, _)| *gap <= terms.gap);
    zonda_runtime::sort::sort(&mut gaps);
    let (mut wasted, mut is_joined) = (0u64, vec![false; merged.len()]);
    for (gap, i) in gaps {
        if wasted.saturating_add(gap) > terms.waste {
            break;
        }
        wasted += gap;
        is_joined[i + 1] = true;
    }
    let mut joined: Vec<(Range<u64>, usize)> = Vec::with_capacity(merged.len());
    for ((range, order), is_joined) in merged.drain(..).zip(is_joined) {
        match joined.last_mut().filter(|_| is_joined) {
            Some((last, first)) => {
                last.end = range.end;
                *first = order.min(*first);
            }
            None => joined.push((range, order)),
        }
    }
    *merged = joined;
    wasted
}

/// A range in parts of about `part` bytes, none of which is much shorter than the others.
fn cut(range: Range<u64>, part: u64) -> impl Iterator<Item = Range<u64>> {
    let len = range.end - range.start;
    let n = (len + part / 2).checked_div(part).unwrap_or(1).max(1);
    let each = len.div_ceil(n);
    (0..n).map(move |i| {
        let from = range.start + (i * each).min(len);
        from..range.start + ((i + 1) * each).min(len)
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::single_range_in_vec_init, reason = "lists of ranges, some of which have one")]

    use super::*;

    const NO_GAPS: PlanTerms = PlanTerms { gap: 0, waste: 0 };

    #[test]
    fn neighbours_are_joined_as_far_as_gaps_may_be_fetched() {
        let wanted = [0..10, 12..20, 1000..1010, 20..30, 25..40];
        assert_eq!(
            plan(&wanted, NO_GAPS),
            Plan { requests: vec![0..10, 12..40, 1000..1010], wasted: 0 }
        );
        assert_eq!(
            plan(&wanted, PlanTerms { gap: 100, waste: 100 }),
            Plan { requests: vec![0..40, 1000..1010], wasted: 2 }
        );
        assert_eq!(plan(&wanted, PlanTerms { gap: 5000, waste: 900 }).requests.len(), 2);
        assert_eq!(
            plan(&wanted, PlanTerms { gap: 5000, waste: 1000 }),
            Plan { requests: vec![0..1010], wasted: 962 }
        );
        assert_eq!(plan(&[], NO_GAPS), Plan { requests: vec![], wasted: 0 });
        assert_eq!(plan(&[5..5], NO_GAPS), Plan { requests: vec![], wasted: 0 });
    }

    #[test]
    fn what_is_wanted_first_comes_first() {
        assert_eq!(
            plan(&[900..910, 5..10, 400..410], NO_GAPS).requests,
            vec![900..910, 5..10, 400..410]
        );
        assert_eq!(plan(&[900..910, 5..10, 910..920], NO_GAPS).requests, vec![900..920, 5..10]);
    }

    #[test]
    fn long_ranges_are_cut_and_every_byte_is_in_one_request() {
        let mut random = fastrand::Rng::with_seed(27);
        for _ in 0..2000 {
            let wanted: Vec<Range<u64>> = (0..random.usize(0..20))
                .map(|_| {
                    let (from, len) = (random.u64(0..1 << 26), 1u64 << random.u32(0..26));
                    from..from + random.u64(0..len)
                })
                .collect();
            let terms = PlanTerms { gap: random.u64(0..1 << 20), waste: random.u64(0..1 << 22) };
            let Plan { mut requests, wasted } = plan(&wanted, terms);
            assert!(wasted <= terms.waste);
            assert!(requests.iter().all(|range| range.start < range.end
                && range.end - range.start <= MOST_PART_BYTES * 3 / 2));
            requests.sort_by_key(|range| range.start);
            assert!(
                requests.windows(2).all(|two| two[0].end <= two[1].start),
                "no byte is fetched twice"
            );
            for range in wanted.iter().filter(|range| !range.is_empty()) {
                let mut at = range.start;
                for request in &requests {
                    if request.start <= at {
                        at = at.max(request.end.min(range.end));
                    }
                }
                assert_eq!(at, range.end, "all of {range:?} is in requests");
            }
            let (total, wanted): (u64, u64) = (
                requests.iter().map(|r| r.end - r.start).sum(),
                merge(&wanted).iter().map(|(r, _)| r.end - r.start).sum(),
            );
            assert_eq!(total, wanted + wasted);
        }
    }
}
