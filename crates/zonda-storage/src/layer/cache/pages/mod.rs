//! Pages: what is known of each of their bytes, and what becomes of that by each thing that happens to a page.
//!
//! | a byte is | known by | and means |
//! |---|---|---|
//! | absent | nothing | what is below counts |
//! | read | `read` | it is as below |
//! | written | `dirty` | it is newer than what is below |
//! | awaited | `fill_runs` | so it is, and nobody has written it down: a fill value |
//!
//! | what happens | absent | read | written | awaited |
//! |---|---|---|---|---|
//! | [`Page::put`] | written | written | written | written |
//! | [`Page::lay`] | awaited | written | written | written |
//! | [`Page::settle`] | | | | written |
//! | [`Page::add_read`], after the others are settled | read | | | |
//! | [`Page::forget_written`], when all is below | | | read | |
//! | [`Page::forget_read`] | | absent | | |
//! | [`Page::uncover`], of a page that has nothing else | | | | absent |
//! | [`Page::truncate`], behind the cut | | absent | absent | absent |
//!
//! Knows bytes and nothing else: no lock, no storage, no other page. Who may do what when is in `coherence`.

mod buffer;
mod extents;
mod fill_run;

pub(crate) use buffer::PageBuffer;
pub(crate) use fill_run::FillRun;

use crate::StorageError;
use crate::copy::copy_past_cache;
use crate::slab::{self, SlabPage};
use crate::tuning::GROW_WHOLE_BYTES;
use extents::PageExtents;

/// The index of a slot that holds no page.
pub(crate) const NO_PAGE: u64 = u64::MAX;

/// Copies between slices of one length, mostly short: one element is one move and not a call.
#[inline(always)]
pub(crate) fn copy_short(to: &mut [u8], from: &[u8]) {
    fn one<const N: usize>(to: &mut [u8], from: &[u8]) -> bool {
        match (<&mut [u8; N]>::try_from(to), <&[u8; N]>::try_from(from)) {
            (Ok(to), Ok(from)) => {
                *to = *from;
                true
            }
            _ => false,
        }
    }
    if !one::<8>(to, from) && !one::<4>(to, from) {
        to.copy_from_slice(from);
    }
}

/// The contents of one page.
#[derive(Debug)]
pub(crate) struct Page {
    /// Which page it is: its offset in units of the page size.
    pub(crate) index: u64,
    /// The bytes, as far as they were needed; only those that are valid mean something.
    pub(crate) buf: PageBuffer,
    /// What holds the storage's contents, where that is more than what was written.
    read: Option<PageExtents>,
    /// What was written and is not below yet.
    pub(crate) dirty: PageExtents,
    /// What is to be written where nothing else was until the page is read or written back; no part
    /// of what is valid.
    fill_runs: Vec<FillRun>,
    /// How often a scattered read found something missing.
    pub(crate) misses: u32,
}

impl Default for Page {
    fn default() -> Self {
        Page {
            index: NO_PAGE,
            buf: PageBuffer::Own(Vec::new()),
            read: None,
            dirty: PageExtents::default(),
            fill_runs: Vec::new(),
            misses: 0,
        }
    }
}

impl Page {
    /// Gives it memory for a whole page.
    pub(crate) fn set_memory(&mut self, memory: SlabPage) {
        self.buf = PageBuffer::Whole(memory);
    }

    /// Makes it an empty page `index`; the buffer is kept for use.
    pub(crate) fn reset(&mut self, index: u64) {
        self.index = index;
        self.read = None;
        self.dirty.clear();
        self.fill_runs.clear();
        self.misses = 0;
    }

    /// Makes it an empty place without memory.
    pub(crate) fn clear(&mut self) {
        self.reset(NO_PAGE);
        self.buf = PageBuffer::Own(Vec::new());
    }

    /// Stores `data` at `a`, to be written back; past the processor's cache where it is not read
    /// soon.
    #[inline]
    pub(crate) fn put(
        &mut self,
        a: usize,
        data: &[u8],
        page_bytes: usize,
        past_cache: bool,
    ) -> Result<(), StorageError> {
        let b = a + data.len();
        if b > self.buf.len() {
            self.grow(b, page_bytes)?;
        }
        if past_cache {
            copy_past_cache(&mut self.buf[a..b], data);
        } else {
            copy_short(&mut self.buf[a..b], data);
        }
        self.add_written(a, b);
        Ok(())
    }

    /// What holds the storage's contents.
    #[inline]
    pub(crate) fn valid(&self) -> &PageExtents {
        self.read.as_ref().unwrap_or(&self.dirty)
    }

    /// Notes that `a..b` was read from below.
    pub(crate) fn add_read(&mut self, a: usize, b: usize) {
        self.read.get_or_insert_with(|| self.dirty.clone()).insert(a, b);
    }

    #[inline]
    fn add_written(&mut self, a: usize, b: usize) {
        if let Some(read) = &mut self.read {
            read.insert(a, b);
        }
        self.dirty.insert(a, b);
    }

    /// Notes that what was written is below.
    pub(crate) fn forget_written(&mut self) {
        match self.read {
            Some(_) => self.dirty.clear(),
            None => self.read = Some(std::mem::take(&mut self.dirty)),
        }
    }

    /// Forgets what was read from below.
    pub(crate) fn forget_read(&mut self) {
        self.read = None;
    }

    /// Forgets what lies behind `end`.
    pub(crate) fn truncate(&mut self, end: usize) {
        if let Some(read) = &mut self.read {
            read.truncate(end);
        }
        self.dirty.truncate(end);
        self.fill_runs.retain_mut(|fill_run| fill_run.truncate(end));
    }

    /// Whether nothing is to be written back.
    pub(crate) fn is_clean(&self) -> bool {
        self.dirty.is_empty() && self.fill_runs.is_empty()
    }

    /// Whether every byte is valid.
    #[inline]
    pub(crate) fn is_complete(&self, page_bytes: usize) -> bool {
        self.valid().is_one(0, page_bytes)
    }

    /// Lays a repeated element under `a..b`; `phase` says which byte of it is at `a`.
    pub(crate) fn lay(
        &mut self,
        (a, b): (usize, usize),
        element: &[u8],
        phase: usize,
        page_bytes: usize,
    ) -> Result<(), StorageError> {
        let fill_run = FillRun::new((a, b), element, phase);
        let crossed = self.fill_runs.iter().any(|other| other.from < b && a < other.to);
        if !crossed && self.valid().gaps(a, b)[..] == [(a, b)] {
            self.fill_runs.push(fill_run);
            return Ok(());
        }
        // Something is there already, which this replaces.
        self.settle(page_bytes)?;
        self.reach(b, page_bytes)?;
        fill_run.paint(a, &mut self.buf[a..b]);
        self.add_written(a, b);
        Ok(())
    }

    /// Takes the grounds away under `a..b`, where nothing but grounds was ever put on the page;
    /// gives what was taken, `None` for other pages.
    pub(crate) fn uncover(&mut self, a: usize, b: usize) -> Option<Vec<FillRun>> {
        if self.fill_runs.is_empty() || self.read.is_some() || !self.dirty.is_empty() {
            return None;
        }
        let mut taken = Vec::new();
        for fill_run in std::mem::take(&mut self.fill_runs) {
            taken.extend(fill_run.within(a, b));
            self.fill_runs.extend(fill_run.without(a, b));
        }
        Some(taken)
    }

    /// Lays what was taken away again, where nothing else was put meanwhile. What was read meanwhile was
    /// read without it.
    pub(crate) fn cover_again(&mut self, taken: &[FillRun]) {
        self.forget_read();
        for fill_run in taken {
            let gaps = self.valid().gaps(fill_run.from, fill_run.to);
            self.fill_runs.extend(gaps.into_iter().filter_map(|(a, b)| fill_run.within(a, b)));
        }
    }

    /// Writes the grounds where nothing else was written. Without memory for it the page stays as it
    /// is.
    pub(crate) fn settle(&mut self, page_bytes: usize) -> Result<(), StorageError> {
        if let Some(end) = self.fill_runs.iter().map(|fill_run| fill_run.to).max() {
            self.reach(end, page_bytes)?;
        }
        for fill_run in std::mem::take(&mut self.fill_runs) {
            for (a, b) in self.valid().gaps(fill_run.from, fill_run.to) {
                fill_run.paint(a, &mut self.buf[a..b]);
            }
            self.add_written(fill_run.from, fill_run.to);
        }
        Ok(())
    }

    #[cold]
    fn grow(&mut self, b: usize, page_bytes: usize) -> Result<(), StorageError> {
        let no_memory = StorageError::NoMemory { bytes: page_bytes as u64 };
        match &mut self.buf {
            PageBuffer::Own(bytes) if b <= GROW_WHOLE_BYTES => {
                bytes.try_reserve(b.saturating_sub(bytes.len())).map_err(|_| no_memory)?;
                bytes.resize(b, 0);
            }
            _ => {
                let mut whole = slab::zeros(page_bytes).ok_or(no_memory)?;
                whole[..self.buf.len()].copy_from_slice(&self.buf);
                self.buf = PageBuffer::Own(whole);
            }
        }
        Ok(())
    }

    /// Makes the buffer at least `b` bytes long.
    pub(crate) fn reach(&mut self, b: usize, page_bytes: usize) -> Result<(), StorageError> {
        if b > self.buf.len() {
            self.grow(b, page_bytes)?;
        }
        Ok(())
    }
}
