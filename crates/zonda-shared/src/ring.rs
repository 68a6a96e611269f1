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
const MAGIC: u64 = u64::from_le_bytes(*b"zonda\0r\x01");
/// Bytes of the head.
const HEAD: usize = 4096;
/// In the place of a length: the rest of the ring holds no frame.
const SKIPPED: u64 = u64::MAX;
/// All threads that can sleep on a word.
const MOST_SLEEPERS: u32 = i32::MAX.cast_unsigned();
/// Most bytes of a ring.
const MOST_BYTES: usize = 1 << 40;

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
    fn sleep(&self, on: Word, within: Duration, is_done: impl Fn() -> bool) -> io::Result<()> {
        let word = self.sleeps(on);
        word.store(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if is_done() {
            word.store(0, Ordering::SeqCst);
            return Ok(());
        }
        let within = futex::Timespec::try_from(within).ok();
        let slept = futex::wait(word, futex::Flags::empty(), 1, within.as_ref());
        word.store(0, Ordering::SeqCst);
        match slept {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Wakes the other process, if it sleeps.
    fn wake(&self, on: Word) {
        fence(Ordering::SeqCst);
        let word = self.sleeps(on);
        if word.load(Ordering::SeqCst) != 0 && word.swap(0, Ordering::SeqCst) != 0 {
            // Who is gone need not be woken.
            let _ = futex::wake(word, futex::Flags::empty(), MOST_SLEEPERS);
        }
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
    /// Bytes that were ever written.
    written: Mutex<u64>,
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
        let (pid, written) = (zonda_runtime::fork::process_id(), Mutex::ranked(Rank::Arena, 0));
        Ok(Arc::new(Ring { head, fd, capacity, pid, written }))
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
        self.written.lock().saturating_sub(self.read())
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
        let written = self.written.lock();
        let full = Full { read: self.read() };
        let is_own = self.pid == zonda_runtime::fork::process_id();
        let framed = framed(len).filter(|_| is_own && len <= self.most_bytes()).ok_or(full)? as u64;
        let capacity = self.capacity as u64;
        let at = *written % capacity;
        let skipped = if at + framed > capacity { capacity - at } else { 0 };
        // A reader that says nonsense gets nothing.
        let waiting = written.checked_sub(full.read).ok_or(full)?;
        if waiting + skipped + framed > capacity {
            return Err(full);
        }
        let at = usize::try_from((*written + skipped) % capacity).map_err(|_| full)?;
        Ok(Frame { ring: self, written, skipped, at, len })
    }

    /// Waits until the reader has taken something since a frame found no room, or the time is over. Of several threads that wait one may
    /// sleep for all of the time.
    ///
    /// # Errors
    /// What the system says.
    pub fn wait(&self, since: Full, within: Duration) -> io::Result<()> {
        self.head.sleep(Word::WriterSleeps, within, || self.read() != since.read)
    }

    #[expect(unsafe_code, reason = "memory that another process reads")]
    fn bytes_mut<'a>(
        &'a self,
        _alone: &'a mut MutexGuard<'_, u64>,
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
    written: MutexGuard<'a, u64>,
    skipped: u64,
    at: usize,
    len: usize,
}

impl Frame<'_> {
    /// Its bytes: whatever was there before.
    pub fn bytes(&mut self) -> &mut [u8] {
        self.ring.bytes_mut(&mut self.written, self.at + WORD, self.len)
    }

    /// Hands it to the reader.
    pub fn send(mut self) {
        let ring = self.ring;
        if self.skipped > 0 {
            let at = usize::try_from(*self.written % ring.capacity as u64).unwrap_or_default();
            ring.bytes_mut(&mut self.written, at, WORD).copy_from_slice(&SKIPPED.to_ne_bytes());
        }
        let len = (self.len as u64).to_ne_bytes();
        ring.bytes_mut(&mut self.written, self.at, WORD).copy_from_slice(&len);
        *self.written += self.skipped + framed(self.len).unwrap_or_default() as u64;
        ring.head.word(Word::Written).store(*self.written, Ordering::Release);
        ring.head.wake(Word::ReaderSleeps);
    }
}

/// The reader's end.
#[derive(Debug)]
pub struct RingReader {
    head: Head,
    memory: File,
    capacity: u64,
    read: u64,
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
        Ok(RingReader { head, memory, capacity, read: 0 })
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

    /// Whether there is a frame now.
    #[must_use]
    pub fn has_frame(&self) -> bool {
        self.written() != self.read
    }

    /// Puts the next frame into a list, and gives its place back. False where there is none within the time.
    ///
    /// # Errors
    /// `InvalidData` for lengths that cannot be: the ring is of no use any more; `OutOfMemory`: then the frame is still there; what the
    /// system says.
    pub fn next(&mut self, into: &mut Vec<u8>, within: Duration) -> io::Result<bool> {
        let wrong =
            || io::Error::new(io::ErrorKind::InvalidData, "a ring whose frames do not fit it");
        let until = Instant::now() + within;
        while !self.has_frame() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            self.head.sleep(Word::ReaderSleeps, left, || self.has_frame())?;
        }
        let waiting = self.written().checked_sub(self.read).ok_or_else(wrong)?;
        if waiting > self.capacity {
            return Err(wrong());
        }
        let mut taken = 0;
        let mut len = self.length_at(self.read)?;
        if len == SKIPPED {
            taken = self.capacity - self.read % self.capacity;
            len = self.length_at(self.read + taken)?;
        }
        let len = usize::try_from(len).map_err(|_| wrong())?;
        let framed = framed(len).ok_or_else(wrong)? as u64;
        let at = (self.read + taken) % self.capacity;
        if taken + framed > waiting || at + framed > self.capacity {
            return Err(wrong());
        }
        into.clear();
        into.try_reserve_exact(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        into.resize(len, 0);
        self.memory.read_exact_at(into, (HEAD + WORD) as u64 + at)?;
        self.read += taken + framed;
        self.head.word(Word::Read).store(self.read, Ordering::Release);
        self.head.wake(Word::WriterSleeps);
        Ok(true)
    }

    fn length_at(&self, place: u64) -> io::Result<u64> {
        let mut word = [0; WORD];
        self.memory.read_exact_at(&mut word, HEAD as u64 + place % self.capacity)?;
        Ok(u64::from_ne_bytes(word))
    }
}

/// Tells the writer of a ring that there is news elsewhere, such as a message on a socket.
#[derive(Debug)]
pub struct RingNews(Head);

impl RingNews {
    /// Tells it: [`Ring::n_news`] is one more.
    pub fn tell(&self) {
        self.0.word(Word::News).fetch_add(1, Ordering::AcqRel);
        self.0.wake(Word::WriterSleeps);
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
        frame.send();
        true
    }

    #[test]
    fn frames_come_as_they_went() {
        let ring = Ring::new(HEAD).unwrap();
        let mut reader = reader(&ring);
        let (mut frame, mut random) = (Vec::new(), fastrand::Rng::with_seed(3));
        assert!(!reader.next(&mut frame, SOON).unwrap());
        let mut sent = std::collections::VecDeque::new();
        let (mut n_full, mut n_read) = (0, 0);
        for n in 0..20_000_u32 {
            let shift = random.usize(..12);
            let len = random.usize(..=ring.most_bytes() >> shift);
            let bytes = vec![n as u8; len];
            if send(&ring, &bytes) {
                sent.push_back(bytes);
            } else {
                n_full += 1;
            }
            if random.bool() || sent.len() > 200 {
                let is_there = reader.next(&mut frame, Duration::ZERO).unwrap();
                assert_eq!(is_there.then_some(&frame), sent.pop_front().as_ref());
                n_read += usize::from(is_there);
            }
        }
        assert!(n_full > 100 && n_read > 5000, "{n_full} {n_read}");
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
                                break frame.send();
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
                assert!(reader.next(&mut frame, LATER).unwrap(), "{number}");
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
        assert!(reader.next(&mut frame, SOON).unwrap());
        assert_eq!(frame, b"one");
        assert!(ring.begin(ring.most_bytes() + 1).is_err());
        assert!(ring.begin(ring.most_bytes()).is_ok());
    }

    /// Whatever the other process writes into the memory, reading ends, and takes no more than it has.
    #[test]
    fn nonsense_is_an_error() {
        let nonsense = [0, 1, 7, 8, 4096, 4097, u64::MAX, u64::MAX - 8, 1 << 40];
        for written in nonsense {
            for len in nonsense {
                let ring = Ring::new(HEAD).unwrap();
                let mut reader = reader(&ring);
                assert!(send(&ring, b"x"));
                {
                    let mut alone = ring.written.lock();
                    ring.bytes_mut(&mut alone, 0, WORD).copy_from_slice(&len.to_ne_bytes());
                }
                ring.head.word(Word::Written).store(written, Ordering::Release);
                let mut frame = Vec::new();
                for _ in 0..3 {
                    // One of them is a frame.
                    let _ = reader.next(&mut frame, Duration::ZERO);
                    assert!(frame.capacity() <= 2 * HEAD);
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
