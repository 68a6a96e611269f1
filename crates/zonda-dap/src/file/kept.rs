//! Variables that are kept whole: small ones, and those that were read or will probably be read next. What nobody used longest goes first.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use zonda_runtime::lock::{Mutex, Rank};
use zonda_runtime::memory::{self, Holder, Kind};

use super::tuning::{KEPT_PART, LEAST_KEPT_BYTES, MOST_KEPT_BYTES};
use super::whole::Whole;

/// What a dataset keeps.
#[derive(Debug)]
pub(super) struct Kept {
    state: Mutex<State>,
    /// Bytes that may be kept, where the user says so.
    limit: Option<u64>,
}

#[derive(Debug, Default)]
struct State {
    vars: HashMap<usize, KeptVar>,
    /// Bytes of all of them, which the broker knows of.
    bytes: u64,
    /// Variables that a request under way brings besides the one that it was made for.
    coming: HashSet<usize>,
    /// The last variable that was read whole, and bytes of those before it that were read in their order.
    last: Option<usize>,
    in_order: u64,
}

#[derive(Debug)]
struct KeptVar {
    whole: Arc<Whole>,
    bytes: u64,
    /// When it was used last.
    used: u64,
}

/// Variables that come with a request, until it is over.
pub(super) struct Coming<'a>(&'a Kept, Vec<usize>);

impl Kept {
    pub(super) fn new(limit: Option<u64>) -> Arc<Kept> {
        let state = Mutex::ranked(Rank::Responses, State::default());
        let kept = Arc::new(Kept { state, limit });
        let holder: std::sync::Weak<dyn Holder> =
            Arc::downgrade(&kept) as std::sync::Weak<dyn Holder>;
        memory::process().join(holder);
        kept
    }

    /// Bytes that may be kept.
    pub(super) fn room(&self) -> u64 {
        let by_memory = (memory::budget() / KEPT_PART).clamp(LEAST_KEPT_BYTES, MOST_KEPT_BYTES);
        self.limit.unwrap_or(by_memory)
    }

    /// A variable, where it is here.
    pub(super) fn find(&self, var: usize) -> Option<Arc<Whole>> {
        let mut state = self.state.lock();
        let found = state.vars.get_mut(&var)?;
        found.used = memory::tick();
        Some(Arc::clone(&found.whole))
    }

    /// Those of some variables that are neither here nor come, from now on said to come. `chosen` gets the bytes that may come ahead where `read` (a variable
    /// that is read whole, of so many bytes) goes on in the order of the variables.
    pub(super) fn choose(
        &self,
        read: Option<(usize, u64)>,
        choose: impl FnOnce(&dyn Fn(usize) -> bool, u64) -> Vec<usize>,
    ) -> Coming<'_> {
        let mut state = self.state.lock();
        let ahead = state.note_read(read);
        let is_missing =
            |var: usize| !state.vars.contains_key(&var) && !state.coming.contains(&var);
        let chosen = choose(&is_missing, ahead);
        state.coming.extend(&chosen);
        Coming(self, chosen)
    }

    /// A variable that is kept was read whole.
    pub(super) fn note_read(&self, var: usize, bytes: u64) {
        self.state.lock().note_read(Some((var, bytes)));
    }

    /// Keeps a variable, unless there is no room for it.
    pub(super) fn keep(&self, var: usize, whole: &Arc<Whole>) {
        let (bytes, room) = (whole.memory_bytes(), self.room());
        if bytes > room {
            return;
        }
        let mut state = self.state.lock();
        state.forget(var);
        while state.bytes.saturating_add(bytes) > room && state.forget_oldest() > 0 {}
        drop(state);
        if !memory::process().take_over(Kind::Pages, bytes, u64::MAX) {
            return;
        }
        let mut state = self.state.lock();
        // Another thread may have kept it meanwhile.
        state.forget(var);
        state.bytes = state.bytes.saturating_add(bytes);
        let whole = Arc::clone(whole);
        state.vars.insert(var, KeptVar { whole, bytes, used: memory::tick() });
    }
}

impl State {
    /// Notes that a variable is read whole. Gives how many bytes may be read ahead of it.
    fn note_read(&mut self, read: Option<(usize, u64)>) -> u64 {
        let Some((var, bytes)) = read else { return 0 };
        // Small ones between them are not read, or were here.
        let goes_on = self.last.is_some_and(|last| var > last);
        let ahead = if goes_on { self.in_order.saturating_add(bytes) } else { 0 };
        self.in_order = if goes_on { ahead } else { bytes };
        self.last = Some(var);
        ahead
    }

    fn forget(&mut self, var: usize) -> u64 {
        let bytes = self.vars.remove(&var).map_or(0, |kept| kept.bytes);
        self.bytes = self.bytes.saturating_sub(bytes);
        memory::process().give_back(Kind::Pages, bytes);
        bytes
    }

    fn forget_oldest(&mut self) -> u64 {
        let oldest = self.vars.iter().min_by_key(|(_, kept)| kept.used).map(|(&var, _)| var);
        oldest.map_or(0, |var| self.forget(var))
    }
}

impl Coming<'_> {
    pub(super) fn vars(&self) -> &[usize] {
        &self.1
    }
}

impl Drop for Coming<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        for var in &self.1 {
            state.coming.remove(var);
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let state = self.state.lock();
        memory::process().give_back(Kind::Pages, state.bytes);
    }
}

impl Holder for Kept {
    fn least_useful(&self) -> Option<u64> {
        self.state.try_lock().and_then(|state| state.vars.values().map(|kept| kept.used).min())
    }

    fn give_back(&self, bytes: u64, before: u64) -> u64 {
        let Some(mut state) = self.state.try_lock() else { return 0 };
        let mut given = 0u64;
        while given < bytes && state.vars.values().any(|kept| kept.used < before) {
            given = given.saturating_add(state.forget_oldest());
        }
        given
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(n: usize) -> Arc<Whole> {
        Arc::new(Whole::Plain(vec![0; n]))
    }

    #[test]
    fn what_was_not_used_longest_goes() {
        let kept = Kept::new(Some(100));
        (0..3).for_each(|var| kept.keep(var, &whole(30)));
        assert!(kept.find(0).is_some());
        kept.keep(3, &whole(30));
        assert_eq!([0, 1, 2, 3].map(|var| kept.find(var).is_some()), [true, false, true, true]);
        kept.keep(4, &whole(101));
        assert!(kept.find(4).is_none());
        let held = kept.state.lock().bytes;
        assert_eq!(held, 90);
        assert!(kept.give_back(31, u64::MAX) >= 31);
        assert_eq!(kept.state.lock().vars.len(), 1);
        assert_eq!(kept.give_back(1, 0), 0);
    }

    #[test]
    fn what_comes_is_asked_for_once() {
        let kept = Kept::new(Some(100));
        let all = |is_missing: &dyn Fn(usize) -> bool, _| {
            (0..3).filter(|&var| is_missing(var)).collect::<Vec<_>>()
        };
        kept.keep(1, &whole(1));
        let first = kept.choose(None, all);
        assert_eq!(first.vars(), [0, 2]);
        assert_eq!(kept.choose(None, all).vars(), [0usize; 0]);
        drop(first);
        assert_eq!(kept.choose(None, all).vars(), [0, 2]);
    }

    #[test]
    fn no_more_comes_ahead_than_was_read_in_order() {
        let kept = Kept::new(Some(100));
        let ahead = |var| {
            let mut told = 0;
            drop(kept.choose(Some((var, 10)), |_, ahead| {
                told = ahead;
                Vec::new()
            }));
            told
        };
        assert_eq!([0, 1, 2].map(ahead), [0, 20, 30]);
        kept.note_read(3, 10);
        assert_eq!(ahead(4), 50);
        assert_eq!([0, 4, 2].map(ahead), [0, 20, 0]);
    }
}
