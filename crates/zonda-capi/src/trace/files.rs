//! Which file is in which slot of the handle table, as the trace numbers files.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// Slots of the handle table: as many as the upper half of an `ncid` can tell apart.
pub(crate) const N_SLOTS: usize = 1 << 16;

/// The trace's number of the file in each slot; 0 for none.
static FILES: [AtomicU32; N_SLOTS] = [const { AtomicU32::new(0) }; N_SLOTS];

/// How many files were opened so far. What is remembered of a variable holds until this changes.
static N_OPENED: AtomicU32 = AtomicU32::new(0);

/// Says which file is in a slot from now on.
pub(crate) fn note_opened(slot: usize, path: &Path) {
    if zonda_trace::on() {
        let number = zonda_trace::file(path);
        FILES[slot].store(number, Ordering::Relaxed);
        N_OPENED.fetch_add(1, Ordering::Relaxed);
        zonda_trace::set_current_file(number);
    }
}

/// From now on the calling thread works on the file in that slot.
#[cold]
pub(crate) fn set_current(slot: usize) {
    zonda_trace::set_current_file(number(slot));
}

/// The trace's number of the file in a slot; 0 for none.
pub(super) fn number(slot: usize) -> u32 {
    FILES[slot].load(Ordering::Relaxed)
}

/// How many files were opened so far.
pub(super) fn n_opened() -> u32 {
    N_OPENED.load(Ordering::Relaxed)
}
