//! Do the boxes that ranks put cover a new part of a variable, each element once? Then it need not be filled before.
//!
//! Nobody looks at all boxes. A box of elements is the polynomial that is the sum of x^i y^j ... over its elements, which is a product of geometric
//! series; boxes cover a region once if their polynomials add up to that of the region. Each rank evaluates its own at the same few
//! places, modulo a prime, and one reduction adds them up. Polynomials that differ agree in one place with a probability of their
//! degree by the prime (Schwartz and Zippel), so below 10^-9 in all of them, as the lengths are bounded.

use zonda_slab::Hyperslab;

/// 2^31 - 1: sums of as many numbers as there can be ranks fit 64 bits.
const PRIME: u64 = (1 << 31) - 1;

/// How many places.
pub(crate) const PLACES: usize = 4;

/// Lengths up to which the probability holds.
const MOST: u64 = 1 << 22;

/// The values of the polynomial of what of a put lies in a region, also where it leaves out elements; elements are counted from the
/// beginning of the region.
pub(crate) fn values_within(slab: &Hyperslab<'_>, region: &ElementBox) -> Option<[u64; PLACES]> {
    if region.iter().any(|&(begin, end)| end.saturating_sub(begin) > MOST) {
        return None;
    }
    let mut values = [1; PLACES];
    for (place, value) in values.iter_mut().enumerate() {
        for (axis, &(begin, end)) in region.iter().enumerate() {
            let of = slab.axis(axis);
            let step = u64::try_from(slab.stride_of(axis)).ok().filter(|&step| step > 0)?;
            let step = if of.count <= 1 { 1 } else { step };
            let before = begin.saturating_sub(of.start).div_ceil(step).min(of.count);
            let behind = end.saturating_sub(of.start).div_ceil(step).min(of.count).max(before);
            if before == behind {
                return Some([0; PLACES]);
            }
            let x = place_of(place, axis);
            let first = of.start.saturating_add(before.saturating_mul(step)).saturating_sub(begin);
            let (first, ratio) = (power(x, first), power(x, step));
            let series = match ratio {
                1 => (behind - before) % PRIME,
                _ => (power(ratio, behind - before) + PRIME - 1) * inverse(ratio - 1) % PRIME,
            };
            *value = *value * (first * series % PRIME) % PRIME;
        }
    }
    Some(values)
}

/// A box of elements: where it begins and ends along each dimension.
pub(crate) type ElementBox = Vec<(u64, u64)>;

/// The values of the polynomial of a box; `None` where it is too long for them to say much.
fn values(of: &ElementBox) -> Option<[u64; PLACES]> {
    if of.iter().any(|&(_, end)| end > MOST) {
        return None;
    }
    let mut values = [1; PLACES];
    for (place, value) in values.iter_mut().enumerate() {
        for (axis, &(first, end)) in of.iter().enumerate() {
            let x = place_of(place, axis);
            // The sum of x^i from `first` to `end`, the last left out.
            let series = (power(x, end) + PRIME - power(x, first)) % PRIME;
            *value = *value * (series * inverse(x - 1) % PRIME) % PRIME;
        }
    }
    Some(values)
}

/// Whether boxes whose values add up to `sum` cover the region once.
fn covers(region: &ElementBox, sum: [u64; PLACES]) -> bool {
    values(region) == Some(sum.map(|value| value % PRIME))
}

/// Whether puts of which [`values_within`] add up to `sum` cover the region once.
pub(crate) fn parts_cover(region: &ElementBox, sum: [u64; PLACES]) -> bool {
    covers(&region.iter().map(|&(begin, end)| (0, end.saturating_sub(begin))).collect(), sum)
}

/// The value of a variable at a place: some number from 2 on that has nothing to do with the others.
fn place_of(place: usize, axis: usize) -> u64 {
    let mut seed = (place as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (axis as u64 + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    seed = (seed ^ (seed >> 30)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (seed ^ (seed >> 31)) % (PRIME - 2) + 2
}

fn power(of: u64, mut exponent: u64) -> u64 {
    let (mut result, mut square) = (1, of % PRIME);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * square % PRIME;
        }
        square = square * square % PRIME;
        exponent >>= 1;
    }
    result
}

fn inverse(of: u64) -> u64 {
    power(of, PRIME - 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(boxes: &[ElementBox]) -> [u64; PLACES] {
        let mut sum = [0u64; PLACES];
        for one in boxes {
            let values = values(one).unwrap();
            sum.iter_mut().zip(values).for_each(|(sum, value)| *sum = sum.wrapping_add(value));
        }
        sum
    }

    #[test]
    fn what_covers_is_told_from_what_does_not() {
        let region: ElementBox = vec![(7, 8), (0, 10), (0, 12)];
        let of = |rows: (u64, u64), columns: (u64, u64)| vec![(7, 8), rows, columns];
        let whole =
            [of((0, 4), (0, 12)), of((4, 10), (0, 5)), of((4, 10), (5, 12)), of((3, 3), (0, 9))];
        assert!(covers(&region, sum(&whole)));
        assert!(!covers(&region, sum(&whole[..2])));
        // As many elements, one twice and one never.
        let twice = [of((0, 4), (0, 12)), of((3, 9), (0, 12))];
        assert!(!covers(&region, sum(&twice)));
        assert!(!covers(&region, sum(&[whole.to_vec(), vec![of((1, 2), (3, 4))]].concat())));
        assert!(!covers(&vec![(0, MOST + 1)], sum(&[])));
    }

    #[test]
    fn what_of_a_put_lies_in_a_region() {
        let region: ElementBox = vec![(2, 4), (0, 10)];
        let slab = |stride| Hyperslab { start: &[3, 1], count: &[5, 4], stride };
        let every_other = |first| Hyperslab {
            start: if first == 0 { &[2, 0] } else { &[2, 1] },
            count: &[9, 5],
            stride: Some(&[1, 2]),
        };
        let halves = [0, 1].map(|first| values_within(&every_other(first), &region).unwrap());
        let both = [0, 1, 2, 3].map(|place| halves[0][place] + halves[1][place]);
        assert!(parts_cover(&region, both));
        assert!(!parts_cover(&region, halves[0]));
        let whole = Hyperslab { start: &[0, 0], count: &[9, 99], stride: None };
        assert!(parts_cover(&region, values_within(&whole, &region).unwrap()));
        assert!(!parts_cover(&region, values_within(&slab(None), &region).unwrap()));
        let before = Hyperslab { start: &[0, 1], count: &[1, 4], stride: None };
        assert_eq!(values_within(&before, &region), Some([0; PLACES]));
    }
}
