//! Names that events carry as numbers.

use std::path::Path;

use crate::format::{NameRecord, TABLE_LAYERS, TABLE_VARIABLES};
use crate::{buffer, on, sink};

/// The number that stands for the file at `path` in events: the same for the same path. 0 where
/// nothing is recorded.
#[must_use]
pub fn file(path: &Path) -> u32 {
    if on() { sink::file(&path.to_string_lossy()) } else { 0 }
}

/// Says which file the calling thread works on, 0 for none: events that name none are then this one's.
/// What knows the file (the C boundary) says so for what does not (filters, conversion).
#[inline(always)]
pub fn set_current_file(file: u32) {
    if on() {
        set(file);
    }
}

#[cold]
fn set(file: u32) {
    buffer::set_current(file);
}

/// What [`set_current_file`] said last on this thread: for work that it hands to others. 0 where
/// nothing is recorded.
#[inline(always)]
#[must_use]
pub fn current_file() -> u32 {
    if on() { buffer::current() } else { 0 }
}

/// Gives the name of a variable to readers of the trace; `name` is asked once for each.
#[inline(always)]
pub fn variable(file: u32, group: u32, variable: u32, name: impl FnOnce() -> String) {
    if on() {
        of_variable(file, u64::from(group) << 32 | u64::from(variable), name);
    }
}

#[cold]
fn of_variable(file: u32, second: u64, name: impl FnOnce() -> String) {
    if buffer::seen(file, second) || !sink::is_new(file, second) {
        return;
    }
    sink::name(NameRecord { table: TABLE_VARIABLES, number: file, second, text: name() });
}

/// Tells of a layer: its token in the stack's spec, and how many stand above it.
pub fn layer(opening: u32, depth: u32, token: String) {
    if on() {
        let second = u64::from(depth);
        sink::name(NameRecord { table: TABLE_LAYERS, number: opening, second, text: token });
    }
}
