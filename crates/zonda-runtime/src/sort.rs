//! Sorting where it is done once for a call or a file, or of few items: small code for all types together.
//!
//! Each type that std sorts, in each crate, is 5 to 8 kB of code. Here a type has a comparison and a swap, which one function for all calls by
//! pointers (docs/dev/sizes.md). What is sorted for each call of many elements stays with std.

use std::cmp::Ordering;

/// Lists that are no longer are sorted in place.
const FEW: usize = 20;

/// The order of lists that are no longer is found on the stack.
const SOME: usize = 128;

/// Sorts by a comparison. What is equal keeps its order.
pub fn sort_by<T>(items: &mut [T], compare: impl FnMut(&T, &T) -> Ordering) {
    if items.len() > 1 {
        sort_list(&mut Items { items, compare });
    }
}

/// Sorts by a key.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], mut key: impl FnMut(&T) -> K) {
    sort_by(items, |a, b| key(a).cmp(&key(b)));
}

/// Sorts by the order of the items themselves.
pub fn sort<T: Ord>(items: &mut [T]) {
    sort_by(items, T::cmp);
}

/// What is sorted, whatever its type.
trait List {
    fn len(&self) -> usize;
    fn compare(&mut self, one: usize, other: usize) -> Ordering;
    fn swap(&mut self, one: usize, other: usize);
}

struct Items<'a, T, C> {
    items: &'a mut [T],
    compare: C,
}

impl<T, C: FnMut(&T, &T) -> Ordering> List for Items<'_, T, C> {
    fn len(&self) -> usize {
        self.items.len()
    }

    fn compare(&mut self, one: usize, other: usize) -> Ordering {
        (self.compare)(&self.items[one], &self.items[other])
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.items.swap(one, other);
    }
}

#[inline(never)]
fn sort_list(list: &mut dyn List) {
    let len = list.len();
    if len <= FEW {
        for end in 1..len {
            let mut at = end;
            while at > 0 && list.compare(at - 1, at) == Ordering::Greater {
                list.swap(at - 1, at);
                at -= 1;
            }
        }
        return;
    }
    // Most lists of a file are in order already.
    if (1..len).all(|next| list.compare(next - 1, next) != Ordering::Greater) {
        return;
    }
    let (mut some, mut all) = ([0; SOME], Vec::new());
    let order = match some.get_mut(..len) {
        Some(some) => some,
        None => {
            all.resize(len, 0);
            &mut all[..]
        }
    };
    order.iter_mut().enumerate().for_each(|(number, place)| *place = number);
    order.sort_unstable_by(|a, b| list.compare(*a, *b).then(a.cmp(b)));
    // Item `order[n]` belongs at place `n`: once around each circle.
    for first in 0..len {
        let mut to = first;
        loop {
            let from = std::mem::replace(&mut order[to], to);
            if from == first {
                break;
            }
            list.swap(to, from);
            to = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random.
    fn numbers(len: usize, below: u64) -> Vec<(u64, usize)> {
        let mut state = 7_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        (0..len).map(|place| (next(), place)).collect()
    }

    #[test]
    fn lists_of_any_length_are_as_std_sorts_them() {
        for len in (0..50).chain([127, 128, 129, 1000]) {
            for below in [1, 3, 1 << 30] {
                let (mut ours, mut theirs) = (numbers(len, below), numbers(len, below));
                sort_by_key(&mut ours, |item| item.0);
                theirs.sort_by_key(|item| item.0);
                assert_eq!(ours, theirs, "{len} below {below}");
                sort_by(&mut ours, |a, b| b.cmp(a));
                theirs.sort_by(|a, b| b.cmp(a));
                assert_eq!(ours, theirs, "{len} below {below}");
                sort(&mut ours);
                theirs.sort();
                assert_eq!(ours, theirs, "{len} below {below}");
            }
        }
    }
}
