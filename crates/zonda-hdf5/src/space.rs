//! Space of the file: where what is written goes.
//!
//! Nothing that the last commit refers to is ever written over, so space given back serves again
//! only after the next commit but one: until then a reader that opened the file before may look
//! there. Readers of files that are committed often need longer ([`Space::wait`]), but for
//! definitions: lists of links and attributes are given back whole by each commit that changes
//! them, so what waits of them is small beside the file. The same calls give the same places.
//!
//! What is taken begins at a multiple of 8, so the bytes from its end up to the next one belong to
//! it: without that, each chunk of odd length would leave a hole. Others end where they like, so
//! this does not hold before the end of the file as it was found.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use zonda_storage::WriteRange;

use crate::{File, FileAddr, HdfError, Result};

/// Addresses are multiples of this, but for what is larger.
const ALIGN: u64 = 8;
/// Free runs, from the shortest that may do, that are tried before one that surely does: a file of
/// many objects has many short runs between them.
const TRIES: usize = 64;
/// Free runs that are long enough, of which the lowest one is taken for what stays where it is.
const LOW_TRIES: usize = 512;
/// Up to this half of the file waits to be used again.
const MOST_HALF: u64 = 64 << 20;
/// What a disk writes wholly or not at all.
pub const SECTOR: u64 = 512;

/// What of a file is in use.
#[derive(Clone, Debug)]
pub struct Space {
    /// Behind the last byte in use.
    end: u64,
    /// All that begins here or later was taken from here.
    own: u64,
    /// Free runs by address; none touches another.
    free: BTreeMap<u64, u64>,
    /// The same by length, then by address.
    by_len: BTreeSet<(u64, u64)>,
    /// Given back, and after how many commits; the first ones first.
    given_back: VecDeque<(u64, u64, u64)>,
    /// Bytes of them.
    waiting: u64,
    /// Least bytes given back later than what serves again.
    wait: u64,
    /// What was given back of definitions, likewise, and bytes of it.
    definitions: VecDeque<(u64, u64, u64)>,
    definitions_waiting: u64,
    /// What is taken is taken from where it lies lowest.
    takes_lowest: bool,
    /// Commits so far.
    n_commits: u64,
    /// Structures that could not be written when they should have been.
    unwritten: Vec<(FileAddr, Vec<u8>)>,
    /// What has so many bytes begins at a multiple of the other number.
    aligned: (u64, u64),
}

impl Space {
    /// All up to `end` is in use.
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

    /// All behind `end` turned out not to be in use. To be said before anything is taken.
    pub fn begin_at(&mut self, end: u64) {
        if end < self.end {
            self.end = end;
            self.own = end.checked_next_multiple_of(ALIGN).unwrap_or(end);
        }
    }

    /// From now on what is given back serves again only when so many bytes were given back after it,
    /// or half of what the file has, up to 64 MiB, or a sixteenth of it, whatever is most: a reader
    /// that takes as long as the commits that do so finds what it looks for, and how long it takes
    /// follows from the length of the file. The file is longer by as much at most.
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

    /// Behind the last byte in use.
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

    /// Space for `len` bytes of what the next commits may give back: where it fits best, however short
    /// it is.
    ///
    /// # Errors
    /// As [`Space::alloc`].
    pub fn alloc_passing(&mut self, len: u64) -> Result<FileAddr> {
        let (threshold, alignment) = self.aligned;
        let multiple = if len >= threshold && alignment > 1 { alignment } else { ALIGN };
        self.take(len, |at| at.checked_next_multiple_of(multiple))
    }

    /// Headers and a few elements stay where they are, lists come and go: what is short keeps to the
    /// front, so that it does not lie behind the holes of what went.
    fn take_low(&mut self, len: u64, place: impl Fn(u64) -> Option<u64>) -> Result<FileAddr> {
        let runs = self.by_len.range((len, 0)..).take(LOW_TRIES);
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
        let short = self.by_len.range((len, 0)..).take(TRIES);
        let mut tried = short.chain(self.by_len.range((ample, 0)..).take(1));
        if let Some(found) = tried.find_map(fits) {
            return Ok(self.take_from(found));
        }
        let too_large = HdfError::TooLarge { structure: "file", value: self.end };
        let placed = place(self.end).ok_or_else(|| too_large.clone())?;
        let behind = placed.checked_add(len).filter(|&end| end <= i64::MAX as u64);
        let before = std::mem::replace(&mut self.end, behind.ok_or(too_large)?);
        // What was skipped to come to a good place was never in use.
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
        // A run may end behind the last byte in use, within what belongs to that.
        self.end = self.end.max(behind);
        FileAddr(placed)
    }

    /// Behind the bytes that belong to a run from `at` to `behind`, which was taken.
    #[must_use]
    pub fn padded(&self, at: u64, behind: u64) -> u64 {
        let padded = behind.checked_next_multiple_of(ALIGN).filter(|_| at >= self.own);
        padded.unwrap_or(behind)
    }

    /// Lets the file end at a multiple of `multiple` bytes; what is left there is free for use.
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

    /// Gives space back, for use after the next commit but one: all that was taken at once, or the
    /// last bytes of it.
    pub fn free(&mut self, addr: FileAddr, len: u64) {
        if len > 0 {
            self.given_back.push_back((addr.0, len, self.n_commits));
            self.waiting = self.waiting.saturating_add(len);
        }
    }

    /// Gives space back that definitions took: as [`Space::free`], but it waits for a sixteenth of the
    /// file at most.
    pub fn free_definitions(&mut self, addr: FileAddr, len: u64) {
        if len > 0 {
            self.definitions.push_back((addr.0, len, self.n_commits));
            self.definitions_waiting = self.definitions_waiting.saturating_add(len);
        }
    }

    /// Lets all serve that definitions gave back before the last commit, however little came after
    /// it: for who commits once more and ends.
    pub fn release_definitions(&mut self) {
        while let Some(&(at, len, given_back)) = self.definitions.front()
            && given_back < self.n_commits
        {
            self.definitions.pop_front();
            self.definitions_waiting = self.definitions_waiting.saturating_sub(len);
            self.release(at, len);
        }
    }

    /// Lets a run serve that the file refers to nowhere, as somebody found out, but for what of it is
    /// waiting for readers or known to be free.
    pub fn found_free(&mut self, at: u64, len: u64) {
        let (begin, end) = (at, at.saturating_add(len).min(self.end));
        let waiting = self.given_back.iter().chain(&self.definitions);
        let waiting = waiting.map(|&(at, len, _)| (at, self.padded(at, at.saturating_add(len))));
        let free = self.free.range(..end).map(|(&at, &len)| (at, at.saturating_add(len)));
        let mut known: Vec<_> =
            waiting.chain(free).filter(|&(at, behind)| at < end && behind > begin).collect();
        known.sort_unstable();
        let mut from = begin;
        for (at, behind) in known.into_iter().chain([(end, end)]) {
            self.release(from, at.saturating_sub(from));
            from = from.max(behind);
        }
    }

    /// Whether what is taken is taken from where it lies lowest, or from where it fits best.
    pub fn take_lowest(&mut self, lowest: bool) {
        self.takes_lowest = lowest;
    }

    /// Bytes that are free for use.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.by_len.iter().fold(0, |sum, (len, _)| sum.saturating_add(*len))
    }

    /// Where the free run that ends at `end`, or where what belongs to the byte before it does, begins.
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

    /// Whether all that was to be written could be; if not, [`Fresh::write`] tries again.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.unwritten.is_empty()
    }

    /// Says that a commit was made.
    pub fn committed(&mut self) {
        let wait = match self.wait {
            0 => 0,
            least => least.max(self.end.div_ceil(2).min(MOST_HALF)).max(self.end.div_ceil(16)),
        };
        while let Some(&(at, len, given_back)) = self.given_back.front()
            && given_back < self.n_commits
            && self.waiting.saturating_sub(len) >= wait
        {
            self.given_back.pop_front();
            self.waiting = self.waiting.saturating_sub(len);
            self.release(at, len);
        }
        // Lists are given back whole: a sixteenth is some of them, or one.
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

    /// Takes away the free run that begins here.
    fn remove(&mut self, at: u64) -> Option<u64> {
        let run = self.free.remove(&at)?;
        self.by_len.remove(&(run, at));
        Some(run)
    }
}

/// How `len` bytes lie in the free run of `run` bytes at `at`: that, the length of it, where they begin
/// and where they end.
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

/// Structures on their way to places that nothing in the file refers to yet.
#[derive(Debug)]
pub struct Fresh<'a> {
    space: &'a mut Space,
    blocks: Vec<(FileAddr, Vec<u8>)>,
}

impl<'a> Fresh<'a> {
    /// Nothing so far.
    pub fn new(space: &'a mut Space) -> Fresh<'a> {
        Fresh { space, blocks: Vec::new() }
    }

    /// The space they take.
    pub fn space(&mut self) -> &mut Space {
        self.space
    }

    /// Puts a structure somewhere and says where.
    ///
    /// # Errors
    /// As [`Space::alloc`].
    pub fn put(&mut self, bytes: Vec<u8>) -> Result<FileAddr> {
        let addr = self.space.alloc(bytes.len() as u64)?;
        self.blocks.push((addr, bytes));
        Ok(addr)
    }

    /// Puts a structure somewhere that the next commits may give back.
    ///
    /// # Errors
    /// As [`Space::alloc`].
    pub fn put_passing(&mut self, bytes: Vec<u8>) -> Result<FileAddr> {
        let addr = self.space.alloc_passing(bytes.len() as u64)?;
        self.blocks.push((addr, bytes));
        Ok(addr)
    }

    /// Puts a structure at a place that was taken for it.
    pub fn put_at(&mut self, addr: FileAddr, bytes: Vec<u8>) {
        self.blocks.push((addr, bytes));
    }

    /// What was put, in that order, for who writes it later.
    #[must_use]
    pub fn into_blocks(self) -> Vec<(FileAddr, Vec<u8>)> {
        self.blocks
    }

    /// Writes them all, in ascending order, and those that an earlier call could not write.
    ///
    /// # Errors
    /// What the storage reports. Nothing is lost then: the next call writes what this one could
    /// not, so that who has handed something over need not keep it.
    pub fn write(self, file: &File) -> Result<()> {
        let Fresh { space, blocks } = self;
        space.unwritten.extend(blocks);
        space.unwritten.sort_by_key(|(addr, _)| *addr);
        let mut ranges = Vec::with_capacity(space.unwritten.len());
        for (addr, bytes) in &space.unwritten {
            file.grown_to(addr.0.saturating_add(bytes.len() as u64));
            ranges.push(WriteRange { at: file.position(*addr), data: bytes });
        }
        file.storage().write_ranges(&ranges)?;
        space.unwritten = Vec::new();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use zonda_storage::Storage;
    use zonda_storage::backend::Memory;
    use zonda_storage::layer::{Fault, FaultKind, FaultPlan, Watched};

    use super::*;

    #[test]
    fn space_given_back_serves_after_the_next_commit_but_one() {
        let mut space = Space::new(48);
        let a = space.alloc(100).unwrap();
        assert_eq!((a, space.end()), (FileAddr(48), 148));
        space.free(a, 100);
        for expected in [152, 256] {
            assert_eq!(space.alloc(100).unwrap(), FileAddr(expected));
            space.committed();
        }
        assert_eq!(space.alloc(60).unwrap(), FileAddr(48));
        assert_eq!(space.alloc(40).unwrap(), FileAddr(112));
        assert_eq!(space.alloc(40).unwrap(), FileAddr(360));
    }

    #[test]
    fn what_readers_may_look_for_waits_until_enough_came_after_it() {
        let mut space = Space::new(0);
        space.wait(250);
        let mut end = 0;
        for commits in 0.. {
            let at = space.alloc(96).unwrap();
            if at.0 < end {
                // Three others have 288 bytes, and two 192.
                assert_eq!((commits, at), (4, FileAddr(0)));
                break;
            }
            end = space.end();
            space.free(at, 96);
            space.committed();
        }
        // So many of 1000 runs wait in a file of so many bytes: half of it, all, a sixteenth.
        for (len, run, waiting) in
            [(10_000, 96, 553), (8 << 20, 8192, 1000), (4 << 30, 1 << 20, 319)]
        {
            let mut space = Space::new(len);
            space.wait(250);
            let taken: Vec<_> = (0..1000).map(|_| space.alloc(run).unwrap()).collect();
            for at in &taken {
                space.free(*at, run);
                space.committed();
            }
            let end = space.end();
            let again = (0..).take_while(|_| space.alloc(run).unwrap().0 < end).count();
            assert_eq!(1000 - again, waiting, "{len}");
        }
    }

    #[test]
    fn what_definitions_gave_back_waits_for_a_sixteenth() {
        let mut space = Space::new(16_000);
        space.wait(4 << 20);
        let mut end = 0;
        for commits in 0.. {
            let at = space.alloc(400).unwrap();
            if at.0 < end {
                // A sixteenth of 16,000 bytes and some more are three times 400.
                assert_eq!((commits, at), (4, FileAddr(16_000)));
                break;
            }
            end = space.end();
            space.free_definitions(at, 400);
            space.committed();
        }
    }

    #[test]
    fn the_end_is_cut_to_what_is_in_use() {
        let mut space = Space::new(48);
        let [a, b, c] = [100, 60, 30].map(|len| space.alloc(len).unwrap());
        space.free_definitions(c, 30);
        space.free_definitions(a, 100);
        space.release_definitions();
        space.cut_end();
        assert_eq!((space.end(), space.free_bytes()), (246, 0), "not before the next commit");
        space.committed();
        space.release_definitions();
        assert_eq!(space.free_bytes(), 104 + 32);
        space.take_lowest(true);
        assert_eq!(space.alloc(20).unwrap(), a, "lowest, not where it fits best");
        space.cut_end();
        assert_eq!(space.end(), b.0 + 64);
        assert_eq!(space.free_bytes(), 80);
    }

    #[test]
    fn what_is_found_free_is_not_what_readers_look_for() {
        let mut space = Space::new(1000);
        space.wait(4 << 20);
        space.free(FileAddr(200), 96);
        space.free_definitions(FileAddr(400), 80);
        space.untake(FileAddr(600), 40);
        space.found_free(104, 696);
        assert_eq!(space.free_bytes(), 696 - 96 - 80);
        for want in [104, 296, 480] {
            assert_eq!(space.alloc(90).unwrap(), FileAddr(want));
        }
        space.found_free(992, 100);
        assert_eq!(space.free_up_to(1000), Some(992), "nothing is behind the end");
    }

    #[test]
    fn what_must_be_in_one_sector_is() {
        let mut space = Space::new(500);
        for len in [300, 200, 12, 512, 100, 412, 8] {
            let FileAddr(at) = space.alloc_in_sector(len).unwrap();
            assert_eq!(at / SECTOR, (at + len - 1) / SECTOR, "{at} {len}");
        }
        // The gaps were used.
        assert!(space.end() <= 500 + 4 * SECTOR, "{}", space.end());
    }

    #[test]
    fn what_is_long_enough_is_aligned() {
        let mut space = Space::new(100);
        space.align(64, 4096);
        assert_eq!(space.alloc(64).unwrap(), FileAddr(4096));
        assert_eq!(space.alloc(63).unwrap(), FileAddr(104), "shorter, and before it");
        assert_eq!(space.alloc(5000).unwrap(), FileAddr(8192));
        assert_eq!(space.alloc(100).unwrap(), FileAddr(16384));
    }

    #[test]
    fn the_end_is_where_a_page_ends() {
        let mut space = Space::new(100);
        space.alloc(10).unwrap();
        space.round_end(4096).unwrap();
        assert_eq!(space.end(), 4096);
        assert_eq!(space.alloc(3000).unwrap(), FileAddr(120), "what was left of the page serves");
        space.round_end(4096).unwrap();
        assert_eq!((space.alloc(2000).unwrap(), space.end()), (FileAddr(4096), 6096));
        assert!(Space::new(i64::MAX as u64 - 7).round_end(4096).is_err());
    }

    #[test]
    fn space_that_was_not_needed_serves_at_once() {
        let mut space = Space::new(8);
        let [a, b] = [space.alloc(80).unwrap(), space.alloc(80).unwrap()];
        space.untake(FileAddr(a.0 + 32), 48);
        assert_eq!(space.alloc(40).unwrap(), FileAddr(40));
        space.untake(FileAddr(b.0 + 16), 64);
        assert_eq!(space.end(), b.0 + 16);
        assert_eq!(space.alloc(80).unwrap(), FileAddr(b.0 + 16));
    }

    #[test]
    fn what_could_not_be_written_goes_with_the_next() {
        let memory: Arc<dyn Storage> = Arc::new(Memory::from_slice(&[0; 16]));
        let fault =
            FaultPlan { watched: Watched::Write, nth: 1, onwards: false, kind: FaultKind::Eio };
        let storage = Arc::new(Fault::new(Arc::clone(&memory), fault));
        let file = File::bare(storage, crate::Sizes::EIGHT, crate::Limits::default());
        let mut space = Space::new(16);
        let mut fresh = Fresh::new(&mut space);
        fresh.put(vec![1; 8]).unwrap();
        assert!(fresh.write(&file).is_err());
        assert!(!space.is_written());
        let mut fresh = Fresh::new(&mut space);
        fresh.put(vec![2; 8]).unwrap();
        fresh.write(&file).unwrap();
        assert!(space.is_written());
        let mut bytes = [0; 16];
        assert_eq!((memory.read_at(16, &mut bytes).unwrap(), file.len()), (16, 32));
        assert_eq!(bytes, [1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2]);
    }

    #[test]
    fn many_short_runs_do_not_make_it_slow() {
        let mut space = Space::new(0);
        let taken: Vec<FileAddr> = (0..40_000).map(|_| space.alloc(61).unwrap()).collect();
        // Between them gaps of 3 bytes, which then join with what is given back.
        for addr in taken.iter().step_by(2) {
            space.free(*addr, 61);
        }
        space.committed();
        space.committed();
        let end = space.end();
        let again: Vec<FileAddr> = (0..20_000).map(|_| space.alloc(61).unwrap()).collect();
        assert_eq!((again.first(), again.last()), (taken.first(), taken.get(39_998)));
        assert_eq!(space.end(), end);
        space.alloc(65).unwrap();
        assert!(space.end() > end);
    }

    #[test]
    fn what_belongs_to_others_is_left_alone() {
        // Others packed their blocks: from 13 to 27 one that is no more, and the file ends at 53.
        let mut space = Space::new(53);
        space.free(FileAddr(13), 14);
        space.committed();
        space.committed();
        assert_eq!(space.alloc(11).unwrap(), FileAddr(16));
        for want in [56, 64, 72] {
            assert_eq!(space.alloc(3).unwrap(), FileAddr(want));
        }
        // Runs of odd length side by side make one that has room for more.
        space.untake(FileAddr(56), 3);
        space.untake(FileAddr(64), 3);
        assert_eq!((space.alloc(16).unwrap(), space.end()), (FileAddr(56), 75));
    }

    proptest! {
        #[test]
        fn nothing_in_use_is_taken_again(
            end in 0..300u64,
            steps in prop::collection::vec((0..6u8, 1..700u64, any::<prop::sample::Index>()), 1..200),
        ) {
            let mut space = Space::new(end);
            // What is in use or was by the last commit or the one before: (address, length, commits
            // since it was given back).
            let mut used: Vec<(u64, u64, Option<u8>)> = vec![(0, end, None)];
            for (step, len, which) in steps {
                match step {
                    0..3 => {
                        let sector = step == 0 && len <= SECTOR;
                        let at = if sector { space.alloc_in_sector(len) } else { space.alloc(len) };
                        let FileAddr(at) = at.unwrap();
                        prop_assert!(at % 8 == 0 && at + len <= space.end());
                        prop_assert!(!sector || at / SECTOR == (at + len - 1) / SECTOR);
                        for &(other, n, _) in &used {
                            prop_assert!(n == 0 || at + len <= other || other + n <= at, "{at} {len}: {other} {n}");
                        }
                        used.push((at, len, None));
                    }
                    3 => {
                        let (at, len, given_back) = which.get(&used);
                        if given_back.is_none() && *at >= end {
                            space.free(FileAddr(*at), *len);
                            let at = *at;
                            used.iter_mut().filter(|run| run.0 == at).for_each(|run| run.2 = Some(0));
                        }
                    }
                    4 => {
                        let i = which.index(used.len());
                        let (at, n, given_back) = used[i];
                        if given_back.is_none() && at >= end && n > 0 {
                            let kept = len.min(n - 1);
                            space.untake(FileAddr(at + kept), n - kept);
                            used[i].1 = kept;
                        }
                    }
                    _ => {
                        space.committed();
                        used.iter_mut().for_each(|run| run.2 = run.2.map(|commits| commits + 1));
                        used.retain(|run| run.2 != Some(2));
                    }
                }
            }
        }
    }

    #[test]
    fn no_file_is_longer_than_files_can_be() {
        let mut space = Space::new(1000);
        assert!(space.alloc(u64::MAX).is_err());
        assert!(space.alloc(i64::MAX as u64).is_err());
        assert_eq!(space.alloc(8).unwrap(), FileAddr(1000));
    }
}
