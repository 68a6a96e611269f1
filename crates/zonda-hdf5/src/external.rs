//! Data in external files: which bytes of which files a part of a dataset is.
//! Spec: HDF5 File Format, "The Data Storage - External Data Files Message".
//! The bytes of the dataset are those of all slots, one slot after the other.

use crate::{ExternalFileList, ExternalSlot};

/// Bytes of an external file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalSegment<'a> {
    /// Name of the file as the writer gave it. The caller decides whether it may be opened.
    pub name: &'a [u8],
    /// First byte in the file.
    pub at: u64,
    /// Where these bytes are in the requested ones.
    pub offset: u64,
    /// How many. Those that the file lacks are zeros.
    pub len: u64,
}

impl ExternalFileList {
    /// Bytes of all slots together; `u64::MAX` where the last has no limit.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.slots.iter().map(|slot| slot.len).fold(0, u64::saturating_add)
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where `len` bytes of the dataset are, from byte `at` on, in order. What is beyond the last
    /// slot is left out.
    pub fn segments(&self, at: u64, len: u64) -> impl Iterator<Item = ExternalSegment<'_>> {
        let end = at.saturating_add(len);
        let mut begin = 0u64;
        self.slots.iter().filter_map(move |slot: &ExternalSlot| {
            let slot_begin = begin;
            begin = begin.saturating_add(slot.len);
            let from = slot_begin.max(at);
            let len = begin.min(end).checked_sub(from).filter(|&len| len > 0)?;
            let at_slot = from.checked_sub(slot_begin)?;
            Some(ExternalSegment {
                name: &slot.name,
                at: slot.offset.saturating_add(at_slot),
                offset: from.checked_sub(at)?,
                len,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_become_segments() {
        let slot = |name: &[u8], offset, len| ExternalSlot { name: name.into(), offset, len };
        let list = ExternalFileList {
            slots: vec![
                slot(b"a", 100, 10),
                slot(b"b", 0, 0),
                slot(b"c", 7, 5),
                slot(b"a", 0, u64::MAX),
            ],
        };
        let segments = |at, len| -> Vec<_> {
            list.segments(at, len).map(|s| (s.name[0], s.at, s.offset, s.len)).collect()
        };
        assert_eq!(segments(0, 10), [(b'a', 100, 0, 10)]);
        assert_eq!(segments(9, 2), [(b'a', 109, 0, 1), (b'c', 7, 1, 1)]);
        let all = [(b'a', 102, 0, 8), (b'c', 7, 8, 5), (b'a', 0, 13, 30)];
        assert_eq!(segments(2, 43), all);
        assert_eq!(segments(1000, 1), [(b'a', 985, 0, 1)]);
        assert_eq!(segments(3, 0), []);
        let short = ExternalFileList { slots: vec![slot(b"a", 1, 4)] };
        assert_eq!(short.len(), 4);
        assert_eq!(short.segments(2, 9).map(|s| s.len).sum::<u64>(), 2);
        assert_eq!(short.segments(4, 9).count(), 0);
    }
}
