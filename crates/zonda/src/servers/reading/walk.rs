//! Where a client goes through a variable: which gets come next.

use zonda_served::Call;

/// The gets of one client to one variable.
#[derive(Debug, Default)]
pub(super) struct Walk {
    last: Option<Call>,
    /// How far the last one was from the one before, and how often it was so far.
    step: usize,
    n_alike: u32,
    expected: Vec<Call>,
}

/// What follows from a get.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outlook {
    /// Gets that are likely to come, the next one first.
    pub(super) ahead: Vec<Call>,
    /// Gets that were expected, and will not come.
    pub(super) given_up: Vec<Call>,
}

/// Most gets that are made ahead.
const MOST_AHEAD: usize = 2;

impl Walk {
    /// Notes a get. One that begins where the last one ended makes the next one likely, and so does one that is as far from the last as that was from the one
    /// before; after several such, the next two.
    pub(super) fn note(&mut self, call: &Call) -> Outlook {
        let step = self.last.as_ref().and_then(|last| step(last, call));
        let (step, is_adjacent) = step.unwrap_or_default();
        self.n_alike = match step {
            0 => 0,
            step if step == self.step => self.n_alike.saturating_add(1),
            _ => 1,
        };
        self.step = step;
        let n = match self.n_alike {
            1 if is_adjacent => 1,
            0 | 1 => 0,
            _ => MOST_AHEAD,
        };
        let ahead: Vec<Call> = (1..=n).map_while(|n| further(call, step.checked_mul(n)?)).collect();
        let before = std::mem::replace(&mut self.expected, ahead.clone());
        let given_up = before.into_iter().filter(|one| one != call && !ahead.contains(one));
        let given_up = given_up.collect();
        self.last = Some(call.clone());
        Outlook { ahead, given_up }
    }

    /// Gets that were expected, of a client that makes no more.
    pub(super) fn into_expected(self) -> Vec<Call> {
        self.expected
    }
}

fn step(last: &Call, call: &Call) -> Option<(usize, bool)> {
    match (last, call) {
        (Call::Get { var: v, slab: s, mem: m }, Call::Get { var, slab, mem })
            if (v, m) == (var, mem) =>
        {
            slab.step_from(s)
        }
        _ => None,
    }
}

fn further(call: &Call, step: usize) -> Option<Call> {
    let Call::Get { var, slab, mem } = call else { return None };
    Some(Call::Get { var: *var, slab: slab.further(step)?, mem: *mem })
}

#[cfg(test)]
mod tests {
    use zonda_format::{GroupId, VarRef};
    use zonda_model::{Hyperslab, VarId};
    use zonda_served::OwnedSlab;

    use super::*;

    fn get(first: usize, n: usize) -> Call {
        let var = VarRef { group: GroupId::ROOT, var: VarId(0) };
        let slab = Hyperslab { start: &[first, 5], count: &[n, 7], stride: None };
        Call::Get { var, slab: OwnedSlab::of(&slab), mem: None }
    }

    #[test]
    fn what_comes_next() {
        let mut walk = Walk::default();
        let mut note = |first, n| walk.note(&get(first, n));
        assert_eq!(note(0, 1), Outlook::default());
        assert_eq!(note(1, 1), Outlook { ahead: vec![get(2, 1)], given_up: Vec::new() });
        let two = vec![get(3, 1), get(4, 1)];
        assert_eq!(note(2, 1), Outlook { ahead: two.clone(), given_up: Vec::new() });
        // Elsewhere.
        assert_eq!(note(50, 1), Outlook { ahead: Vec::new(), given_up: two });
        // Every fourth.
        assert_eq!(note(54, 1), Outlook::default());
        assert_eq!(note(58, 1).ahead, vec![get(62, 1), get(66, 1)]);
        // The same again, another length, backwards.
        assert_eq!(note(58, 1).given_up, vec![get(62, 1), get(66, 1)]);
        assert_eq!(note(59, 3), Outlook::default());
        assert_eq!(note(62, 3).ahead, vec![get(65, 3)]);
        assert_eq!(note(59, 3), Outlook { ahead: Vec::new(), given_up: vec![get(65, 3)] });
    }
}
