//! Memory of headers that were closed, for the next one that this thread opens: a header of a thousand variables takes
//! some hundred KiB, and fresh memory of that size costs a page fault for each 4 KiB, which takes as long as taking the
//! header apart.

use std::cell::Cell;

use crate::header::Var;
use crate::tuning::{SPARE_MAX_BYTES, SPARE_MIN_BYTES};

thread_local! {
    static BYTES: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static PLACES: Cell<Vec<u32>> = const { Cell::new(Vec::new()) };
    static VARS: Cell<Vec<Var>> = const { Cell::new(Vec::new()) };
}

type Place<T> = &'static std::thread::LocalKey<Cell<Vec<T>>>;

/// What is kept; nothing once the thread ends.
fn take<T>(place: Place<T>) -> Vec<T> {
    place.try_with(Cell::take).unwrap_or_default()
}

fn give<T>(place: Place<T>, list: Vec<T>) {
    let bytes = list.capacity().saturating_mul(size_of::<T>());
    if (SPARE_MIN_BYTES..=SPARE_MAX_BYTES).contains(&bytes) {
        // Where the thread ends, it is dropped here.
        let _ = place.try_with(|kept| kept.replace(list));
    }
}

/// Memory for bytes to be read into, as long as it was: with any content.
pub(crate) fn bytes() -> Vec<u8> {
    take(&BYTES)
}

pub(crate) fn give_bytes(bytes: Vec<u8>) {
    give(&BYTES, bytes);
}

/// An empty list of places.
pub(crate) fn places() -> Vec<u32> {
    take(&PLACES)
}

pub(crate) fn give_places(mut places: Vec<u32>) {
    places.clear();
    give(&PLACES, places);
}

/// An empty list with room for `n` variables, and for not many more.
pub(crate) fn vars(n: usize) -> Vec<Var> {
    let kept = take(&VARS);
    if (n..=n.saturating_mul(2)).contains(&kept.capacity()) {
        return kept;
    }
    give(&VARS, kept);
    Vec::with_capacity(n)
}

pub(crate) fn give_vars(mut vars: Vec<Var>) {
    vars.clear();
    give(&VARS, vars);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_is_there_once_and_is_bounded() {
        give_bytes(vec![1; SPARE_MIN_BYTES]);
        assert_eq!(bytes().len(), SPARE_MIN_BYTES);
        assert_eq!(bytes().capacity(), 0);
        give_bytes(vec![1; SPARE_MIN_BYTES - 1]);
        give_bytes(vec![1; SPARE_MAX_BYTES + 1]);
        assert_eq!(bytes().capacity(), 0);
        give_places(vec![1; SPARE_MIN_BYTES]);
        let places = places();
        assert!(places.is_empty() && places.capacity() >= SPARE_MIN_BYTES);
        assert_eq!(vars(0).capacity(), 0);
    }
}
