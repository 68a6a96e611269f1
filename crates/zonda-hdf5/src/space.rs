//! Space of a file: which bytes are in use, which are free, and where new structures go.
//!
//! Nothing that the last commit refers to is ever written over. Space that was given back is used
//! again only after the next commit but one: until then a reader that opened the file before may
//! read it. Readers of a file that is committed often need more time ([`Space::wait`]), except for
//! definitions: each commit that changes a list of links or attributes gives the whole list back,
//! so that little of them has to wait. The same calls give the same addresses.
//!
//! Space that is taken begins at a multiple of 8, and the bytes from its end up to the next
//! multiple of 8 belong to it: else each chunk of odd length would leave a hole. Other writers do
//! not pad, so this does not hold before the end that the file had when it was opened.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::tuning::{BEST_FIT_TRIES, LOWEST_FIT_TRIES, WAITING_MAX_BYTES};
use crate::{FileAddr, HdfError, Result};

mod new_blocks;

pub use new_blocks::NewBlocks;

/// Addresses are multiples of this many bytes, unless a larger alignment is asked for.
const ALIGN: u64 = 8;
/// Bytes that a disk writes wholly or not at all.
pub const SECTOR: u64 = 512;

/// Which bytes of a file are in use and which are free.
#[derive(Clone, Debug)]
pub struct Space {
    /// The byte behind the last one in use.
    end: u64,
    /// Space from this address on was given out here, so that it is padded to multiples of 8.
    own: u64,
    /// Free runs by address; none touches another.
    free: BTreeMap<u64, u64>,
    /// The free runs by length, then by address.
    by_len: BTreeSet<(u64, u64)>,
    /// What was given back and waits: address, length, and the commits before that. The oldest
    /// first.
    given_back: VecDeque<(u64, u64, u64)>,
    /// Bytes of `given_back`.
    waiting: u64,
    /// Space is used again only when at least so many bytes were given back after it.
    wait: u64,
    /// What definitions gave back, in the same form, and bytes of it.
    definitions: VecDeque<(u64, u64, u64)>,
    definitions_waiting: u64,
    /// Whether space is taken from the lowest free run that is long enough, not from the one that
    /// fits best.
    takes_lowest: bool,
    /// Commits so far.
    n_commits: u64,
    /// Structures that could not be written when they should have been.
    unwritten: Vec<(FileAddr, Vec<u8>)>,
    /// Threshold and alignment: what has at least the first number of bytes begins at a multiple of
    /// the second.
    aligned: (u64, u64),
}

impl Space {
    /// A file of which all bytes before `end` are in use.
    #[must_use]
    pub fn new(end: u64) -> Space {
        Space {
            end,
            own: end.checked_next_multiple_of(ALIGN).unwrap_or(end),
            free: BTreeMap::new(),
            by_len: BTreeSet::new(),
            given_back: VecDeque::new(),
            waiting: 0,
            wait: 0,
            definitions: VecDeque::new(),
            definitions_waiting: 0,
            takes_lowest: false,
            n_commits: 0,
            unwritten: Vec::new(),
            aligned: (u64::MAX, ALIGN),
        }
    }

    /// Says that nothing behind `end` is in use after all. To be called before anything is taken.
    pub fn begin_at(&mut self, end: u64) {
        if end < self.end {
            self.end = end;
            self.own = end.checked_next_multiple_of(ALIGN).unwrap_or(end);
        }
    }

    /// From now on, space that is given back is used again only when so many bytes were given back
    /// after it: `bytes`, half of the file up to 64 MiB, or a sixteenth of the file, whatever is
    /// most. A reader finds what it looks for unless it takes longer than the commits that give so
    /// much back, and how long it takes follows from the length of the file. The file becomes
    /// longer by as much at most.
    pub fn wait(&mut self, bytes: u64) {
        self.wait = bytes;
    }

    /// From now on what [`Space::alloc`] gives of at least `threshold` bytes begins at a multiple of
    /// `alignment`, and of 8.
    pub fn align(&mut self, threshold: u64, alignment: u64) {
        let twos = alignment.trailing_zeros().min(ALIGN.trailing_zeros());
        let missing = ALIGN.checked_shr(twos).unwrap_or(1);
        self.aligned = (threshold, alignment.saturating_mul(missing));
    }

    /// The byte behind the last one in use.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Space for `len` bytes, at a multiple of 8 or of what [`Space::align`] says.
    ///
    /// # Errors
    /// [`HdfError::TooLarge`] where the file would become longer than files can be.
    pub fn alloc(&mut self, len: u64) -> Result<FileAddr> {
        let (threshold, alignment) = self.aligned;
        let multiple = if len >= threshold && alignment > 1 { alignment } else { ALIGN };
        let place = |at: u64| at.checked_next_multiple_of(multiple);
        if len <= SECTOR { self.take_low(len, place) } else { self.take(len, place) }
    }

    /// Space for `len` bytes, at most [`SECTOR`], that lie in one sector.
    ///
    /// # Errors
    /// As [`Space::alloc`].
    pub fn alloc_in_sector(&mut self, len: u64) -> Result<FileAddr> {
        let place = |at: u64| {
            let at = at.checked_next_multiple_of(ALIGN)?;
            let left = SECTOR.saturating_sub(at.checked_rem(SECTOR)?);
            if len <= left { Some(at) } else { at.checked_next_multiple_of(SECTOR) }
        };
        self.take_low(len, place)
    }

    /// Space for `len` bytes that the next commits may give back: in the free run that fits best,
    /// even where `len` is short.
    ///
    /// # Errors
    /// As [`Space::alloc`].
    pub fn alloc_passing(&mut self, len: u64) -> Result<FileAddr> {
        let (threshold, alignment) = self.aligned;
        let multiple = if len >= threshold && alignment > 1 { alignment } else { ALIGN };
        self.take(len, |at| at.checked_next_multiple_of(multiple))
    }

    /// Takes the lowest free run that is long enough. Short structures, such as headers, stay where
    /// they are, while lists come and go: near the front of the file, short ones do not lie behind
    /// the holes that lists leave.
    fn take_low(&mut self, len: u64, place: impl Fn(u64) -> Option<u64>) -> Result<FileAddr> {
        let runs = self.by_len.range((len, 0)..).take(LOWEST_FIT_TRIES);
        let fitting = runs.filter_map(|&(run, at)| fit(at, run, len, &place));
        match fitting.min_by_key(|found| found.2) {
            Some(found) => Ok(self.take_from(found)),
            None => self.take(len, place),
        }
    }

    fn take(&mut self, len: u64, place: impl Fn(u64) -> Option<u64>) -> Result<FileAddr> {
        let fits = |&(run, at): &(u64, u64)| fit(at, run, len, &place);
        if self.takes_lowest {
            let lowest = self.free.iter().find_map(|(&at, &run)| fits(&(run, at)));
            if let Some(found) = lowest {
                return Ok(self.take_from(found));
            }
        }
        let ample = len.saturating_add(SECTOR).saturating_add(ALIGN);
        let short = self.by_len.range((len, 0)..).take(BEST_FIT_TRIES);
        let mut tried = short.chain(self.by_len.range((ample, 0)..).take(1));
        if let Some(found) = tried.find_map(fits) {
            return Ok(self.take_from(found));
        }
        let too_large = HdfError::TooLarge { structure: "file", value: self.end };
        let placed = place(self.end).ok_or_else(|| too_large.clone())?;
        let behind = placed.checked_add(len).filter(|&end| end <= i64::MAX as u64);
        let before = std::mem::replace(&mut self.end, behind.ok_or(too_large)?);
        // What was skipped to come to an aligned address was never in use.
        let before = before.checked_next_multiple_of(ALIGN).unwrap_or(before);
        self.release(before, placed.saturating_sub(before));
        Ok(FileAddr(placed))
    }

    /// Takes the bytes from `placed` to `behind` of the free run of `run` bytes at `at`.
    fn take_from(&mut self, (at, run, placed, behind): (u64, u64, u64, u64)) -> FileAddr {
        self.remove(at);
        self.release(at, placed.saturating_sub(at));
        let behind_it = self.padded(placed, behind);
        self.release(behind_it, at.saturating_add(run).saturating_sub(behind_it));
        // A free run may end behind the last byte in use, within the padding of that.
        self.end = self.end.max(behind);
        FileAddr(placed)
    }

    /// The byte behind a run from `at` to `behind` that was taken, and behind its padding.
    #[must_use]
    pub fn padded(&self, at: u64, behind: u64) -> u64 {
        let padded = behind.checked_next_multiple_of(ALIGN).filter(|_| at >= self.own);
        padded.unwrap_or(behind)
    }

    /// Lets the file end at a multiple of `multiple` bytes. What this adds is free for use.
    ///
    /// # Errors
    /// As [`Space::alloc`].
    pub fn round_end(&mut self, multiple: u64) -> Result<()> {
        let before = self.end;
        let end = before.checked_next_multiple_of(multiple).filter(|&end| end <= i64::MAX as u64);
        self.end = end.ok_or(HdfError::TooLarge { structure: "file", value: before })?;
        let before = before.checked_next_multiple_of(ALIGN).unwrap_or(before).min(self.end);
        self.release(before, self.end.saturating_sub(before));
        Ok(())
    }

    /// Gives space back, which is used again after the next commit but one. It has to be all that
    /// one call took, or the last bytes of that.
    pub fn free(&mut self, addr: FileAddr, len: u64) {
        if len > 0 {
            self.given_back.push_back((addr.0, len, self.n_commits));
            self.waiting = self.waiting.saturating_add(len);
        }
    }

    /// Gives space back that definitions took: as [`Space::free`], but it waits until a sixteenth
    /// of the file was given back after it, at most.
    pub fn free_definitions(&mut self, addr: FileAddr, len: u64) {
        if len > 0 {
            self.definitions.push_back((addr.0, len, self.n_commits));
            self.definitions_waiting = self.definitions_waiting.saturating_add(len);
        }
    }

    /// Makes all space free that definitions gave back before the last commit, however little was
    /// given back after it: for a caller that commits once more and ends.
    pub fn release_definitions(&mut self) {
        while let Some(&(at, len, given_back)) = self.definitions.front()
            && given_back < self.n_commits
        {
            self.definitions.pop_front();
            self.definitions_waiting = self.definitions_waiting.saturating_sub(len);
            self.release(at, len);
        }
    }

    /// Makes a run free that nothing in the file refers to, as the caller found out, except the
    /// parts of it that wait for readers or are free already.
    pub fn found_free(&mut self, at: u64, len: u64) {
        let (begin, end) = (at, at.saturating_add(len).min(self.end));
        let waiting = self.given_back.iter().chain(&self.definitions);
        let waiting = waiting.map(|&(at, len, _)| (at, self.padded(at, at.saturating_add(len))));
        let free = self.free.range(..end).map(|(&at, &len)| (at, at.saturating_add(len)));
        let mut known: Vec<_> =
            waiting.chain(free).filter(|&(at, behind)| at < end && behind > begin).collect();
        zonda_runtime::sort::sort(&mut known);
        let mut from = begin;
        for (at, behind) in known.into_iter().chain([(end, end)]) {
            self.release(from, at.saturating_sub(from));
            from = from.max(behind);
        }
    }

    /// Sets whether space is taken from the lowest free run that is long enough, or from the one
    /// that fits best.
    pub fn take_lowest(&mut self, lowest: bool) {
        self.takes_lowest = lowest;
    }

    /// Bytes that are free for use.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.by_len.iter().fold(0, |sum, (len, _)| sum.saturating_add(*len))
    }

    /// Whether nobody uses any of these bytes, and none of them waits for readers.
    #[must_use]
    pub fn is_free(&self, at: u64, len: u64) -> bool {
        let end = at.saturating_add(len);
        let run = self.free.range(..=at).next_back();
        len == 0 || run.is_some_and(|(&from, &run)| from.saturating_add(run) >= end)
    }

    /// Where the free run begins that ends at `end`, or that ends with the padding of the byte
    /// before it; `None` where there is no such run.
    #[must_use]
    pub fn free_up_to(&self, end: u64) -> Option<u64> {
        let (&at, &run) = self.free.range(..end).next_back()?;
        let behind = at.saturating_add(run);
        (behind >= end || self.padded(at, end) == behind).then_some(at)
    }

    /// Ends the file where what is in use ends.
    pub fn cut_end(&mut self) {
        while let Some(at) = self.free_up_to(self.end)
            && at < self.end
        {
            self.remove(at);
            self.end = at;
        }
    }

    /// Gives back space that nothing ever referred to, for use at once.
    pub fn untake(&mut self, addr: FileAddr, len: u64) {
        if len > 0 && addr.0.checked_add(len) == Some(self.end) && addr.0 >= self.own {
            self.end = addr.0;
        } else {
            self.release(addr.0, len);
        }
    }

    /// Whether all that was to be written could be; if not, [`NewBlocks::write`] tries again.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.unwritten.is_empty()
    }

    /// Says that a commit was made, and makes space free that has waited long enough.
    pub fn committed(&mut self) {
        let wait = match self.wait {
            0 => 0,
            least => {
                least.max(self.end.div_ceil(2).min(WAITING_MAX_BYTES)).max(self.end.div_ceil(16))
            }
        };
        while let Some(&(at, len, given_back)) = self.given_back.front()
            && given_back < self.n_commits
            && self.waiting.saturating_sub(len) >= wait
        {
            self.given_back.pop_front();
            self.waiting = self.waiting.saturating_sub(len);
            self.release(at, len);
        }
        // Lists are given back whole: a sixteenth of the file is several of them, or one.
        let wait = if self.wait == 0 { 0 } else { self.end.div_ceil(16) };
        while let Some(&(at, len, given_back)) = self.definitions.front()
            && given_back < self.n_commits
            && self.definitions_waiting.saturating_sub(len) >= wait
        {
            self.definitions.pop_front();
            self.definitions_waiting = self.definitions_waiting.saturating_sub(len);
            self.release(at, len);
        }
        self.n_commits = self.n_commits.saturating_add(1);
    }

    /// Makes a run free for use, joined with its neighbours.
    fn release(&mut self, mut at: u64, mut len: u64) {
        if len == 0 {
            return;
        }
        if at >= self.own {
            let behind = self.padded(at, at.saturating_add(len));
            at = at.checked_next_multiple_of(ALIGN).unwrap_or(at);
            len = behind.saturating_sub(at);
        }
        if let Some((&before, &run)) = self.free.range(..at).next_back()
            && before.saturating_add(run) == at
        {
            self.remove(before);
            (at, len) = (before, len.saturating_add(run));
        }
        if let Some(run) = self.remove(at.saturating_add(len)) {
            len = len.saturating_add(run);
        }
        if len > 0 {
            self.free.insert(at, len);
            self.by_len.insert((len, at));
        }
    }

    /// Removes the free run that begins at `at`, and gives its length.
    fn remove(&mut self, at: u64) -> Option<u64> {
        let run = self.free.remove(&at)?;
        self.by_len.remove(&(run, at));
        Some(run)
    }
}

/// How `len` bytes fit into the free run of `run` bytes at `at`, if they do: the address and the
/// length of the run, and where the bytes begin and end.
fn fit(
    at: u64,
    run: u64,
    len: u64,
    place: impl Fn(u64) -> Option<u64>,
) -> Option<(u64, u64, u64, u64)> {
    let placed = place(at)?;
    let behind = placed.checked_add(len)?;
    (behind <= at.checked_add(run)?).then_some((at, run, placed, behind))
}

#[cfg(test)]
mod tests;
