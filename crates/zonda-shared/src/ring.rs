//! A ring of frames through which one process hands bytes to another: nothing is copied to a kernel, and no system call is made while the
//! other is awake.
//!
//! The writer maps the memory, and makes frames in place. The reader maps its first page only, and copies frames out by reading the memory
//! as a file: whatever the writer does meanwhile, what was read stays, and lengths are compared with what there can be. The memory is
//! sealed, so that it cannot become shorter under who maps it.
//!
//! | Bytes | What |
//! |---|---|
//! | 0 to 4095 | words of the head, see [`Word`] |
//! | the rest | frames, each a word with its length, its bytes, and what is missing to a multiple of a word |
//!
//! A frame lies in one piece: a length of [`SKIPPED`] says that the rest up to the end holds none.
//!
//! Both sides count bytes, and a byte lies where its number minus [`Word::Base`], modulo the capacity, says. A writer that finds the ring empty
//! begins anew: it makes the number of the next byte the base. So who has a reader that keeps up uses the same few pages again and again,
//! and the others are never touched. The reader sees no base too early or too late: the writer changes it only while everything is read, and
//! says so together with the next frame.
//!
//! A reader that waits *dozes* for a while: it looks by itself soon, so that a writer with more to come need not wake it. Then it *sleeps*, and
//! is woken by the next frame. It may at last wait for something else, such as a message, of which [`Frame::send`] reminds the writer.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, ftruncate, memfd_create,
};
use rustix::io::Errno;
use rustix::thread::futex;
use zonda_runtime::lock::{Mutex, MutexGuard, Rank};

use crate::channel::behind_standard;
use crate::layout::WORD;

/// First word; it changes with the layout.
const MAGIC: u64 = u64::from_le_bytes(*b"zonda\0r\x02");
/// Bytes of the head.
const HEAD: usize = 4096;
/// In the place of a length: the rest of the ring holds no frame.
const SKIPPED: u64 = u64::MAX;
/// All threads that can sleep on a word.
const MOST_SLEEPERS: u32 = i32::MAX.cast_unsigned();
/// Most bytes of a ring.
const MOST_BYTES: usize = 1 << 40;
/// How the reader waits: it looks by itself within [`DOZE`], or is to be woken, or waits for a message.
const DOZES: u32 = 2;
const SLEEPS: u32 = 1;
const WAITS_ELSEWHERE: u32 = 3;
/// How long a reader dozes at a time, and in all after a frame: to wake it costs a writer as much as copying some ten thousand bytes.
const DOZE: Duration = Duration::from_micros(500);
const DOZES_FOR: Duration = Duration::from_millis(20);
/// A dozing reader is woken where so many bytes wait: one that works meanwhile gives room back while it is in the caches of the processor.
const DOZE_MOST_BYTES: u64 = 1 << 20;
/// Bytes that a reader takes in at a time: many small frames, or the beginning of a large one.
const BLOCK_BYTES: usize = 16 << 10;

/// Words of the head, each in a line of the cache of its own.
#[derive(Clone, Copy)]
enum Word {
    Magic,
    Capacity,
    /// Bytes that were ever written; by the writer alone.
    Written,
    /// Bytes that were ever read; by the reader alone.
    Read,
    /// Not 0 where the reader sleeps: on this.
    ReaderSleeps,
    /// Not 0 where the writer sleeps: on this.
    WriterSleeps,
    /// How often the reader has said that there is news elsewhere.
    News,
    /// The number of the byte at the beginning of the frames; by the writer alone.
    Base,
}

/// The head of the memory, as one of both processes maps it.
#[derive(Debug)]
struct Head(MmapRaw);

impl Head {
    #[expect(unsafe_code, reason = "memory that another process sees")]
    fn word(&self, word: Word) -> &AtomicU64 {
        let at = word as usize * 64;
        assert!(at + WORD <= HEAD && HEAD <= self.0.len(), "a word outside of the head");
        // SAFETY: inside of the mapping and aligned, since a mapping begins at a page; it lives as long as the reference; words of the head
        // are reached in this way only, and by the other process not by references of this one.
        unsafe { AtomicU64::from_ptr(self.0.as_mut_ptr().add(at).cast()) }
    }

    /// The half of a word on which a thread can sleep.
    #[expect(unsafe_code, reason = "memory that another process sees")]
    fn sleeps(&self, word: Word) -> &AtomicU32 {
        let at = word as usize * 64;
        assert!(at + WORD <= HEAD && HEAD <= self.0.len(), "a word outside of the head");
        // SAFETY: as in `word`; these words are reached as halves only.
        unsafe { AtomicU32::from_ptr(self.0.as_mut_ptr().add(at).cast()) }
    }

    /// Sleeps until the other process has done something, or the time is over, unless `is_done`.
    fn sleep(
        &self,
        (on, how): (Word, u32),
        within: Duration,
        is_done: impl Fn() -> bool,
    ) -> io::Result<()> {
        let word = self.sleeps(on);
        word.store(how, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if is_done() {
            word.store(0, Ordering::SeqCst);
            return Ok(());
        }
        let within = futex::Timespec::try_from(within).ok();
        let slept = futex::wait(word, futex::Flags::empty(), how, within.as_ref());
        word.store(0, Ordering::SeqCst);
        match slept {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Wakes the other process, if it sleeps; one that dozes only where it is `urgent`. Whether it waits for something else.
    fn wake(&self, on: Word, urgent: impl Fn() -> bool) -> bool {
        fence(Ordering::SeqCst);
        let word = self.sleeps(on);
        let how = match word.load(Ordering::SeqCst) {
            0 => return false,
            DOZES if !urgent() => return false,
            _ => word.swap(0, Ordering::SeqCst),
        };
        if how != 0 && how != WAITS_ELSEWHERE {
            // Who is gone need not be woken.
            let _ = futex::wake(word, futex::Flags::empty(), MOST_SLEEPERS);
        }
        how == WAITS_ELSEWHERE
    }
}

/// The writer's end. Threads write in turn.
#[derive(Debug)]
pub struct Ring {
    head: Head,
    fd: OwnedFd,
    capacity: usize,
    /// The process that may write: a forked child has the same memory.
    pid: u32,
    end: Mutex<End>,
}

/// Where the writer is.
#[derive(Debug, Default)]
struct End {
    /// Bytes that were ever written.
    written: u64,
    /// The number of the byte at the beginning.
    base: u64,
}

/// Bytes of a frame with its length.
fn framed(len: usize) -> Option<usize> {
    len.checked_next_multiple_of(WORD)?.checked_add(WORD)
}

impl Ring {
    /// A ring for at least so many bytes of frames.
    ///
    /// # Errors
    /// What the system says if it has no such memory.
    pub fn new(bytes: usize) -> io::Result<Arc<Ring>> {
        let capacity = bytes.clamp(HEAD, MOST_BYTES).next_multiple_of(HEAD);
        let len = capacity + HEAD;
        // The system ends a program (`SIGXFSZ`) that makes a file longer than it may, this one as well.
        let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize);
        if limit.current.is_some_and(|most| most < len as u64) {
            return Err(Errno::FBIG.into());
        }
        let fd = memfd_create("zonda-ring", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let fd = behind_standard(fd)?;
        ftruncate(&fd, len as u64)?;
        fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let head = Head(MmapRaw::map_raw(&fd)?);
        head.word(Word::Capacity).store(capacity as u64, Ordering::Relaxed);
        head.word(Word::Magic).store(MAGIC, Ordering::Release);
        let pid = zonda_runtime::fork::process_id();
        let end = Mutex::ranked(Rank::Arena, End::default());
        Ok(Arc::new(Ring { head, fd, capacity, pid, end }))
    }

    /// What the reader needs.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Most bytes of a frame: two of them fit at any time, so that one is read while the next one is written.
    #[must_use]
    pub fn most_bytes(&self) -> usize {
        self.capacity / 2 - 2 * WORD
    }

    /// Bytes that were written and not read yet.
    #[must_use]
    pub fn waiting_bytes(&self) -> u64 {
        self.end.lock().written.saturating_sub(self.read())
    }

    fn read(&self) -> u64 {
        self.head.word(Word::Read).load(Ordering::Acquire)
    }

    /// How often the reader has said that there is news elsewhere ([`RingNews::tell`]).
    #[must_use]
    pub fn n_news(&self) -> u64 {
        self.head.word(Word::News).load(Ordering::Acquire)
    }

    /// Begins a frame of so many bytes, if there is room now.
    ///
    /// # Errors
    /// [`Full`], also in a forked child, and for more than [`Ring::most_bytes`].
    pub fn begin(&self, len: usize) -> Result<Frame<'_>, Full> {
        let end = self.end.lock();
        let full = Full { read: self.read() };
        let is_own = self.pid == zonda_runtime::fork::process_id();
        let framed = framed(len).filter(|_| is_own && len <= self.most_bytes()).ok_or(full)?;
        let capacity = self.capacity as u64;
        // A reader that says nonsense gets nothing.
        let waiting = end.written.checked_sub(full.read).ok_or(full)?;
        let base = if waiting == 0 { end.written } else { end.base };
        let at = (end.written - base) % capacity;
        let skipped = if at + framed as u64 > capacity { capacity - at } else { 0 };
        if waiting + skipped + framed as u64 > capacity {
            return Err(full);
        }
        let at = usize::try_from((at + skipped) % capacity).map_err(|_| full)?;
        Ok(Frame { ring: self, end, base, skipped, at, len })
    }

    /// Waits until the reader has taken something since a frame found no room, or the time is over. Of several threads that wait one may
    /// sleep for all of the time.
    ///
    /// # Errors
    /// What the system says.
    pub fn wait(&self, since: Full, within: Duration) -> io::Result<()> {
        self.wake();
        self.head.sleep((Word::WriterSleeps, SLEEPS), within, || self.read() != since.read)
    }

    /// Wakes the reader, also one that dozes: somebody waits for it.
    pub fn wake(&self) {
        // One that sleeps in another way was woken with the frame, or has none; and one that waits elsewhere would not be told of the next.
        let word = self.head.sleeps(Word::ReaderSleeps);
        if word.compare_exchange(DOZES, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            // Who is gone need not be woken.
            let _ = futex::wake(word, futex::Flags::empty(), MOST_SLEEPERS);
        }
    }

    #[expect(unsafe_code, reason = "memory that another process reads")]
    fn bytes_mut<'a>(
        &'a self,
        _alone: &'a mut MutexGuard<'_, End>,
        at: usize,
        len: usize,
    ) -> &'a mut [u8] {
        assert!(at.checked_add(len).is_some_and(|end| end <= self.capacity), "outside of the ring");
        // SAFETY: inside of the mapping, which lives as long as the ring; who holds the lock is the only one of this process who writes
        // there, and the other process writes nothing but the head and has no references.
        unsafe { std::slice::from_raw_parts_mut(self.head.0.as_mut_ptr().add(HEAD + at), len) }
    }
}

/// There is no room for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// Bytes that the reader had ever read.
    read: u64,
}

/// A frame that is being made. One that is dropped was never there.
#[derive(Debug)]
pub struct Frame<'a> {
    ring: &'a Ring,
    end: MutexGuard<'a, End>,
    base: u64,
    skipped: u64,
    at: usize,
    len: usize,
}

impl Frame<'_> {
    /// Its bytes: whatever was there before.
    pub fn bytes(&mut self) -> &mut [u8] {
        self.ring.bytes_mut(&mut self.end, self.at + WORD, self.len)
    }

    /// Hands it to the reader. True where that one waits elsewhere ([`RingReader::wait_elsewhere`]), and is to be told there.
    #[must_use]
    pub fn send(mut self) -> bool {
        let Frame { ring, base, skipped, .. } = self;
        if skipped > 0 {
            let at = (self.end.written - base) % ring.capacity as u64;
            let at = usize::try_from(at).unwrap_or_default();
            ring.bytes_mut(&mut self.end, at, WORD).copy_from_slice(&SKIPPED.to_ne_bytes());
        }
        let len = (self.len as u64).to_ne_bytes();
        ring.bytes_mut(&mut self.end, self.at, WORD).copy_from_slice(&len);
        self.end.base = base;
        self.end.written += skipped + framed(self.len).unwrap_or_default() as u64;
        let written = self.end.written;
        // The reader looks at the base after it has seen that there is a frame.
        ring.head.word(Word::Base).store(base, Ordering::Relaxed);
        ring.head.word(Word::Written).store(written, Ordering::Release);
        let is_much = || written.saturating_sub(ring.read()) >= DOZE_MOST_BYTES;
        ring.head.wake(Word::ReaderSleeps, is_much)
    }
}

/// The reader's end.
#[derive(Debug)]
pub struct RingReader {
    head: Head,
    memory: File,
    capacity: u64,
    /// Bytes that were ever read.
    read: u64,
    /// What was read last of the memory, and the number of its first byte.
    block: Vec<u8>,
    block_from: u64,
    /// The next frame, where it is known.
    next: Option<Next>,
    /// When the last frame was taken.
    busy: Instant,
}

/// A frame that is there.
#[derive(Clone, Copy, Debug)]
struct Next {
    skipped: u64,
    len: usize,
    framed: u64,
}

fn wrong() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a ring whose frames do not fit it")
}

impl RingReader {
    /// The reader of a ring that another process made.
    ///
    /// # Errors
    /// `InvalidData` for what is no ring of this version; what the system says.
    pub fn of(fd: OwnedFd) -> io::Result<RingReader> {
        let wrong = |why| io::Error::new(io::ErrorKind::InvalidData, why);
        let seals = fcntl_get_seals(&fd)?;
        if !seals.contains(SealFlags::SHRINK) {
            return Err(wrong("memory that can become shorter"));
        }
        let memory = File::from(fd);
        let len = memory.metadata()?.len();
        let capacity = len.checked_sub(HEAD as u64).filter(|&capacity| capacity >= HEAD as u64);
        let capacity = capacity.ok_or_else(|| wrong("memory that is too short for a ring"))?;
        let head = Head(MmapOptions::new().len(HEAD).map_raw(&memory)?);
        let known = [(Word::Magic, MAGIC), (Word::Capacity, capacity)];
        if known.iter().any(|(word, value)| head.word(*word).load(Ordering::Acquire) != *value) {
            return Err(wrong("no ring of this version"));
        }
        let busy = Instant::now();
        let block = Vec::with_capacity(BLOCK_BYTES);
        Ok(RingReader { head, memory, capacity, read: 0, block, block_from: 0, next: None, busy })
    }

    fn written(&self) -> u64 {
        self.head.word(Word::Written).load(Ordering::Acquire)
    }

    /// What tells the writer of news, from any thread.
    ///
    /// # Errors
    /// What the system says.
    pub fn news(&self) -> io::Result<RingNews> {
        Ok(RingNews(Head(MmapOptions::new().len(HEAD).map_raw(&self.memory)?)))
    }

    /// Bytes that were ever taken.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.read
    }

    /// Whether there is a frame now.
    #[must_use]
    pub fn has_frame(&self) -> bool {
        self.written() != self.read
    }

    /// The bytes of the next frame; `None` where there is none within the time.
    ///
    /// # Errors
    /// `InvalidData` for lengths that cannot be: the ring is of no use any more; what the system says.
    pub fn wait(&mut self, within: Duration) -> io::Result<Option<usize>> {
        if let Some(next) = self.next {
            return Ok(Some(next.len));
        }
        if !self.has_frame() {
            let began = Instant::now();
            let (until, dozes_until) = (began + within, self.busy + DOZES_FOR);
            while !self.has_frame() {
                let now = Instant::now();
                let left = until.saturating_duration_since(now);
                if left.is_zero() {
                    return Ok(None);
                }
                let (how, left) =
                    if now < dozes_until { (DOZES, left.min(DOZE)) } else { (SLEEPS, left) };
                self.head.sleep((Word::ReaderSleeps, how), left, || self.has_frame())?;
            }
        }
        let waiting = self.written().checked_sub(self.read).ok_or_else(wrong)?;
        let base = self.head.word(Word::Base).load(Ordering::Acquire);
        let place = self.read.checked_sub(base).ok_or_else(wrong)? % self.capacity;
        if waiting > self.capacity {
            return Err(wrong());
        }
        let (mut skipped, mut len) = (0, self.length(0, place, waiting)?);
        if len == SKIPPED {
            skipped = self.capacity - place;
            len = self.length(skipped, 0, waiting)?;
        }
        let len = usize::try_from(len).map_err(|_| wrong())?;
        let framed = framed(len).ok_or_else(wrong)? as u64;
        let at = if skipped > 0 { 0 } else { place };
        if skipped + framed > waiting || at + framed > self.capacity {
            return Err(wrong());
        }
        self.next = Some(Next { skipped, len, framed });
        Ok(Some(len))
    }

    /// The length of the frame so many bytes further, which is at `place`.
    fn length(&mut self, further: u64, place: u64, waiting: u64) -> io::Result<u64> {
        if further + WORD as u64 > waiting || place + WORD as u64 > self.capacity {
            return Err(wrong());
        }
        let from = self.read + further;
        if let Some(length) = self.known(from).and_then(|known| known.first_chunk()) {
            return Ok(u64::from_ne_bytes(*length));
        }
        let most = (waiting - further).min(self.capacity - place);
        let most = usize::try_from(most).map_or(BLOCK_BYTES, |most| most.min(BLOCK_BYTES));
        self.block.resize(most, 0);
        self.block_from = from;
        let done = self.memory.read_exact_at(&mut self.block, HEAD as u64 + place);
        if let Err(error) = done {
            self.block.clear();
            return Err(error);
        }
        self.known(from)
            .and_then(|known| known.first_chunk())
            .map_or_else(|| Err(wrong()), |length| Ok(u64::from_ne_bytes(*length)))
    }

    /// What is known of the memory from there on. It was written when it was read, and is not written anew before this reader has gone on.
    fn known(&self, from: u64) -> Option<&[u8]> {
        let skip = usize::try_from(from.checked_sub(self.block_from)?).ok()?;
        self.block.get(skip..).filter(|known| !known.is_empty())
    }

    /// Copies the bytes of the next frame, which [`RingReader::wait`] has told of, and gives its place back.
    ///
    /// # Errors
    /// `InvalidInput` for memory of another length; what the system says.
    pub fn take(&mut self, into: &mut [u8]) -> io::Result<()> {
        let next = self.next.filter(|next| next.len == into.len());
        let Next { skipped, framed, .. } = next.ok_or(io::ErrorKind::InvalidInput)?;
        let from = self.read + skipped + WORD as u64;
        let known = self.known(from).unwrap_or_default();
        let n_known = known.len().min(into.len());
        into[..n_known].copy_from_slice(&known[..n_known]);
        if n_known < into.len() {
            let base = self.head.word(Word::Base).load(Ordering::Acquire);
            let place = from.checked_sub(base).ok_or_else(wrong)? % self.capacity;
            let at = HEAD as u64 + place + n_known as u64;
            self.memory.read_exact_at(&mut into[n_known..], at)?;
        }
        self.read += skipped + framed;
        self.next = None;
        self.busy = Instant::now();
        self.head.word(Word::Read).store(self.read, Ordering::Release);
        self.head.wake(Word::WriterSleeps, || true);
        Ok(())
    }

    /// Waits for something else than frames, unless there is one: `wait` returns when whoever sent a frame has told so ([`Frame::send`]), or
    /// for another reason.
    pub fn wait_elsewhere<T>(&mut self, wait: impl FnOnce() -> T) -> Option<T> {
        let word = self.head.sleeps(Word::ReaderSleeps);
        word.store(WAITS_ELSEWHERE, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let waited = if self.has_frame() { None } else { Some(wait()) };
        word.store(0, Ordering::SeqCst);
        waited
    }
}

/// Tells the writer of a ring that there is news elsewhere, such as a message on a socket.
#[derive(Debug)]
pub struct RingNews(Head);

impl RingNews {
    /// Bytes that the writer has ever handed over. It may say anything.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.0.word(Word::Written).load(Ordering::Acquire)
    }

    /// Tells it: [`Ring::n_news`] is one more.
    pub fn tell(&self) {
        self.0.word(Word::News).fetch_add(1, Ordering::AcqRel);
        self.0.wake(Word::WriterSleeps, || true);
    }
}

#[cfg(test)]
mod tests {
    use zonda_runtime::worker::{self, Purpose};

    use super::*;

    const SOON: Duration = Duration::from_millis(20);
    const LATER: Duration = Duration::from_secs(20);

    fn reader(ring: &Ring) -> RingReader {
        RingReader::of(ring.fd().try_clone_to_owned().unwrap()).unwrap()
    }

    fn send(ring: &Ring, bytes: &[u8]) -> bool {
        let Ok(mut frame) = ring.begin(bytes.len()) else { return false };
        frame.bytes().copy_from_slice(bytes);
        let _ = frame.send();
        true
    }

    fn next(reader: &mut RingReader, frame: &mut Vec<u8>, within: Duration) -> io::Result<bool> {
        let Some(len) = reader.wait(within)? else { return Ok(false) };
        frame.resize(len, 0);
        reader.take(frame).map(|()| true)
    }

    #[test]
    fn frames_come_as_they_went() {
        let ring = Ring::new(HEAD).unwrap();
        let mut reader = reader(&ring);
        let (mut frame, mut random) = (Vec::new(), fastrand::Rng::with_seed(3));
        assert!(!next(&mut reader, &mut frame, SOON).unwrap());
        let mut sent = std::collections::VecDeque::new();
        let (mut n_full, mut n_read, mut n_anew, mut base) = (0, 0, 0, 0);
        for n in 0..20_000_u32 {
            let shift = random.usize(..12);
            let len = random.usize(..=ring.most_bytes() >> shift);
            let bytes = vec![n as u8; len];
            if send(&ring, &bytes) {
                sent.push_back(bytes);
            } else {
                n_full += 1;
            }
            // Now the writer is ahead, now the reader has everything.
            let n_reads = random.usize(if n / 64 % 2 == 0 { ..2 } else { ..5 });
            for _ in 0..n_reads {
                let is_there = next(&mut reader, &mut frame, Duration::ZERO).unwrap();
                assert_eq!(is_there.then_some(&frame), sent.pop_front().as_ref());
                n_read += usize::from(is_there);
            }
            n_anew += usize::from(std::mem::replace(&mut base, ring.end.lock().base) != base);
        }
        assert!(n_full > 100 && n_read > 5000 && n_anew > 100, "{n_full} {n_read} {n_anew}");
    }

    #[test]
    fn two_threads_wait_for_each_other() {
        let ring = Ring::new(2 * HEAD).unwrap();
        let mut reader = reader(&ring);
        let n = 20_000_u64;
        std::thread::scope(|scope| {
            let write = || {
                for number in 0..n {
                    let bytes = number.to_ne_bytes().repeat(1 + (number % 97) as usize);
                    loop {
                        match ring.begin(bytes.len()) {
                            Ok(mut frame) => {
                                frame.bytes().copy_from_slice(&bytes);
                                break assert!(!frame.send());
                            }
                            Err(full) => ring.wait(full, LATER).unwrap(),
                        }
                    }
                }
            };
            let writer = worker::spawn_scoped(scope, String::new(), Purpose::WriteBehind, write);
            writer.unwrap();
            let mut frame = Vec::new();
            for number in 0..n {
                assert!(next(&mut reader, &mut frame, LATER).unwrap(), "{number}");
                assert_eq!(frame, number.to_ne_bytes().repeat(1 + (number % 97) as usize));
            }
        });
        assert_eq!(ring.waiting_bytes(), 0);
    }

    #[test]
    fn a_frame_that_is_dropped_was_never_there() {
        let ring = Ring::new(HEAD).unwrap();
        let mut reader = reader(&ring);
        ring.begin(8).unwrap().bytes().fill(9);
        assert!(!reader.has_frame());
        assert!(send(&ring, b"one"));
        let mut frame = Vec::new();
        assert!(next(&mut reader, &mut frame, SOON).unwrap());
        assert_eq!(frame, b"one");
        assert!(ring.begin(ring.most_bytes() + 1).is_err());
        assert!(ring.begin(ring.most_bytes()).is_ok());
    }

    /// Who has a reader that keeps up uses the same pages again and again.
    #[test]
    fn an_empty_ring_begins_anew() {
        const FRAMED: usize = 64 << 10;
        let ring = Ring::new(64 * FRAMED).unwrap();
        let mut reader = reader(&ring);
        let mut frame = Vec::new();
        let held = || rustix::fs::fstat(ring.fd()).unwrap().st_blocks * 512;
        let bytes = vec![1; FRAMED - WORD];
        for n in 0..1000 {
            let n_frames = 1 + n % 3;
            (0..n_frames).for_each(|_| assert!(send(&ring, &bytes)));
            (0..n_frames).for_each(|_| assert!(next(&mut reader, &mut frame, LATER).unwrap()));
            assert_eq!(frame, bytes);
        }
        assert_eq!(held(), (HEAD + 3 * FRAMED) as i64);
        // One frame that waits is enough to go on behind it, to the end and round it.
        for n in 0..1000_u32 {
            assert!(send(&ring, &n.to_ne_bytes().repeat(5000)));
            if n > 0 {
                assert!(next(&mut reader, &mut frame, LATER).unwrap());
                assert_eq!(frame, (n - 1).to_ne_bytes().repeat(5000));
            }
        }
        assert!(held() > (HEAD + 60 * FRAMED) as i64, "{}", held());
    }

    #[test]
    fn a_reader_can_wait_elsewhere() {
        let ring = Ring::new(HEAD).unwrap();
        let mut reader = reader(&ring);
        let sent = reader.wait_elsewhere(|| ring.begin(1).unwrap().send());
        assert_eq!(sent, Some(true), "who sends is reminded");
        assert_eq!(reader.wait_elsewhere(|| panic!("there is a frame")), None);
        assert!(!ring.begin(1).unwrap().send(), "once");
        for _ in 0..2 {
            assert!(next(&mut reader, &mut Vec::new(), LATER).unwrap());
        }
        assert!(!next(&mut reader, &mut Vec::new(), SOON).unwrap());
    }

    /// A reader that dozes is not woken for little, and takes it soon all the same; it takes what was read together one by one.
    #[test]
    fn a_dozing_reader_looks_by_itself() {
        let ring = Ring::new(4 << 20).unwrap();
        let mut reader = reader(&ring);
        let state = || ring.head.sleeps(Word::ReaderSleeps).load(Ordering::SeqCst);
        ring.head.sleeps(Word::ReaderSleeps).store(DOZES, Ordering::SeqCst);
        assert!(send(&ring, b"little") && state() == DOZES);
        assert!(send(&ring, &vec![7; DOZE_MOST_BYTES as usize]) && state() == 0, "much");
        ring.head.sleeps(Word::ReaderSleeps).store(DOZES, Ordering::SeqCst);
        ring.wake();
        assert_eq!(state(), 0, "somebody waits");
        ring.head.sleeps(Word::ReaderSleeps).store(WAITS_ELSEWHERE, Ordering::SeqCst);
        ring.wake();
        assert_eq!(state(), WAITS_ELSEWHERE, "who does not ring must not hide that it has to");
        ring.head.sleeps(Word::ReaderSleeps).store(0, Ordering::SeqCst);
        let mut frame = Vec::new();
        assert!(next(&mut reader, &mut frame, LATER).unwrap());
        assert_eq!(frame, b"little");
        assert_eq!(reader.wait(LATER).unwrap(), Some(DOZE_MOST_BYTES as usize));
        assert!(reader.take(&mut [0; 3]).is_err(), "memory of another length");
        assert!(next(&mut reader, &mut frame, LATER).unwrap());
        assert!(frame.iter().all(|&byte| byte == 7));
        std::thread::scope(|scope| {
            let late = || {
                std::thread::sleep(SOON);
                assert!(send(&ring, b"late"));
            };
            worker::spawn_scoped(scope, String::new(), Purpose::WriteBehind, late).unwrap();
            assert!(next(&mut reader, &mut frame, LATER).unwrap());
        });
        assert_eq!(frame, b"late");
    }

    /// Whatever the other process writes into the memory, reading ends, and takes no more than it has.
    #[test]
    fn nonsense_is_an_error() {
        let nonsense = [0, 1, 7, 8, 4096, 4097, u64::MAX, u64::MAX - 8, 1 << 40];
        for (written, len) in nonsense.iter().flat_map(|w| nonsense.map(|len| (*w, len))) {
            for base in nonsense {
                let ring = Ring::new(HEAD).unwrap();
                let mut reader = reader(&ring);
                assert!(send(&ring, b"x"));
                {
                    let mut alone = ring.end.lock();
                    ring.bytes_mut(&mut alone, 0, WORD).copy_from_slice(&len.to_ne_bytes());
                }
                ring.head.word(Word::Written).store(written, Ordering::Release);
                let mut frame = Vec::new();
                for n in 0..3 {
                    // One of them is a frame.
                    let _ = next(&mut reader, &mut frame, Duration::ZERO);
                    assert!(frame.capacity() <= 2 * HEAD);
                    if n == 0 {
                        ring.head.word(Word::Base).store(base, Ordering::Release);
                    }
                }
                ring.head.word(Word::Read).store(len, Ordering::Release);
                // Room or none, and no place outside.
                let _ = ring.begin(100).map(|mut frame| frame.bytes().fill(1));
            }
        }
        let file = tempfile();
        assert!(RingReader::of(file).is_err());
    }

    /// Memory that is no ring: it has no seals.
    fn tempfile() -> OwnedFd {
        let fd = memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&fd, 3 * HEAD as u64).unwrap();
        fd
    }
}
