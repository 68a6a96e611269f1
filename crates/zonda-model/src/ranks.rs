//! Numbers of the items of a list from which items are removed: the position of each among those
//! that are left.
//!
//! Attributes are numbered by their order, and one that is deleted gives its number to the next. To
//! move or to count all attributes behind it each time would take time with the square of their
//! number until the list is empty. Here each item keeps its *slot*, and a tree of counts
//! (Fenwick's) gives the slot of a number, and the number of a slot, in a logarithmic number of
//! steps.

/// Which slots of a list are still taken, in order.
#[derive(Clone, Debug, Default)]
pub struct SlotRanks {
    /// Node `i`, counted from 1, counts the items that are left in the `n` slots that end with it;
    /// `n` is the lowest bit of `i`.
    tree: Vec<u32>,
    n_left: usize,
}

impl SlotRanks {
    /// For a list of `n_slots` items of which none was removed.
    #[must_use]
    pub fn new(n_slots: usize) -> SlotRanks {
        let lowest = |node: usize| u32::try_from(node & node.wrapping_neg()).unwrap_or(u32::MAX);
        SlotRanks { tree: (1..=n_slots).map(lowest).collect(), n_left: n_slots }
    }

    /// Items left.
    #[must_use]
    pub fn len(&self) -> usize {
        self.n_left
    }

    /// Whether none is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.n_left == 0
    }

    /// Number of slots: those of removed items count.
    #[must_use]
    pub fn n_slots(&self) -> usize {
        self.tree.len()
    }

    /// Appends an item, in a slot behind the last.
    pub fn push(&mut self) {
        let node = self.tree.len() + 1;
        let first = node - (node & node.wrapping_neg());
        let before = self.before(node - 1) - self.before(first);
        self.tree.push(u32::try_from(before + 1).unwrap_or(u32::MAX));
        self.n_left += 1;
    }

    /// Removes the item with that number; gives its slot.
    pub fn remove(&mut self, number: usize) -> Option<usize> {
        let slot = self.slot(number)?;
        let mut node = slot + 1;
        while let Some(count) = self.tree.get_mut(node - 1) {
            *count -= 1;
            node += node & node.wrapping_neg();
        }
        self.n_left -= 1;
        Some(slot)
    }

    /// The slot of the item with that number.
    #[must_use]
    pub fn slot(&self, number: usize) -> Option<usize> {
        if number >= self.n_left {
            return None;
        }
        let (mut at, mut left) = (0, number);
        let mut step = self.tree.len().checked_ilog2().map_or(0, |log| 1usize << log);
        while step > 0 {
            let count = self.tree.get(at + step - 1).map(|&count| count as usize);
            if let Some(count) = count.filter(|&count| count <= left) {
                at += step;
                left -= count;
            }
            step /= 2;
        }
        Some(at)
    }

    /// The number of the item in a slot: how many are left before it.
    #[must_use]
    pub fn number(&self, slot: usize) -> usize {
        self.before(slot.min(self.tree.len()))
    }

    /// Items that are left in the first `n_slots` slots.
    fn before(&self, n_slots: usize) -> usize {
        let (mut node, mut sum) = (n_slots, 0);
        while node > 0 {
            sum += self.tree.get(node - 1).map_or(0, |&count| count as usize);
            node &= node - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_a_list_from_which_items_are_taken() {
        for n in [0usize, 1, 2, 3, 7, 8, 9, 100, 1000] {
            let mut ranks = SlotRanks::new(n);
            let mut list: Vec<usize> = (0..n).collect();
            let mut random = fastrand::Rng::with_seed(1);
            for step in 0..3 * n {
                if random.usize(..3) == 0 {
                    list.push(ranks.n_slots());
                    ranks.push();
                } else if !list.is_empty() {
                    let number = random.usize(..list.len());
                    assert_eq!(ranks.remove(number), Some(list.remove(number)), "{n} {step}");
                }
                assert_eq!((ranks.len(), ranks.is_empty()), (list.len(), list.is_empty()));
                if step % 17 == 0 {
                    for (number, &slot) in list.iter().enumerate() {
                        assert_eq!((ranks.slot(number), ranks.number(slot)), (Some(slot), number));
                    }
                }
                assert_eq!((ranks.slot(list.len()), ranks.remove(list.len())), (None, None));
            }
        }
    }
}
