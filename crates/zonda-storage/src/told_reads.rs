//! The ranges of a long read, told to a remote storage a lot at a time.
//!
//! While one lot is read the next one is on its way. So the line is never idle, and memory has two lots at most, whatever a file says of
//! lengths.

use std::fmt;
use std::ops::Range;

use crate::RemoteReads;
use crate::tuning::{TOLD_LOT_BYTES, TOLD_LOT_RANGES};

/// Runs of bytes with loops around them, as a hyperslab lies in a file: an iterator of their ranges, in the order of the loops.
#[derive(Debug, Clone)]
pub struct RunRanges {
    begin: u64,
    run_bytes: u64,
    /// The loops from the outermost in: steps, bytes from one to the next, and the step that is next.
    loops: Vec<(u64, u64, u64)>,
    is_done: bool,
}

impl RunRanges {
    /// Runs of `run_bytes` bytes, the first from `begin` on; `loops` are those around it from the outermost in: how many steps, and
    /// bytes from one to the next. Loops in which one run touches the next make one run.
    pub fn new(
        begin: u64,
        run_bytes: u64,
        loops: impl DoubleEndedIterator<Item = (u64, u64)>,
    ) -> RunRanges {
        let (mut run_bytes, mut around, mut is_done) = (run_bytes, Vec::new(), run_bytes == 0);
        for (count, step) in loops.rev() {
            is_done |= count == 0;
            if count <= 1 {
                continue;
            }
            if around.is_empty() && step == run_bytes {
                run_bytes = run_bytes.saturating_mul(count);
            } else {
                around.push((count, step, 0));
            }
        }
        around.reverse();
        RunRanges { begin, run_bytes, loops: around, is_done }
    }

    /// One range.
    #[must_use]
    pub fn one(begin: u64, bytes: u64) -> RunRanges {
        RunRanges { begin, run_bytes: bytes, loops: Vec::new(), is_done: bytes == 0 }
    }

    /// No range.
    #[must_use]
    pub fn none() -> RunRanges {
        RunRanges::one(0, 0)
    }

    /// Whether it is one range.
    #[must_use]
    pub fn is_one(&self) -> bool {
        self.loops.is_empty()
    }
}

impl Iterator for RunRanges {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        if self.is_done {
            return None;
        }
        let places = self.loops.iter().map(|&(_, step, at)| at.saturating_mul(step));
        let begin = places.fold(self.begin, u64::saturating_add);
        self.is_done = true;
        for (count, _, at) in self.loops.iter_mut().rev() {
            *at += 1;
            if *at < *count {
                self.is_done = false;
                break;
            }
            *at = 0;
        }
        Some(begin..begin.saturating_add(self.run_bytes))
    }
}

/// Tells a remote storage which ranges a read comes to: the lot that is read, and the one behind it.
///
/// Each range has a number that says when the read comes to it; the numbers never fall. A row that is longer than a lot is told in several.
/// Of another range no more than a lot is told: who reads it asks for all of it.
pub struct ToldReads<'s, I> {
    remote: &'s dyn RemoteReads,
    ranges: I,
    /// A range that was begun and not told to its end.
    rest: Option<(u64, Range<u64>)>,
    /// The number at which the lot begins that was told last.
    last_lot: Option<u64>,
    /// Bytes between two ranges up to which they are one.
    gap: u64,
    are_rows: bool,
    is_done: bool,
}

impl<I> fmt::Debug for ToldReads<'_, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToldReads")
            .field("last_lot", &self.last_lot)
            .field("is_done", &self.is_done)
            .finish_non_exhaustive()
    }
}

impl<'s, I: Iterator<Item = (u64, Range<u64>)>> ToldReads<'s, I> {
    /// Tells the first lot. Ranges that follow each other with at most `gap` bytes between them are one.
    pub fn new(remote: &'s dyn RemoteReads, ranges: I, gap: u64) -> ToldReads<'s, I> {
        ToldReads::begin(remote, ranges, gap, false)
    }

    /// The same for rows of a file: the number of each is the byte where it begins.
    pub fn of_rows(remote: &'s dyn RemoteReads, rows: I, gap: u64) -> ToldReads<'s, I> {
        ToldReads::begin(remote, rows, gap, true)
    }

    fn begin(remote: &'s dyn RemoteReads, ranges: I, gap: u64, are_rows: bool) -> ToldReads<'s, I> {
        let (rest, last_lot, is_done) = (None, None, false);
        let mut told = ToldReads { remote, ranges, rest, last_lot, gap, are_rows, is_done };
        told.tell();
        told
    }

    /// Says that the read comes to what has this number. To be called before it is read.
    pub fn reached(&mut self, number: u64) {
        while !self.is_done && self.last_lot.is_none_or(|begin| begin <= number) {
            self.tell();
        }
    }

    /// Tells one lot.
    fn tell(&mut self) {
        let mut lot: Vec<Range<u64>> = Vec::new();
        let (mut bytes, mut begin) = (0u64, None);
        while lot.len() < TOLD_LOT_RANGES && bytes < TOLD_LOT_BYTES {
            let Some((number, range)) = self.rest.take().or_else(|| self.ranges.next()) else {
                self.is_done = true;
                break;
            };
            begin.get_or_insert(number);
            let joins = |last: &&mut Range<u64>| {
                (last.start..=last.end.saturating_add(self.gap)).contains(&range.start)
            };
            let last = lot.last_mut().filter(joins);
            let from = last.as_ref().map_or(range.start, |last| last.end);
            let cut = range.end.min(from.saturating_add(TOLD_LOT_BYTES - bytes));
            bytes = bytes.saturating_add(cut.saturating_sub(from));
            match last {
                Some(last) => last.end = last.end.max(cut),
                None if cut > range.start => lot.push(range.start..cut),
                None => {}
            }
            if cut < range.end && self.are_rows {
                self.rest = Some((cut, cut..range.end));
            }
        }
        if !lot.is_empty() {
            self.remote.will_read(&lot);
        }
        self.last_lot = begin.or(self.last_lot);
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::single_range_in_vec_init, reason = "lists of ranges, some of one")]

    use super::*;
    use zonda_runtime::lock::{Mutex, Rank};

    #[derive(Debug)]
    struct Told(Mutex<Vec<Vec<Range<u64>>>>);

    impl Default for Told {
        fn default() -> Told {
            Told(Mutex::ranked(Rank::Failed, Vec::new()))
        }
    }

    impl RemoteReads for Told {
        fn will_read(&self, ranges: &[Range<u64>]) {
            self.0.lock().push(ranges.to_vec());
        }

        fn shown(&self) -> std::sync::Arc<str> {
            "told".into()
        }
    }

    #[test]
    fn runs_come_in_the_order_of_their_loops() {
        let ranges = |begin, run, loops: &[(u64, u64)]| {
            RunRanges::new(begin, run, loops.iter().copied()).collect::<Vec<_>>()
        };
        assert_eq!(
            ranges(10, 4, &[(2, 100), (3, 8)]),
            [10..14, 18..22, 26..30, 110..114, 118..122, 126..130]
        );
        assert_eq!(ranges(10, 4, &[(2, 100), (3, 4)]), [10..22, 110..122]);
        assert_eq!(ranges(0, 4, &[(25, 100), (1, 7), (25, 4)]).len(), 1, "rows that touch");
        assert_eq!(ranges(10, 4, &[]), [10..14]);
        assert!(ranges(10, 0, &[(3, 8)]).is_empty() && ranges(10, 4, &[(0, 8)]).is_empty());
        assert_eq!(
            ranges(u64::MAX - 1, 4, &[(2, u64::MAX)]),
            [u64::MAX - 1..u64::MAX, u64::MAX..u64::MAX]
        );
    }

    #[test]
    fn one_lot_is_ahead_of_the_read_and_neighbours_are_one_range() {
        let told = Told::default();
        let n = 3 * TOLD_LOT_RANGES as u64;
        let ranges = (0..n).map(|i| (i * 100, i * 100..i * 100 + 10));
        let mut reads = ToldReads::of_rows(&told, ranges.clone(), 8);
        assert_eq!(told.0.lock().len(), 1);
        reads.reached(0);
        assert_eq!(told.0.lock().len(), 2, "the next one");
        reads.reached(99 * 100);
        assert_eq!(told.0.lock().len(), 2, "not yet");
        for i in 0..n {
            reads.reached(i * 100);
        }
        let all: Vec<Range<u64>> = told.0.lock().concat();
        assert_eq!(all, ranges.clone().map(|(_, range)| range).collect::<Vec<_>>());

        let joined = Told::default();
        let _ = ToldReads::of_rows(&joined, ranges, 90);
        assert_eq!(joined.0.lock()[0], [0..(n - 1) * 100 + 10]);
    }

    #[test]
    fn a_range_of_any_length_is_told_a_lot_at_a_time() {
        let told = Told::default();
        let mut reads = ToldReads::of_rows(&told, [(5, 5..u64::MAX)].into_iter(), 0);
        reads.reached(5);
        assert_eq!(told.0.lock().len(), 2);
        assert_eq!(told.0.lock()[1], [5 + TOLD_LOT_BYTES..5 + 2 * TOLD_LOT_BYTES]);
        reads.reached(5 + TOLD_LOT_BYTES);
        assert_eq!(told.0.lock().len(), 3);
    }
}
