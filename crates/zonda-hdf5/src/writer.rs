//! The writer that all encoding goes through: the mirror of [`crate::Reader`].

use std::cell::Cell;
use std::sync::Arc;

use crate::checksum::lookup3;
use crate::tuning::{SCRATCH_MAX_BYTES, WRITER_BYTES};
use crate::{FileAddr, HdfError, Result, Sizes};

thread_local! {
    /// Memory for the next structure that is finished shared.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Little-endian bytes of one structure in the making.
#[derive(Clone, Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    sizes: Sizes,
    structure: &'static str,
}

impl Writer {
    /// An empty structure of this name, for messages.
    #[must_use]
    pub fn new(structure: &'static str, sizes: Sizes) -> Writer {
        Writer { bytes: Vec::with_capacity(WRITER_BYTES), sizes, structure }
    }

    /// The same with room for `room` bytes, where the length is known.
    #[must_use]
    pub fn with_room(structure: &'static str, sizes: Sizes, room: usize) -> Writer {
        Writer { bytes: Vec::with_capacity(room), sizes, structure }
    }

    /// An empty structure in memory that the thread keeps for this, which [`Writer::finish_shared`] gives back.
    #[must_use]
    pub fn scratch(structure: &'static str, sizes: Sizes) -> Writer {
        let mut bytes = SCRATCH.try_with(Cell::take).unwrap_or_default();
        bytes.clear();
        bytes.reserve(WRITER_BYTES);
        Writer { bytes, sizes, structure }
    }

    /// Widths of addresses and lengths.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Bytes so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes so far.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The structure as it is.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// The structure as it is, in memory of its exact length.
    #[must_use]
    pub fn finish_shared(self) -> Arc<[u8]> {
        let shared = Arc::from(&*self.bytes);
        if self.bytes.capacity() <= SCRATCH_MAX_BYTES {
            // Where the thread ends, it is dropped here.
            let _ = SCRATCH.try_with(|kept| kept.replace(self.bytes));
        }
        shared
    }

    /// The structure with the checksum of all its bytes behind them.
    #[must_use]
    pub fn finish_checked(mut self) -> Vec<u8> {
        let sum = lookup3(&self.bytes, 0);
        self.u32(sum);
        self.bytes
    }

    /// Appends these bytes.
    pub fn put(&mut self, bytes: &[u8]) -> &mut Writer {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// `n` zeros.
    pub fn zeros(&mut self, n: usize) -> &mut Writer {
        self.bytes.resize(self.bytes.len().saturating_add(n), 0);
        self
    }

    /// Zeros up to the next multiple of `align`, counted from the start of the structure.
    pub fn pad_to(&mut self, align: usize) -> &mut Writer {
        let len = self.bytes.len();
        self.zeros(len.checked_next_multiple_of(align).unwrap_or(len).saturating_sub(len))
    }

    /// One byte.
    pub fn u8(&mut self, value: u8) -> &mut Writer {
        self.put(&[value])
    }

    /// Two bytes.
    pub fn u16(&mut self, value: u16) -> &mut Writer {
        self.put(&value.to_le_bytes())
    }

    /// Replaces two bytes that were written `at` bytes from the start.
    ///
    /// # Errors
    /// [`HdfError::TooLarge`] where the value does not fit.
    pub fn set_u16(&mut self, at: usize, value: usize) -> Result<()> {
        let too_large = HdfError::TooLarge { structure: self.structure, value: value as u64 };
        let bytes = u16::try_from(value).map_err(|_| too_large)?.to_le_bytes();
        let place = self.bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut);
        if let Some(place) = place {
            *place = bytes;
        }
        Ok(())
    }

    /// Four bytes.
    pub fn u32(&mut self, value: u32) -> &mut Writer {
        self.put(&value.to_le_bytes())
    }

    /// Eight bytes.
    pub fn u64(&mut self, value: u64) -> &mut Writer {
        self.put(&value.to_le_bytes())
    }

    /// A number of `width` bytes, at most 8.
    ///
    /// # Errors
    /// [`HdfError::TooLarge`] where it does not fit.
    pub fn uint(&mut self, value: u64, width: u8) -> Result<&mut Writer> {
        let bytes = value.to_le_bytes();
        let width = usize::from(width).min(bytes.len());
        let (kept, lost) = bytes.split_at_checked(width).unwrap_or((&bytes, &[]));
        if lost.iter().any(|&byte| byte != 0) {
            return Err(HdfError::TooLarge { structure: self.structure, value });
        }
        Ok(self.put(kept))
    }

    /// A length, as wide as lengths are in the file.
    ///
    /// # Errors
    /// As [`Writer::uint`].
    pub fn length(&mut self, value: u64) -> Result<&mut Writer> {
        self.uint(value, self.sizes.length)
    }

    /// An address, as wide as addresses are in the file; all ones for none.
    ///
    /// # Errors
    /// As [`Writer::uint`].
    pub fn addr(&mut self, addr: Option<FileAddr>) -> Result<&mut Writer> {
        match addr {
            Some(addr) => self.uint(addr.0, self.sizes.offset),
            None => Ok(self.ones(self.sizes.offset)),
        }
    }

    /// The length that stands for "no limit": all ones.
    pub fn unlimited(&mut self) -> &mut Writer {
        self.ones(self.sizes.length)
    }

    fn ones(&mut self, width: u8) -> &mut Writer {
        self.put([0xff; 8].get(..usize::from(width)).unwrap_or(&[]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_wide_as_the_file_says() {
        let mut writer = Writer::new("test", Sizes { offset: 4, length: 2 });
        writer.u8(1).addr(Some(FileAddr(0x0403_0201))).unwrap().addr(None).unwrap();
        writer.length(0x0605).unwrap().pad_to(8);
        assert_eq!(writer.bytes(), [1, 1, 2, 3, 4, 255, 255, 255, 255, 5, 6, 0, 0, 0, 0, 0]);
        let error = writer.length(0x1_0000).unwrap_err();
        assert!(matches!(error, HdfError::TooLarge { value: 0x1_0000, .. }), "{error}");
    }

    #[test]
    fn scratch_is_used_again_and_begins_empty() {
        let mut first = Writer::scratch("test", Sizes::EIGHT);
        first.put(&[7; 1000]);
        let memory = first.bytes().as_ptr();
        assert_eq!(*first.finish_shared(), [7; 1000]);
        let mut second = Writer::scratch("test", Sizes::EIGHT);
        assert!(second.is_empty() && second.bytes().as_ptr() == memory);
        // One within another has memory of its own.
        assert_eq!(*Writer::scratch("test", Sizes::EIGHT).u8(1).clone().finish_shared(), [1]);
        second.zeros(SCRATCH_MAX_BYTES + 1);
        assert_eq!(second.finish_shared().len(), SCRATCH_MAX_BYTES + 1);
    }

    #[test]
    fn the_checksum_is_that_of_all_bytes() {
        let mut writer = Writer::new("test", Sizes::EIGHT);
        writer.put(b"abcdefghijkl");
        assert_eq!(writer.finish_checked(), b"abcdefghijkl\x7b\xf8\x12\x40");
    }
}
