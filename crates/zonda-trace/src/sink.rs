//! Where events go: one file for each process, written in blocks by the threads that recorded them.
//!
//! Everything here is under one lock, which a thread takes when its buffer is full, so about once in
//! 1,300 events. A child of `fork` finds it as its parent held it, and can give it back.

use crate::tuning::MOST_NAMES_BYTES;
use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, IoSlice, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use zonda_runtime::Settled;
use zonda_runtime::fork::{self, Child, Freeze, Frozen};
use zonda_runtime::lock::{Mutex, MutexGuard, Rank};

use crate::buffer::{self, EventBuffer};
use crate::clock;
use crate::format::{
    self, BLOCK_HEAD, BlockHead, EVENT_BYTES, MAGIC, NameRecord, TABLE_FILES, TABLE_ROLES,
    TABLE_THREADS, TABLE_WORDS,
};
use crate::secrets::without_secrets;
use crate::span::NewEvent;

/// Most bytes of a command line that are kept.
const MOST_COMMAND_BYTES: usize = 4096;

/// Events that nobody will find in the trace.
static LOST: AtomicU64 = AtomicU64::new(0);

#[derive(Default)]
struct TraceState {
    /// As it was asked for, `%p` and all. None: nothing is recorded.
    path: Option<PathBuf>,
    /// Opened when the first block is written.
    file: Option<File>,
    /// Bytes of the file that are whole blocks.
    end: u64,
    /// When the process, or the child of a fork, began to record: ticks and nanoseconds.
    origin: (u64, u64),
    /// The same moment in nanoseconds since 1970, by which traces of several processes are put side by side.
    origin_unix_ns: u64,
    /// Set once it could not be written: then never again.
    failed: bool,
    /// Every name so far, for a child has to repeat them.
    names: Vec<NameRecord>,
    names_bytes: usize,
    /// How many of them are in the file.
    names_written: usize,
    words: HashMap<&'static str, u16>,
    files: HashMap<String, u32>,
    variables: HashSet<(u32, u64)>,
    buffers: Vec<Arc<EventBuffer>>,
    threads: u32,
    /// Events of threads that are ending.
    late: Vec<u8>,
    /// Memory for the block that is being written.
    block: Vec<u8>,
}

fn now() -> (u64, u64) {
    (clock::ticks(), clock::nanoseconds())
}

fn unix_ns() -> u64 {
    let since = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos());
    u64::try_from(since).unwrap_or(u64::MAX)
}

fn state() -> &'static Mutex<TraceState> {
    static STATE: Settled<Mutex<TraceState>> = Settled::new();
    STATE.get_or_make(|| Mutex::ranked(Rank::Trace, TraceState::default()))
}

fn lock() -> MutexGuard<'static, TraceState> {
    // Nothing here leaves the state half changed in a way that matters.
    state().lock()
}

/// Opens the trace. Whether there is one now.
pub(crate) fn begin(path: &Path) -> bool {
    let mut state = lock();
    if state.path.is_none() {
        fork::register(&TraceFreeze);
        state.path = Some(path.to_owned());
        state.begin_here();
        let rank = zonda_runtime::launched_rank(|name| std::env::var(name).ok());
        state.names.extend(rank.map(|rank| of_role(format!("rank {rank}"))));
        state.open();
    }
    !state.failed
}

fn of_role(text: String) -> NameRecord {
    NameRecord { table: TABLE_ROLES, number: 0, second: 0, text }
}

/// Says what this process is in its job, in place of the rank that a launcher gave it.
pub fn role(text: &str) {
    if crate::on() {
        let mut state = lock();
        state.name(of_role(text.to_owned()));
        // Also of a process that records nothing before it is killed.
        state.write_names();
    }
}

/// A buffer for the calling thread.
pub(crate) fn register() -> Arc<EventBuffer> {
    let mut state = lock();
    state.threads += 1;
    let number = state.threads;
    let buffer = Arc::new(EventBuffer::new(number));
    state.buffers.push(Arc::clone(&buffer));
    if let Some(name) = std::thread::current().name() {
        let text = name.to_owned();
        state.name(NameRecord { table: TABLE_THREADS, number, second: 0, text });
    }
    buffer
}

/// Writes out the buffer of a thread that ends.
pub(crate) fn unregister(buffer: &Arc<EventBuffer>) {
    let mut state = lock();
    state.write_buffer(buffer);
    state.buffers.retain(|known| !Arc::ptr_eq(known, buffer));
}

/// Writes out and empties the buffer of the calling thread.
#[cold]
pub(crate) fn hand_over(buffer: &EventBuffer) {
    let mut state = lock();
    state.write_buffer(buffer);
    buffer.clear();
}

/// Keeps an event of a thread that has no buffer any more.
pub(crate) fn record_late(event: &NewEvent) {
    let number = word(event.args.name);
    let mut state = lock();
    if state.late.len() >= 1000 * EVENT_BYTES {
        state.write_late();
    }
    for word in event.words(number, event.args.file) {
        state.late.extend_from_slice(&word.to_le_bytes());
    }
}

/// Writes out what all threads have recorded until now.
///
/// Done when a file is closed and when the process ends, so that a trace is complete by then.
pub fn flush() {
    if crate::on() {
        lock().write_all_buffers();
    }
}

/// The number that stands for a name.
pub(crate) fn word(name: &'static str) -> u16 {
    if name.is_empty() {
        return 0;
    }
    let mut state = lock();
    if let Some(number) = state.words.get(name) {
        return *number;
    }
    // More names than numbers would be a mistake in this library; they show as none.
    let Ok(number) = u16::try_from(state.words.len() + 1) else { return 0 };
    state.words.insert(name, number);
    let (number_of, text) = (u32::from(number), name.to_owned());
    state.name(NameRecord { table: TABLE_WORDS, number: number_of, second: 0, text });
    number
}

/// The number that stands for a file.
pub(crate) fn file(path: &str) -> u32 {
    let mut state = lock();
    if let Some(number) = state.files.get(path) {
        return *number;
    }
    if state.names_bytes > MOST_NAMES_BYTES {
        return 0;
    }
    let Ok(number) = u32::try_from(state.files.len() + 1) else { return 0 };
    state.files.insert(path.to_owned(), number);
    state.name(NameRecord { table: TABLE_FILES, number, second: 0, text: path.to_owned() });
    number
}

/// Whether nobody has named this variable; from now on somebody has.
pub(crate) fn is_new(file: u32, variable: u64) -> bool {
    let mut state = lock();
    state.names_bytes <= MOST_NAMES_BYTES && state.variables.insert((file, variable))
}

/// Keeps a name for the trace.
pub(crate) fn name(record: NameRecord) {
    lock().name(record);
}

/// What a fork holds, so that the child finds all in order; nothing where nothing is recorded.
struct TraceFreeze;

/// The trace is held last: those who hold other locks may write to it.
impl Freeze for TraceFreeze {
    fn rank(&self) -> Rank {
        Rank::Trace
    }

    fn hold(&'static self, until: Instant) -> Box<dyn Frozen> {
        let state = if crate::on() { state().lock_until(until) } else { None };
        Box::new(TraceOverFork { is_on: crate::on(), state })
    }
}

struct TraceOverFork {
    is_on: bool,
    state: Option<MutexGuard<'static, TraceState>>,
}

impl Frozen for TraceOverFork {
    /// What the parent recorded stays the parent's, and the child writes a file of its own, named as the parent's
    /// with a dot and the child's number behind it. A child of what could not be had in time records nothing.
    fn in_child(&mut self, _: Child) {
        if !self.is_on {
            return;
        }
        match &mut self.state {
            Some(state) => state.begin_in_child(),
            // Nobody gives its lock back here.
            None => crate::stop(),
        }
        buffer::forget();
    }

    fn give_back(&mut self) {
        self.state = None;
    }
}

impl TraceState {
    fn begin_here(&mut self) {
        (self.origin, self.origin_unix_ns) = (now(), unix_ns());
    }

    fn begin_in_child(&mut self) {
        self.file = None;
        self.end = 0;
        self.begin_here();
        self.names_written = 0;
        self.late.clear();
        for buffer in std::mem::take(&mut self.buffers) {
            buffer.clear();
            // That of the forking thread is used on. Those of others have nobody any more.
            if Arc::strong_count(&buffer) > 1 {
                self.buffers.push(buffer);
            }
        }
        self.variables.clear();
        // A rank's child is no rank.
        let is_own = |table| matches!(table, format::TABLE_VARIABLES | TABLE_ROLES);
        self.names.retain(|name| !is_own(name.table));
    }

    fn name(&mut self, record: NameRecord) {
        if self.names_bytes > MOST_NAMES_BYTES {
            return;
        }
        self.names_bytes += record.text.len() + format::NAME_HEAD;
        self.names.push(record);
    }

    /// Opens the file that this process writes, and begins its section. Says why if it cannot.
    fn open(&mut self) {
        let Some(asked) = &self.path else { return };
        match output(asked) {
            Ok((file, end)) => {
                (self.file, self.end) = (Some(file), end);
                self.write_block(format::SECTION, 0, &section(self.origin_unix_ns));
            }
            Err((path, why)) => self.fail(&path, &why),
        }
    }

    fn fail(&mut self, path: &Path, why: &dyn std::fmt::Display) {
        if !self.failed {
            self.failed = true;
            // A program whose standard error is closed still runs.
            let name = path.display();
            let _ = writeln!(io::stderr().lock(), "zonda: {name}: {why}; no further trace");
        }
        self.file = None;
        crate::stop();
    }

    fn write_block(&mut self, contents: u8, thread: u32, payload: &[u8]) {
        if self.file.is_none() && !self.failed {
            self.open();
        }
        let events = if contents == format::EVENTS { payload.len() / EVENT_BYTES } else { 0 };
        let Some(file) = &mut self.file else {
            LOST.fetch_add(events as u64, Ordering::Relaxed);
            return;
        };
        let len_bytes = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let lost = LOST.load(Ordering::Relaxed);
        // A section begins when its process does, also where its file is opened later.
        let (ticks, ns) = if contents == format::SECTION { self.origin } else { now() };
        let head = BlockHead { contents, len_bytes, thread, ticks, ns, lost };
        // One call for a block: what there is of a trace after a kill is whole blocks.
        match write_both(file, &head.encode(), payload) {
            Ok(()) => self.end += (BLOCK_HEAD + payload.len()) as u64,
            Err(error) => {
                // Half a block would hide what another process appends.
                let _ = file.set_len(self.end);
                LOST.fetch_add(events as u64, Ordering::Relaxed);
                let path = self.path.clone().unwrap_or_default();
                self.fail(&path, &error);
            }
        }
    }

    fn write_names(&mut self) {
        let mut payload = Vec::new();
        while let Some(record) = self.names.get(self.names_written) {
            record.encode_to(&mut payload);
            self.names_written += 1;
            let room = format::MOST_BLOCK_BYTES - format::NAME_HEAD - format::MOST_NAME_BYTES;
            if payload.len() > room || self.names_written == self.names.len() {
                self.write_block(format::NAMES, 0, &payload);
                payload.clear();
            }
        }
    }

    fn write_events(&mut self, thread: u32, events: &[u8]) {
        if !events.is_empty() {
            if self.file.is_none() && !self.failed {
                self.open();
            }
            self.write_names();
            self.write_block(format::EVENTS, thread, events);
        }
    }

    fn write_buffer(&mut self, buffer: &EventBuffer) {
        let mut events = std::mem::take(&mut self.block);
        events.clear();
        buffer.take_to(&mut events);
        self.write_events(buffer.thread, &events);
        self.block = events;
    }

    fn write_late(&mut self) {
        let events = std::mem::take(&mut self.late);
        self.write_events(0, &events);
    }

    fn write_all_buffers(&mut self) {
        for buffer in self.buffers.clone() {
            self.write_buffer(&buffer);
        }
        self.write_late();
    }
}

/// Writes a head and what follows it, in one call where the system takes all at once.
fn write_both(file: &mut File, head: &[u8], payload: &[u8]) -> io::Result<()> {
    let mut written = 0;
    while written < head.len() {
        let parts = [IoSlice::new(&head[written..]), IoSlice::new(payload)];
        match file.write_vectored(&parts) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => written += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    file.write_all(&payload[written - head.len()..])
}

/// The file to write for what was asked, and where in it this process begins; or the file that cannot
/// be written, and why.
fn output(asked: &Path) -> Result<(File, u64), (PathBuf, String)> {
    let pid = std::process::id();
    let text = asked.to_string_lossy();
    let first = if text.contains("%p") || text.contains("%r") {
        let rank = zonda_runtime::rank_number(|name| std::env::var(name).ok());
        PathBuf::from(text.replace("%p", &pid.to_string()).replace("%r", &rank.to_string()))
    } else {
        asked.to_owned()
    };
    let failed = |path: &Path, why: &dyn std::fmt::Display| (path.to_owned(), why.to_string());
    let open = |path: &Path| {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path);
        file.map_err(|error| failed(path, &error))
    };
    let (mut path, mut file) = (first.clone(), open(&first)?);
    if !file.metadata().is_ok_and(|data| data.is_file()) {
        return Ok((file, 0));
    }
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        // Another process is writing it: one that goes on beside this one, or whose child this is.
        path = first.as_os_str().to_owned().into_string().map_or_else(
            |name| PathBuf::from(format!("{}.{pid}", name.to_string_lossy())),
            |name| PathBuf::from(format!("{name}.{pid}")),
        );
        file = open(&path)?;
        // Where a file system knows no locks, the name is different all the same.
        let _ = file.try_lock();
    }
    let end = whole_blocks(&file).map_err(|error| failed(&path, &error))?;
    Ok((file, end))
}

/// Where the last whole block of a trace ends, which the next process begins behind; what a kill left
/// of another block is cut off. A file that is no trace is not touched.
fn whole_blocks(file: &File) -> io::Result<u64> {
    let len = file.metadata()?.len();
    let mut at = 0;
    let mut head = [0; BLOCK_HEAD];
    while at + BLOCK_HEAD as u64 <= len {
        file.read_exact_at(&mut head, at)?;
        let next =
            BlockHead::decode(&head).map(|h| at + (BLOCK_HEAD + h.len_bytes as usize) as u64);
        match next {
            Ok(next) if next <= len => at = next,
            _ => break,
        }
    }
    if at < len {
        let mut magic = [0; MAGIC.len()];
        let is_block = file.read_exact_at(&mut magic, at).is_ok() && magic == MAGIC;
        if at == 0 && !is_block {
            return Err(io::Error::other("there is a file of that name, which is no trace"));
        }
        file.set_len(at)?;
    }
    Ok(at)
}

/// What a process begins with.
fn section(unix_ns: u64) -> Vec<u8> {
    let clock = u8::from(clock::is_counter());
    let cores = zonda_runtime::threads();
    let mut bytes = Vec::with_capacity(256);
    bytes.extend_from_slice(&format::VERSION.to_le_bytes());
    bytes.extend_from_slice(&[clock, 0]);
    bytes.extend_from_slice(&std::process::id().to_le_bytes());
    bytes.extend_from_slice(&std::os::unix::process::parent_id().to_le_bytes());
    bytes.extend_from_slice(&u32::try_from(cores).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend_from_slice(&0u32.to_le_bytes());
    bytes.extend_from_slice(&unix_ns.to_le_bytes());
    for text in [&command_line()[..], env!("CARGO_PKG_VERSION").as_bytes()] {
        bytes.extend_from_slice(&u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes());
        bytes.extend_from_slice(text);
    }
    bytes
}

/// The program and its arguments, separated by NUL, as far as they fit; without the secrets of URLs.
fn command_line() -> Vec<u8> {
    let mut line = Vec::new();
    let file = File::open("/proc/self/cmdline");
    // A system that does not tell leaves the line empty.
    let _ = file.and_then(|file| file.take(MOST_COMMAND_BYTES as u64).read_to_end(&mut line));
    let is_cut = line.len() >= MOST_COMMAND_BYTES;
    while line.last() == Some(&0) {
        line.pop();
    }
    without_secrets(&line, is_cut)
}
