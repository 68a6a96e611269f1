//! Values that lie in memory alone, so that who writes them takes nothing else from other processors.

use std::ops::{Deref, DerefMut};

/// A value in a line of memory of its own. Two lines, since processors fetch them by pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Apart<T>(pub T);

impl<T> Deref for Apart<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Apart<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Apart;

    #[test]
    fn neighbours_are_in_other_lines() {
        let all = [const { Apart(0u8) }; 3];
        let at = |n: usize| &raw const all[n] as usize;
        assert!(at(0) % 128 == 0 && at(1) - at(0) >= 128 && at(2) - at(1) >= 128);
    }
}
