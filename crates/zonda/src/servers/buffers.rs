//! Memory into which a server takes its client's frames: it is kept for later ones, since pages that are new to the process cost more than
//! the copy.

use std::ops::{Deref, Range};
use std::sync::Arc;

use zonda_model::NcError;
use zonda_runtime::lock::{Mutex, Rank};

use crate::error::Result;
use crate::tuning::{SERVER_BUFFER_STEP, SERVER_LEAST_BUFFER};

/// Memory of one client that waits for further frames.
#[derive(Debug)]
pub(super) struct Buffers {
    spare: Mutex<Spare>,
    most_bytes: usize,
}

#[derive(Debug, Default)]
struct Spare {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl Buffers {
    /// Keeps at most so many bytes.
    pub(super) fn new(most_bytes: usize) -> Arc<Buffers> {
        Arc::new(Buffers { spare: Mutex::ranked(Rank::Arena, Spare::default()), most_bytes })
    }

    /// Memory of so many bytes, whatever is in it.
    ///
    /// # Errors
    /// `NC_ENOMEM`.
    pub(super) fn take(self: &Arc<Buffers>, len: usize) -> Result<Bytes> {
        if len < SERVER_LEAST_BUFFER {
            return Ok(zonda_model::memory::filled(len, 0)?.into());
        }
        let rounded = len.checked_next_multiple_of(SERVER_BUFFER_STEP).ok_or(NcError::NoMem)?;
        let most = rounded.saturating_mul(2);
        let mut spare = self.spare.lock();
        // The one that fits most closely; of a much larger one most would be held in vain.
        let fits =
            spare.buffers.iter().enumerate().filter(|(_, it)| (len..=most).contains(&it.len()));
        let best = fits.min_by_key(|(_, it)| it.len()).map(|(number, _)| number);
        let known = best.map(|number| spare.buffers.swap_remove(number));
        spare.bytes -= known.as_ref().map_or(0, Vec::len);
        drop(spare);
        let memory = match known {
            Some(memory) => memory,
            None => zonda_model::memory::filled(rounded, 0)?,
        };
        Ok(Bytes { memory, used: 0..len, home: Some(Arc::clone(self)) })
    }

    fn give_back(&self, memory: Vec<u8>) {
        let mut spare = self.spare.lock();
        let bytes = spare.bytes.saturating_add(memory.len());
        if bytes <= self.most_bytes {
            spare.bytes = bytes;
            spare.buffers.push(memory);
        }
    }

    /// Gives all that waits back to the system: nothing comes for a while.
    pub(super) fn clear(&self) {
        *self.spare.lock() = Spare::default();
    }
}

/// Bytes of a call, perhaps in memory that is longer, and that goes back where it came from.
#[derive(Debug, Default)]
pub(super) struct Bytes {
    memory: Vec<u8>,
    used: Range<usize>,
    home: Option<Arc<Buffers>>,
}

impl Bytes {
    /// Without so many bytes at the beginning.
    pub(super) fn without_first(mut self, n: usize) -> Bytes {
        self.used.start = self.used.start.saturating_add(n).min(self.used.end);
        self
    }

    /// All of it.
    pub(super) fn as_mut(&mut self) -> &mut [u8] {
        self.memory.get_mut(self.used.clone()).unwrap_or_default()
    }

    /// What it takes in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.memory.capacity()
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(memory: Vec<u8>) -> Bytes {
        Bytes { used: 0..memory.len(), memory, home: None }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.memory.get(self.used.clone()).unwrap_or_default()
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        if let Some(home) = self.home.take() {
            home.give_back(std::mem::take(&mut self.memory));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back_and_is_used_again() {
        let len = SERVER_LEAST_BUFFER + 5;
        let buffers = Buffers::new(8 * SERVER_BUFFER_STEP);
        let mut one = buffers.take(len).unwrap();
        one.as_mut().fill(3);
        let place = one.as_ptr();
        assert_eq!((one.len(), one.without_first(5).len()), (len, len - 5));
        // The same memory, whatever is in it.
        let again = buffers.take(len - 1).unwrap();
        assert_eq!((again.as_ptr(), again.len(), again[0]), (place, len - 1, 3));
        assert_ne!(buffers.take(len).unwrap().as_ptr(), place, "it is in use");
        drop(again);
        assert!(buffers.spare.lock().bytes > 0);
        // Too large for what waits, and too small to be kept.
        let large = buffers.take(4 * SERVER_BUFFER_STEP).unwrap();
        assert!(large.len() == 4 * SERVER_BUFFER_STEP && large.memory_bytes() >= large.len());
        drop(buffers.take(3).unwrap());
        let n = buffers.spare.lock().buffers.len();
        // No more is kept than was said.
        drop([large, buffers.take(9 * SERVER_BUFFER_STEP).unwrap()]);
        assert_eq!(buffers.spare.lock().buffers.len(), n + 1);
        buffers.clear();
        assert_eq!(buffers.spare.lock().bytes, 0);
        assert_eq!(Bytes::from(vec![1, 2]).without_first(9).len(), 0);
    }
}
