//! Memory whose size a caller or a file decides.
//!
//! `Vec::with_capacity`, `vec![value; n]` and their kin end the process where there is no memory.
//! That is acceptable for sizes that Zonda chooses itself, which are small. A size that a caller or
//! a file decides goes through these functions, which give an error instead;
//! `scripts/allocations.py` finds allocations that do not.

use std::cell::Cell;

use crate::NcError;

/// There is no memory for so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory {
    /// Bytes that were asked for; [`usize::MAX`] where their number is beyond that.
    pub bytes: usize,
}

thread_local! {
    static REFUSED: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Takes the number of bytes of this thread's last failed allocation since the last call of this
/// function. The code `NC_ENOMEM` carries no number, and a message to the user needs one.
#[must_use]
pub fn take_refused() -> Option<usize> {
    REFUSED.try_with(Cell::take).ok().flatten()
}

impl NoMemory {
    /// No memory for `n` items.
    #[must_use]
    pub fn of<T>(n: usize) -> NoMemory {
        let bytes = n.saturating_mul(size_of::<T>());
        // A thread that is ending has no place to keep the number.
        let _gone = REFUSED.try_with(|refused| refused.set(Some(bytes)));
        NoMemory { bytes }
    }
}

impl std::fmt::Display for NoMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no memory for {} bytes", self.bytes)
    }
}

impl std::error::Error for NoMemory {}

impl From<NoMemory> for NcError {
    fn from(_: NoMemory) -> NcError {
        NcError::NoMem
    }
}

/// Makes room for `more` items behind those of `list`.
///
/// # Errors
/// [`NoMemory`]; the list is then as it was.
pub fn reserve<T>(list: &mut Vec<T>, more: usize) -> Result<(), NoMemory> {
    list.try_reserve_exact(more).map_err(|_| NoMemory::of::<T>(list.len().saturating_add(more)))
}

/// An empty list with room for `n` items.
///
/// # Errors
/// [`NoMemory`].
pub fn room<T>(n: usize) -> Result<Vec<T>, NoMemory> {
    let mut list = Vec::new();
    reserve(&mut list, n)?;
    Ok(list)
}

/// A list of `n` times `value`.
///
/// # Errors
/// [`NoMemory`].
pub fn filled<T: Clone>(n: usize, value: T) -> Result<Vec<T>, NoMemory> {
    let mut list = Vec::new();
    lengthen(&mut list, n, value)?;
    Ok(list)
}

/// Makes `list` at least `n` items long; new ones are `value`.
///
/// # Errors
/// [`NoMemory`]; the list is then as it was.
pub fn lengthen<T: Clone>(list: &mut Vec<T>, n: usize, value: T) -> Result<(), NoMemory> {
    if let Some(more) = n.checked_sub(list.len()) {
        reserve(list, more)?;
        list.resize(n, value);
    }
    Ok(())
}

/// Makes `list` exactly `n` items long; new ones are `value`.
///
/// # Errors
/// [`NoMemory`]; the list is then as it was.
pub fn resize<T: Clone>(list: &mut Vec<T>, n: usize, value: T) -> Result<(), NoMemory> {
    lengthen(list, n, value)?;
    list.truncate(n);
    Ok(())
}

/// A copy of `items`.
///
/// # Errors
/// [`NoMemory`].
pub fn copied<T: Clone>(items: &[T]) -> Result<Vec<T>, NoMemory> {
    let mut list = room(items.len())?;
    list.extend_from_slice(items);
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_no_memory_for_is_an_error_that_says_how_much() {
        let _old = take_refused();
        assert_eq!(filled(usize::MAX, 0u8), Err(NoMemory { bytes: usize::MAX }));
        assert_eq!(room::<u64>(1 << 60), Err(NoMemory { bytes: 1 << 63 }));
        assert_eq!(take_refused(), Some(1 << 63));
        assert_eq!(take_refused(), None);
        let mut list = vec![1u16];
        assert!(lengthen(&mut list, usize::MAX / 2, 0).is_err());
        assert_eq!((list.len(), take_refused()), (1, Some(usize::MAX - 1)));
        lengthen(&mut list, 3, 7).unwrap();
        lengthen(&mut list, 2, 9).unwrap();
        assert_eq!(list, vec![1, 7, 7]);
        assert!(resize(&mut list, usize::MAX / 2, 0).is_err());
        assert_eq!((list.len(), take_refused()), (3, Some(usize::MAX - 1)));
        resize(&mut list, 2, 9).unwrap();
        resize(&mut list, 3, 7).unwrap();
        assert_eq!((list, copied(&[1u8, 2])), (vec![1, 7, 7], Ok(vec![1, 2])));
        assert_eq!(NcError::from(NoMemory::of::<u8>(1)), NcError::NoMem);
    }
}
