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
