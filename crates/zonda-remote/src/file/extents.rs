//! Which bytes of the object are here, come, or are to be asked for.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use crate::RemoteError;

/// A range that is one request. Extents do not overlap.
#[derive(Debug)]
pub(super) struct Extent {
    end: u64,
    pub(super) state: ExtentState,
    /// Bytes that were told to be read and were not read yet: it stays until then.
    unread: u64,
    /// When it was used or told last.
    used: u64,
}

/// Where its bytes are.
#[derive(Debug, Clone)]
pub(super) enum ExtentState {
    /// They are asked for when there is room, or when somebody reads them.
    Waiting,
    /// A thread is asking.
    Coming,
    /// Here.
    Here(Arc<Vec<u8>>),
    /// The request failed. Who reads it gets the error, and the extent goes.
    Failed(RemoteError),
}

/// What is known of a position.
#[derive(Debug)]
pub(super) enum Found {
    /// Nothing up to the second position, which is where the next extent begins.
    Missing(u64),
    /// In this extent: its range and its state.
    In(Range<u64>, ExtentState),
}

/// An extent that a reader begins is mostly among the first that wait; where it is not, its place goes when it is its turn.
const FIRST_PLACES: usize = 16;

/// The extents of a file.
#[derive(Debug, Default)]
pub(super) struct Extents {
    map: BTreeMap<u64, Extent>,
    /// Where extents begin that wait, first what is wanted first. Some may be gone or begun.
    queue: VecDeque<u64>,
    /// Bytes of extents that are here or come.
    held: u64,
    clock: u64,
}

impl Extents {
    /// Bytes that are here or come.
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    /// What is known of the bytes at `at`.
    pub(super) fn find(&self, at: u64) -> Found {
        if let Some((&start, extent)) = self.map.range(..=at).next_back()
            && at < extent.end
        {
            return Found::In(start..extent.end, extent.state.clone());
        }
        Found::Missing(self.map.range(at..).next().map_or(u64::MAX, |(&start, _)| start))
    }

    /// The parts of `range` that no extent has.
    pub(super) fn missing(&self, range: Range<u64>, into: &mut Vec<Range<u64>>) {
        let mut at = range.start;
        while at < range.end {
            match self.find(at) {
                Found::In(found, _) => at = found.end,
                Found::Missing(next) => {
                    let end = next.min(range.end);
                    into.push(at..end);
                    at = end;
                }
            }
        }
    }

    /// Adds a range that no extent has a part of, to be asked for. `unread` bytes of it were told to be read.
    pub(super) fn add(&mut self, range: Range<u64>, unread: u64) {
        self.clock += 1;
        self.map.insert(
            range.start,
            Extent { end: range.end, state: ExtentState::Waiting, unread, used: self.clock },
        );
        self.queue.push_back(range.start);
    }

    /// Adds a range that is wanted at once, before all others that wait.
    pub(super) fn add_first(&mut self, range: Range<u64>) {
        let start = range.start;
        self.add(range, 0);
        self.queue.pop_back();
        self.queue.push_front(start);
    }

    /// How many extents may be waiting: at most as many as there are.
    pub(super) fn n_waiting(&self) -> usize {
        self.queue.len()
    }

    /// Where the last extent ends that begins at or before `at`; 0 where there is none.
    pub(super) fn end_before(&self, at: u64) -> u64 {
        self.map.range(..=at).next_back().map_or(0, |(_, extent)| extent.end.min(at))
    }

    /// The next extent that waits, which comes from now on; `None` where there is none, or where it has no room: `room` says how many bytes
    /// may be held.
    pub(super) fn begin_next(&mut self, room: u64) -> Option<Range<u64>> {
        while let Some(&start) = self.queue.front() {
            let Some(extent) =
                self.map.get(&start).filter(|extent| matches!(extent.state, ExtentState::Waiting))
            else {
                self.queue.pop_front();
                continue;
            };
            let range = start..extent.end;
            if self.held.saturating_add(range.end - range.start) > room {
                return None;
            }
            self.queue.pop_front();
            return self.begin(start).then_some(range);
        }
        None
    }

    /// Has the extent at `start` come from now on; false where it does not wait any more.
    pub(super) fn begin(&mut self, start: u64) -> bool {
        match self.map.get_mut(&start) {
            Some(extent) if matches!(extent.state, ExtentState::Waiting) => {
                extent.state = ExtentState::Coming;
                self.held += extent.end - start;
                if let Some(place) =
                    self.queue.iter().take(FIRST_PLACES).position(|&other| other == start)
                {
                    self.queue.remove(place);
                }
                true
            }
            _ => false,
        }
    }

    /// What became of an extent that came.
    pub(super) fn end(&mut self, start: u64, result: Result<Vec<u8>, RemoteError>) {
        self.clock += 1;
        let clock = self.clock;
        let Some(extent) =
            self.map.get_mut(&start).filter(|extent| matches!(extent.state, ExtentState::Coming))
        else {
            return;
        };
        extent.used = clock;
        match result {
            Ok(bytes) => extent.state = ExtentState::Here(Arc::new(bytes)),
            Err(error) => {
                self.held -= extent.end - start;
                extent.state = ExtentState::Failed(error);
            }
        }
    }

    /// `n` bytes of the extent at `start` were read. Whether nothing keeps it here any more that kept it until now.
    pub(super) fn read(&mut self, start: u64, n: u64) -> bool {
        self.clock += 1;
        let Some(extent) = self.map.get_mut(&start) else { return false };
        let had = extent.unread;
        extent.used = self.clock;
        extent.unread = had.saturating_sub(n);
        had > 0 && extent.unread == 0
    }

    /// Those told before `clock` are not waited for any more: whoever told of them has ended.
    pub(super) fn forget_told(&mut self, before: u64) {
        for extent in self.map.values_mut().filter(|extent| extent.used < before) {
            extent.unread = 0;
        }
    }

    /// The time by which extents are ordered.
    pub(super) fn clock(&self) -> u64 {
        self.clock
    }

    /// Removes an extent that failed, so that the next read asks again.
    pub(super) fn remove_failed(&mut self, start: u64) {
        if self.map.get(&start).is_some_and(|extent| matches!(extent.state, ExtentState::Failed(_)))
        {
            self.map.remove(&start);
        }
    }

    /// Removes what is here and was used longest ago until no more than `most` bytes are held, but nothing that was told and not read, unless
    /// `all` says so. Returns the bytes that went.
    pub(super) fn shrink(&mut self, most: u64, all: bool) -> u64 {
        let before = self.held;
        if self.held <= most {
            return 0;
        }
        let is_free = |extent: &&Extent| {
            matches!(extent.state, ExtentState::Here(_)) && (all || extent.unread == 0)
        };
        let mut free: Vec<(u64, u64)> = self
            .map
            .iter()
            .filter(|(_, extent)| is_free(extent))
            .map(|(&start, extent)| (extent.used, start))
            .collect();
        zonda_runtime::sort::sort(&mut free);
        for (_, start) in free {
            if self.held <= most {
                break;
            }
            if let Some(extent) = self.map.remove(&start) {
                self.held -= extent.end - start;
            }
        }
        before - self.held
    }

    /// When what could go was used last.
    pub(super) fn least_useful(&self) -> Option<u64> {
        self.map
            .values()
            .filter(|extent| matches!(extent.state, ExtentState::Here(_)) && extent.unread == 0)
            .map(|extent| extent.used)
            .min()
    }

    /// In a forked child no thread of the parent asks for anything: what came waits again.
    pub(super) fn restart(&mut self) {
        for (&start, extent) in &mut self.map {
            if matches!(extent.state, ExtentState::Coming) {
                extent.state = ExtentState::Waiting;
                self.held -= extent.end - start;
                self.queue.push_back(start);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::single_range_in_vec_init, reason = "lists of ranges, some of which have one")]

    use super::*;

    fn here(extents: &mut Extents, range: Range<u64>, unread: u64) {
        extents.add(range.clone(), unread);
        assert!(extents.begin(range.start));
        extents.end(range.start, Ok(vec![0; (range.end - range.start) as usize]));
    }

    fn missing(extents: &Extents, range: Range<u64>) -> Vec<Range<u64>> {
        let mut into = Vec::new();
        extents.missing(range, &mut into);
        into
    }

    #[test]
    fn what_is_missing_is_what_no_extent_has() {
        let mut extents = Extents::default();
        assert_eq!(missing(&extents, 3..9), [3..9]);
        extents.add(10..20, 0);
        extents.add(30..40, 0);
        assert_eq!(missing(&extents, 0..50), [0..10, 20..30, 40..50]);
        assert_eq!(missing(&extents, 12..18), []);
        assert_eq!(missing(&extents, 15..35), [20..30]);
        assert_eq!(missing(&extents, 7..7), []);
    }

    #[test]
    fn the_longest_unused_goes_first_and_what_was_told_stays() {
        let mut extents = Extents::default();
        here(&mut extents, 0..10, 10);
        here(&mut extents, 10..20, 0);
        here(&mut extents, 20..30, 0);
        assert!(!extents.read(10, 1));
        assert_eq!(extents.shrink(20, false), 10);
        assert_eq!(missing(&extents, 0..30), [20..30], "the one that was read lately stays");
        assert_eq!(extents.shrink(0, false), 10);
        assert_eq!(
            missing(&extents, 0..30),
            [10..30],
            "nobody has read the first, of which it was told"
        );
        assert!(!extents.read(0, 9) && extents.read(0, 1), "now it may go");
        assert_eq!(extents.shrink(0, false), 10);
        assert_eq!(extents.held(), 0);
    }

    #[test]
    fn room_is_kept_and_a_failure_is_asked_for_again() {
        let mut extents = Extents::default();
        extents.add(0..10, 10);
        extents.add(10..20, 10);
        assert_eq!(extents.begin_next(15), Some(0..10));
        assert_eq!(extents.begin_next(15), None, "there is room for one");
        assert!(extents.begin(10), "a reader does not wait for room");
        assert!(!extents.begin(10));
        let error = RemoteError::new(&"x".into(), zonda_storage::RemoteFailure::Broken, "no");
        extents.end(0, Err(error));
        assert!(
            matches!(extents.find(5), Found::In(range, ExtentState::Failed(_)) if range == (0..10))
        );
        extents.remove_failed(0);
        assert_eq!(missing(&extents, 0..20), [0..10]);
        assert_eq!(extents.held(), 10);
        extents.restart();
        assert_eq!((extents.held(), extents.begin_next(15)), (0, Some(10..20)));
    }
}
