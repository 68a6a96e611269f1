//! Values of the process that are made when somebody first needs them, and never waited for.
//!
//! `std::sync::OnceLock` lets everybody wait for the one who makes the value. A child that is forked
//! meanwhile, by another thread or by a signal handler above the maker, waits for ever: its maker does not exist.
//! So whoever finds nothing here makes a value, and the first one counts.

use once_cell::race::OnceBox;

/// A value for the whole process. It may be made more than once, so making it changes nothing else; one of
/// the values is kept, and everybody sees that one.
#[derive(Debug)]
pub struct Settled<T>(OnceBox<T>);

impl<T> Settled<T> {
    /// Of which nobody has asked yet.
    #[must_use]
    pub const fn new() -> Settled<T> {
        Settled(OnceBox::new())
    }

    /// The value, if there is one.
    pub fn get(&self) -> Option<&T> {
        self.0.get()
    }

    /// The value; where there is none yet, what `make` gives.
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(|| Box::new(make()))
    }

    /// Keeps `value`, and says whether it was the first.
    pub fn settle(&self, value: T) -> bool {
        self.0.set(Box::new(value)).is_ok()
    }
}

impl<T> Default for Settled<T> {
    fn default() -> Settled<T> {
        Settled::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_makes_one_meanwhile_is_not_waited_for() {
        static VALUE: Settled<u32> = Settled::new();
        // As a signal handler does, or a child, whose maker will never go on.
        let kept = VALUE.get_or_make(|| {
            assert_eq!(VALUE.get(), None);
            assert_eq!(*VALUE.get_or_make(|| 1), 1);
            2
        });
        assert_eq!(*kept, 1);
        assert!(!VALUE.settle(3));
        assert_eq!(VALUE.get(), Some(&1));
    }
}
