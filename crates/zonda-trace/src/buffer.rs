//! What a thread recorded and has not handed over yet.
//!
//! Only the thread itself adds to its buffer, and only it empties it; anyone who holds the sink's lock
//! may write out what is complete. `len` says how far that is: it is published after the words before
//! it. So adding an event takes no lock and no atomic operation beyond plain stores.

use crate::tuning::BUFFER_BYTES;
use crate::tuning::HAND_OVER_TICKS;
use crate::tuning::KNOWN_NAMES;
use std::cell::{Cell, OnceCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use zonda_runtime::memory;

use crate::event::Args;
use crate::format::EVENT_WORDS;
use crate::sink;
use crate::span::NewEvent;

/// Words of a buffer that make whole events.
const CAPACITY_WORDS: usize = BUFFER_BYTES / 8 / EVENT_WORDS * EVENT_WORDS;

/// The same in bytes.
const BYTES: u64 = (CAPACITY_WORDS * size_of::<AtomicU64>()) as u64;

/// The buffer.
#[derive(Debug)]
pub(crate) struct EventBuffer {
    /// Threads are numbered from 1 in the order in which they first record.
    pub(crate) thread: u32,
    words: Box<[AtomicU64]>,
    /// Words that are complete.
    len: AtomicUsize,
    /// Words that were written out; only used under the sink's lock.
    written: AtomicUsize,
    /// When it was emptied last.
    since: AtomicU64,
}

impl EventBuffer {
    pub(crate) fn new(thread: u32) -> EventBuffer {
        memory::process().take_anyway(memory::Kind::Trace, BYTES);
        EventBuffer {
            thread,
            words: (0..CAPACITY_WORDS).map(|_| AtomicU64::new(0)).collect(),
            len: AtomicUsize::new(0),
            written: AtomicUsize::new(0),
            since: AtomicU64::new(crate::clock::ticks()),
        }
    }

    /// Adds an event. For the thread that owns the buffer.
    #[inline]
    fn push(&self, words: [u64; EVENT_WORDS]) {
        let mut at = self.len.load(Ordering::Relaxed);
        let waited = words[0].saturating_sub(self.since.load(Ordering::Relaxed));
        if at + EVENT_WORDS > CAPACITY_WORDS || waited > HAND_OVER_TICKS {
            sink::hand_over(self);
            at = 0;
        }
        for (slot, word) in self.words[at..at + EVENT_WORDS].iter().zip(words) {
            slot.store(word, Ordering::Relaxed);
        }
        self.len.store(at + EVENT_WORDS, Ordering::Release);
    }

    /// Appends to `out` the bytes that were not written yet, and counts them as written. Under the
    /// sink's lock.
    pub(crate) fn take_to(&self, out: &mut Vec<u8>) {
        let len = self.len.load(Ordering::Acquire);
        let begin = self.written.swap(len, Ordering::Relaxed);
        for word in &self.words[begin.min(len)..len] {
            out.extend_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
    }

    /// Empties it, whatever is in it. Under the sink's lock, by the thread that owns it, or in a
    /// process that has no other.
    pub(crate) fn clear(&self) {
        self.written.store(0, Ordering::Relaxed);
        self.len.store(0, Ordering::Release);
        self.since.store(crate::clock::ticks(), Ordering::Relaxed);
    }
}

impl Drop for EventBuffer {
    fn drop(&mut self) {
        memory::process().give_back(memory::Kind::Trace, BYTES);
    }
}

/// What a thread keeps.
struct ThreadRecorder {
    buffer: Arc<EventBuffer>,
    /// Where names lie in memory, and their numbers.
    names: [Cell<(usize, usize, u16)>; KNOWN_NAMES],
    /// Variables whose names the sink knows.
    variables: [Cell<(u32, u64)>; KNOWN_NAMES],
    /// The file that events without one belong to.
    current: Cell<u32>,
}

impl ThreadRecorder {
    fn new() -> ThreadRecorder {
        ThreadRecorder {
            buffer: sink::register(),
            names: [const { Cell::new((0, 0, 0)) }; KNOWN_NAMES],
            variables: [const { Cell::new((0, u64::MAX)) }; KNOWN_NAMES],
            current: Cell::new(0),
        }
    }

    /// The number that stands for a name.
    #[inline]
    fn number(&self, name: &'static str) -> u16 {
        if name.is_empty() {
            return 0;
        }
        let (address, len) = (name.as_ptr().addr(), name.len());
        let place = &self.names[(address >> 3 ^ address >> 9 ^ len) % KNOWN_NAMES];
        let (known, known_len, number) = place.get();
        if known == address && known_len == len {
            return number;
        }
        let number = sink::word(name);
        place.set((address, len, number));
        number
    }
}

impl Drop for ThreadRecorder {
    fn drop(&mut self) {
        sink::unregister(&self.buffer);
    }
}

thread_local! {
    static MINE: OnceCell<ThreadRecorder> = const { OnceCell::new() };
}

/// Adds an event to the buffer of the calling thread.
#[inline(never)]
pub(crate) fn record(event: &NewEvent) {
    let recorded = MINE.try_with(|mine| {
        let mine = mine.get_or_init(ThreadRecorder::new);
        let Args { name, file, .. } = event.args;
        let file = if file == 0 { mine.current.get() } else { file };
        mine.buffer.push(event.words(mine.number(name), file));
    });
    if recorded.is_err() {
        // The thread is ending, perhaps with its process: what is written to files at exit.
        sink::record_late(event);
    }
}

/// The file that events of the calling thread belong to where they name none.
pub(crate) fn current() -> u32 {
    let current = MINE.try_with(|mine| mine.get().map_or(0, |mine| mine.current.get()));
    current.unwrap_or(0)
}

pub(crate) fn set_current(file: u32) {
    // A thread that is ending records without.
    let _ = MINE.try_with(|mine| mine.get_or_init(ThreadRecorder::new).current.set(file));
}

/// Whether this thread saw a variable before; from now on it has.
pub(crate) fn seen(file: u32, variable: u64) -> bool {
    MINE.try_with(|mine| {
        let mine = mine.get_or_init(ThreadRecorder::new);
        let mixed = variable ^ variable >> 32 ^ u64::from(file) << 3;
        let place = &mine.variables[(mixed % KNOWN_NAMES as u64) as usize];
        place.replace((file, variable)) == (file, variable)
    })
    .unwrap_or(true)
}

/// In a child of `fork`: numbers and names that the parent's trace has are unknown to the child's.
pub(crate) fn forget() {
    let _ = MINE.try_with(|mine| {
        if let Some(mine) = mine.get() {
            mine.variables.iter().for_each(|place| place.set((0, u64::MAX)));
        }
    });
}
