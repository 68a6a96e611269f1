//! The calls that record.

use crate::buffer::record;
use crate::event::{Args, EventKind};
use crate::{clock, on};

/// An event as it lies in a buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewEvent {
    pub(crate) begin: u64,
    pub(crate) took: u64,
    pub(crate) kind: EventKind,
    pub(crate) args: Args,
}

impl NewEvent {
    /// The words of the file's format, see [`crate::format`]; `name` is the number of its name.
    pub(crate) fn words(&self, name: u16, file: u32) -> [u64; crate::format::EVENT_WORDS] {
        let Args { file: _, item, offset, bytes, code, name: _ } = self.args;
        [
            self.begin,
            self.took,
            offset,
            bytes,
            u64::from(file) | u64::from(item) << 32,
            u64::from(self.kind as u16)
                | u64::from(name) << 16
                | u64::from(code.cast_unsigned()) << 32,
        ]
    }
}

/// Something that takes time: from [`span`] until it is dropped.
#[derive(Debug)]
#[must_use = "a span ends when it is dropped"]
pub struct TraceSpan(Option<NewEvent>);

/// Begins a span. `args` is called if events are recorded, and not otherwise.
#[inline(always)]
pub fn span(kind: EventKind, args: impl FnOnce() -> Args) -> TraceSpan {
    if on() { begin(kind, args) } else { TraceSpan(None) }
}

#[cold]
fn begin(kind: EventKind, args: impl FnOnce() -> Args) -> TraceSpan {
    let args = args();
    TraceSpan(Some(NewEvent { begin: clock::ticks(), took: 0, kind, args }))
}

/// A moment for [`span_since`]; 0 where events are not recorded.
#[inline(always)]
#[must_use]
pub fn start() -> u64 {
    if on() { now() } else { 0 }
}

#[cold]
fn now() -> u64 {
    clock::ticks()
}

/// Records what began at a moment of [`start`] and ends now: for what is known only afterwards, such
/// as that there was something to wait for.
#[inline(always)]
pub fn span_since(start: u64, kind: EventKind, args: impl FnOnce() -> Args) {
    if start != 0 {
        ended(start, kind, args);
    }
}

/// As [`span_since`], for what ended at another moment of [`start`]: where finding out the arguments
/// takes longer than what is recorded.
#[inline(always)]
pub fn span_between(begin: u64, end: u64, kind: EventKind, args: impl FnOnce() -> Args) {
    if begin != 0 && end != 0 {
        between(begin, end, kind, args);
    }
}

#[cold]
fn between(begin: u64, end: u64, kind: EventKind, args: impl FnOnce() -> Args) {
    record(&NewEvent { begin, took: end.saturating_sub(begin), kind, args: args() });
}

#[cold]
fn ended(begin: u64, kind: EventKind, args: impl FnOnce() -> Args) {
    let took = clock::ticks().saturating_sub(begin);
    record(&NewEvent { begin, took, kind, args: args() });
}

/// Takes a lock, and records the wait where another thread has it.
#[inline(always)]
pub fn lock<G>(free: impl FnOnce() -> Option<G>, wait: impl FnOnce() -> G) -> G {
    free().unwrap_or_else(|| waited(wait))
}

#[cold]
fn waited<G>(wait: impl FnOnce() -> G) -> G {
    let waiting = start();
    let guard = wait();
    span_since(waiting, EventKind::WaitLock, Args::default);
    guard
}

/// Records something that takes no time.
#[inline(always)]
pub fn instant(kind: EventKind, args: impl FnOnce() -> Args) {
    if on() {
        happened(kind, args);
    }
}

#[cold]
fn happened(kind: EventKind, args: impl FnOnce() -> Args) {
    record(&NewEvent { begin: clock::ticks(), took: 0, kind, args: args() });
}

/// Records how much of something there is now.
#[inline(always)]
pub fn counter(kind: EventKind, file: u32, value: impl FnOnce() -> u64) {
    if on() {
        happened(kind, || Args { file, offset: value(), ..Args::default() });
    }
}

impl TraceSpan {
    /// One that records nothing.
    #[inline(always)]
    pub fn none() -> TraceSpan {
        TraceSpan(None)
    }

    /// Whether it is recorded: for arguments that cost something to find out.
    #[inline(always)]
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Changes what it carries, where that is known only later.
    #[inline(always)]
    pub fn change(&mut self, change: impl FnOnce(&mut Args)) {
        if let Some(event) = &mut self.0 {
            change(&mut event.args);
        }
    }

    /// How it ended: 0, or what went wrong.
    #[inline(always)]
    pub fn code(&mut self, code: i32) {
        self.change(|args| args.code = code);
    }

    /// Bytes moved.
    #[inline(always)]
    pub fn bytes(&mut self, bytes: u64) {
        self.change(|args| args.bytes = bytes);
    }

    /// It was nothing worth an event.
    #[inline(always)]
    pub fn cancel(mut self) {
        self.0 = None;
    }
}

impl Drop for TraceSpan {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(event) = &mut self.0 {
            finish(event);
        }
    }
}

#[cold]
fn finish(event: &mut NewEvent) {
    event.took = clock::ticks().saturating_sub(event.begin);
    record(event);
}
