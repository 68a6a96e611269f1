//! Puts that all ranks made together and that may not be in the file on all ranks. Each rank has the same list.

use zonda_format::VarRef;

use crate::tuning::MOST_UNSETTLED;

/// Dimensions of which ranks tell each other where their puts begin.
pub(crate) const BOUNDED: usize = 4;

/// The box around what all ranks put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PutBounds {
    pub(crate) var: VarRef,
    /// Where it begins and ends, along the first dimensions of the variable.
    pub(crate) axes: [(u64, u64); BOUNDED],
    /// How many of these the variable has.
    pub(crate) n_axes: usize,
}

impl PutBounds {
    pub(crate) fn is_empty(&self) -> bool {
        self.axes.iter().take(self.n_axes).any(|(begin, end)| begin >= end)
    }

    fn meets(&self, other: &PutBounds) -> bool {
        let both = self.axes.iter().zip(&other.axes).take(self.n_axes);
        self.var == other.var
            && both.into_iter().all(|(one, other)| one.0 < other.1 && other.0 < one.1)
    }
}

/// The list.
#[derive(Debug, Default)]
pub(crate) struct UnsettledPuts(Vec<(u64, PutBounds)>);

impl UnsettledPuts {
    /// All puts before one with this number are in the file.
    pub(crate) fn settled_before(&mut self, number: u64) {
        self.0.retain(|(of, _)| *of >= number);
    }

    pub(crate) fn add(&mut self, number: u64, bounds: PutBounds) {
        self.0.push((number, bounds));
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether a put has to come after one of these.
    pub(crate) fn keeps_waiting(&self, put: &PutBounds) -> bool {
        self.0.len() >= MOST_UNSETTLED || self.0.iter().any(|(_, before)| before.meets(put))
    }

    /// Whether there are puts to a variable, or to any.
    pub(crate) fn has_any(&self, of: Option<VarRef>) -> bool {
        self.0.iter().any(|(_, put)| of.is_none_or(|var| put.var == var))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonda_model::VarId;

    fn bounds(var: i32, axes: &[(u64, u64)]) -> PutBounds {
        let mut all = [(0, 0); BOUNDED];
        all.iter_mut().zip(axes).for_each(|(to, from)| *to = *from);
        PutBounds { var: VarRef::from(VarId(var)), axes: all, n_axes: axes.len().min(BOUNDED) }
    }

    #[test]
    fn puts_wait_for_those_whose_box_they_meet() {
        let mut list = UnsettledPuts::default();
        list.add(3, bounds(0, &[(4, 5), (0, 10)]));
        list.add(4, bounds(1, &[]));
        assert!(list.keeps_waiting(&bounds(0, &[(4, 6), (9, 12)])));
        assert!(!list.keeps_waiting(&bounds(0, &[(4, 6), (10, 12)])));
        assert!(!list.keeps_waiting(&bounds(0, &[(5, 6), (0, 10)])));
        assert!(!list.keeps_waiting(&bounds(2, &[(4, 5), (0, 10)])));
        // A scalar has one element.
        assert!(list.keeps_waiting(&bounds(1, &[])));
        assert!(!bounds(1, &[]).is_empty() && bounds(0, &[(4, 5), (3, 3)]).is_empty());
        list.settled_before(4);
        assert!(!list.keeps_waiting(&bounds(0, &[(4, 5), (0, 10)])));
        assert!(list.has_any(None) && !list.has_any(Some(VarRef::from(VarId(0)))));
        list.settled_before(5);
        assert!(!list.has_any(None));
    }

    #[test]
    fn the_list_has_an_end() {
        let mut list = UnsettledPuts::default();
        (0..MOST_UNSETTLED as u64).for_each(|n| list.add(n, bounds(0, &[(n, n + 1)])));
        assert!(list.keeps_waiting(&bounds(7, &[(0, 1)])));
    }
}
