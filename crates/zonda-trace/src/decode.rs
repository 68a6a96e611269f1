//! Reading a trace back, block by block, in bounded memory whatever the bytes are.

use std::collections::HashMap;
use std::io::{self, Read};

use crate::event::EventKind;
use crate::format::{
    self, BLOCK_HEAD, BlockHead, EVENT_BYTES, NameRecord, SECTION_HEAD, TABLE_FILES, TABLE_LAYERS,
    TABLE_ROLES, TABLE_THREADS, TABLE_VARIABLES, TABLE_WORDS,
};

/// Most bytes of names of a section that are kept.
const MOST_NAMES_BYTES: usize = 64 << 20;

/// Blocks of a process whose clocks are kept.
const MOST_CLOCKS: usize = 1 << 16;

/// Why a trace could not be read.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The bytes are not those of a trace.
    #[error("byte {at}: {what}")]
    Bad {
        /// Where, from the beginning of the trace.
        at: u64,
        /// What is wrong.
        what: String,
    },
    /// It could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A process that recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedProcess {
    /// Its number.
    pub pid: u32,
    /// Its parent's.
    pub parent: u32,
    /// Cores it was allowed to use.
    pub cores: u32,
    /// When it began to record, in nanoseconds since 1970.
    pub unix_ns: u64,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Version of the library.
    pub library: String,
}

/// The names that numbers in events stand for.
#[derive(Debug, Clone, Default)]
pub struct TraceNames {
    tables: HashMap<(u8, u32, u64), String>,
    bytes: usize,
}

impl TraceNames {
    fn get(&self, table: u8, number: u32, second: u64) -> Option<&str> {
        self.tables.get(&(table, number, second)).map(String::as_str)
    }

    /// Of a function or filter.
    #[must_use]
    pub fn word(&self, number: u16) -> Option<&str> {
        self.get(TABLE_WORDS, u32::from(number), 0)
    }

    /// The path of a file.
    #[must_use]
    pub fn file(&self, number: u32) -> Option<&str> {
        self.get(TABLE_FILES, number, 0)
    }

    /// A variable of a file: by its group and its number in it.
    #[must_use]
    pub fn variable(&self, file: u32, group: u32, variable: u32) -> Option<&str> {
        self.get(TABLE_VARIABLES, file, u64::from(group) << 32 | u64::from(variable))
    }

    /// The token of a layer.
    #[must_use]
    pub fn layer(&self, opening: u32, depth: u32) -> Option<&str> {
        self.get(TABLE_LAYERS, opening, u64::from(depth))
    }

    /// What the process is in a job, such as "rank 3".
    #[must_use]
    pub fn role(&self) -> Option<&str> {
        self.get(TABLE_ROLES, 0, 0)
    }

    /// Of a thread.
    #[must_use]
    pub fn thread(&self, number: u32) -> Option<&str> {
        self.get(TABLE_THREADS, number, 0)
    }

    fn add(&mut self, record: NameRecord) {
        self.bytes += record.text.len() + format::NAME_HEAD;
        if self.bytes <= MOST_NAMES_BYTES {
            self.tables.insert((record.table, record.number, record.second), record.text);
        }
    }
}

/// An event; what the fields mean is said at its [`EventKind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedEvent {
    /// What happened; `None` for a kind that a later version has.
    pub kind: Option<EventKind>,
    /// Which thread; 0 for one that was ending.
    pub thread: u32,
    /// Nanoseconds from the beginning of the process's trace.
    pub begin_ns: u64,
    /// How long it took.
    pub took_ns: u64,
    /// Number of the file, 0 for none.
    pub file: u32,
    /// Variable, or opening and layer.
    pub item: u32,
    /// Byte of the file, or what the kind says.
    pub offset: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// 0, or what went wrong.
    pub code: i32,
    /// Number of the name, 0 for none.
    pub name: u16,
}

impl RecordedEvent {
    /// Of operations of a storage: the number of the opening.
    #[must_use]
    pub fn opening(&self) -> u32 {
        self.item >> 8
    }

    /// Of operations of a storage: how many layers stand above.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.item & 0xff
    }

    /// When it ended.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.begin_ns.saturating_add(self.took_ns)
    }
}

/// What comes next.
#[derive(Debug)]
pub enum TraceStep<'a> {
    /// Another process; its times begin at 0.
    Process(&'a RecordedProcess),
    /// Events of one thread, in the order in which they ended.
    Events(&'a [RecordedEvent]),
}

/// Reads a trace.
#[derive(Debug)]
pub struct Decoder<R> {
    input: R,
    /// Where the next block begins.
    at: u64,
    process: RecordedProcess,
    names: TraceNames,
    /// Ticks and nanoseconds of the section's beginning.
    origin: Option<(u64, u64)>,
    /// The same of blocks since then, in rising order.
    clock: Vec<(u64, u64)>,
    counter: bool,
    lost: u64,
    lost_before: u64,
    payload: Vec<u8>,
    events: Vec<RecordedEvent>,
    torn: Option<u64>,
}

impl<R: Read> Decoder<R> {
    /// Whether bytes are the first of a trace.
    #[must_use]
    pub fn is_trace(first: &[u8]) -> bool {
        first.starts_with(&format::MAGIC)
    }

    /// Reads from `input`, which is best buffered by 64 KiB or more.
    pub fn new(input: R) -> Decoder<R> {
        Decoder {
            input,
            at: 0,
            process: RecordedProcess::default(),
            names: TraceNames::default(),
            origin: None,
            clock: Vec::new(),
            counter: false,
            lost: 0,
            lost_before: 0,
            payload: Vec::new(),
            events: Vec::new(),
            torn: None,
        }
    }

    /// Names known so far in this process: those of the events that were given out.
    pub fn names(&self) -> &TraceNames {
        &self.names
    }

    /// Events that were recorded and are not in the trace, in all processes so far.
    pub fn lost(&self) -> u64 {
        self.lost_before.saturating_add(self.lost)
    }

    /// Where the trace breaks off within a block, as that of a process that was killed may.
    pub fn torn(&self) -> Option<u64> {
        self.torn
    }

    /// The next step, or `None` at the end.
    ///
    /// # Errors
    /// [`DecodeError`] with the byte at which something is wrong. A last block that is not complete
    /// is no error, see [`Decoder::torn`].
    pub fn step(&mut self) -> Result<Option<TraceStep<'_>>, DecodeError> {
        loop {
            let Some(head) = self.block()? else { return Ok(None) };
            let bad = |at: u64, what: &str| DecodeError::Bad { at, what: what.to_owned() };
            let contents = self.at - self.payload.len() as u64;
            if self.origin.is_none() && head.contents != format::SECTION {
                return Err(bad(0, "the trace does not begin with its process"));
            }
            match head.contents {
                format::SECTION => {
                    self.section(&head).map_err(|what| DecodeError::Bad { at: contents, what })?;
                    return Ok(Some(TraceStep::Process(&self.process)));
                }
                format::NAMES => {
                    let mut rest = &self.payload[..];
                    while !rest.is_empty() {
                        let at = self.at - rest.len() as u64;
                        let record = NameRecord::decode(&mut rest).map_err(|what| bad(at, what))?;
                        self.names.add(record);
                    }
                }
                _ => {
                    self.lost = self.lost.max(head.lost);
                    self.events(&head);
                    return Ok(Some(TraceStep::Events(&self.events)));
                }
            }
        }
    }

    /// Reads the next block; its contents are in `payload`.
    fn block(&mut self) -> Result<Option<BlockHead>, DecodeError> {
        let mut head = [0; BLOCK_HEAD];
        let n = fill(&mut self.input, &mut head)?;
        if n == 0 {
            return Ok(None);
        }
        if n < BLOCK_HEAD {
            if !format::MAGIC.starts_with(&head[..n.min(format::MAGIC.len())]) {
                let what = "no block of a trace begins here".to_owned();
                return Err(DecodeError::Bad { at: self.at, what });
            }
            self.torn = Some(self.at);
            return Ok(None);
        }
        let head = BlockHead::decode(&head)
            .map_err(|what| DecodeError::Bad { at: self.at, what: what.to_owned() })?;
        // No more than a block may have, which `BlockHead::decode` has seen to.
        self.payload.resize(head.len_bytes as usize, 0);
        if fill(&mut self.input, &mut self.payload)? < self.payload.len() {
            self.torn = Some(self.at);
            return Ok(None);
        }
        self.at += (BLOCK_HEAD + self.payload.len()) as u64;
        Ok(Some(head))
    }

    fn section(&mut self, block: &BlockHead) -> Result<(), String> {
        let (head, mut rest) = self
            .payload
            .split_first_chunk::<SECTION_HEAD>()
            .ok_or("a process's beginning that is cut short")?;
        let u32_at =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let version = u16::from_le_bytes([head[0], head[1]]);
        if version != format::VERSION {
            return Err(format!("version {version} of the format; this is {}", format::VERSION));
        }
        let mut text = || {
            let ([a, b], more) = rest.split_first_chunk::<2>()?;
            let (text, more) = more.split_at_checked(usize::from(u16::from_le_bytes([*a, *b])))?;
            rest = more;
            Some(String::from_utf8_lossy(text).into_owned())
        };
        let (command, library) =
            text().zip(text()).ok_or("a process's beginning that is cut short")?;
        self.process = RecordedProcess {
            pid: u32_at(4),
            parent: u32_at(8),
            cores: u32_at(12),
            unix_ns: u64::from(u32_at(20)) | u64::from(u32_at(24)) << 32,
            command: command.split('\0').map(str::to_owned).collect(),
            library,
        };
        self.counter = head[2] == 1;
        self.names = TraceNames::default();
        self.lost_before = self.lost_before.saturating_add(std::mem::take(&mut self.lost));
        self.origin = Some((block.ticks, block.ns));
        self.clock.clear();
        self.clock.push((block.ticks, block.ns));
        Ok(())
    }

    /// Keeps the clocks of a block, if they are far enough from those before to tell a speed.
    fn note_clock(&mut self, block: &BlockHead) {
        const FAR_NS: u64 = 100_000;
        let Some(&(ticks, ns)) = self.clock.last() else { return };
        if block.ticks <= ticks || block.ns.saturating_sub(ns) < FAR_NS {
            return;
        }
        if self.clock.len() == MOST_CLOCKS {
            // The beginning, and every second of the others.
            let mut odd = false;
            self.clock.retain(|_| {
                odd = !odd;
                odd
            });
        }
        self.clock.push((block.ticks, block.ns));
    }

    fn events(&mut self, block: &BlockHead) {
        let (ticks, ns) = self.origin.unwrap_or_default();
        // How long a tick takes, from the beginning of the process to this block.
        let (d_ticks, d_ns) = (block.ticks.saturating_sub(ticks), block.ns.saturating_sub(ns));
        let rate = if self.counter && d_ticks > 0 { d_ns as f64 / d_ticks as f64 } else { 1.0 };
        let to_ns = |ticks: u64| (ticks as f64 * rate) as u64;
        self.note_clock(block);
        let clock = &self.clock[..];
        // When something was: between the two blocks around it, so that what followed something else
        // does so here, too, whichever blocks they came in.
        let moment = |at: u64| -> u64 {
            if !self.counter {
                return at.saturating_sub(ticks);
            }
            let next = clock.partition_point(|(ticks, _)| *ticks <= at);
            let (before, after) = match (next.checked_sub(1).map(|i| clock[i]), clock.get(next)) {
                (Some(before), Some(after)) => (before, *after),
                (Some(last), None) => {
                    return last
                        .1
                        .saturating_sub(ns)
                        .saturating_add(to_ns(at.saturating_sub(last.0)));
                }
                (None, _) => return 0,
            };
            let part = (at - before.0) as f64 / (after.0 - before.0) as f64;
            let since = before.1.saturating_sub(ns);
            since.saturating_add(((after.1 - before.1) as f64 * part) as u64)
        };
        self.events.clear();
        for bytes in self.payload.chunks_exact(EVENT_BYTES) {
            let word = |i: usize| {
                let mut eight = [0; 8];
                eight.copy_from_slice(&bytes[i * 8..i * 8 + 8]);
                u64::from_le_bytes(eight)
            };
            let (who, what) = (word(4), word(5));
            self.events.push(RecordedEvent {
                kind: EventKind::of(what as u16),
                thread: block.thread,
                begin_ns: moment(word(0)),
                took_ns: to_ns(word(1)),
                offset: word(2),
                bytes: word(3),
                file: who as u32,
                item: (who >> 32) as u32,
                name: (what >> 16) as u16,
                code: ((what >> 32) as u32).cast_signed(),
            });
        }
    }
}

/// Reads until `buf` is full or the input ends.
fn fill(input: &mut impl Read, buf: &mut [u8]) -> io::Result<usize> {
    let mut n = 0;
    while n < buf.len() {
        match input.read(&mut buf[n..]) {
            Ok(0) => break,
            Ok(more) => n += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(n)
}
