//! The bounded reader that all decoding goes through.
//!
//! It never reads outside its bytes, knows the file address of each, and turns a count from the
//! file into a length only after showing that so many items fit into what is left.

use crate::checksum::{agrees, lookup3};
use crate::{HdfError, Result};

/// An address in the file, relative to its base address (the end of a user block).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileAddr(pub u64);

/// Bytes in the file: their address and their number.
pub(crate) type FileRange = (FileAddr, u64);

/// How wide addresses ("offsets") and lengths are in this file, in bytes: 2, 4 or 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of an address.
    pub offset: u8,
    /// Bytes of a length.
    pub length: u8,
}

impl Sizes {
    /// What practically every file has.
    pub const EIGHT: Sizes = Sizes { offset: 8, length: 8 };
}

/// Little-endian reader over bytes of the file.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    structure: &'static str,
    /// Byte of the file that comes next, counted from the very first.
    at: u64,
    sizes: Sizes,
}

impl<'a> Reader<'a> {
    /// A reader over `bytes`, which are at byte `at` of the file (user block included).
    #[must_use]
    pub fn new(structure: &'static str, bytes: &'a [u8], at: u64, sizes: Sizes) -> Reader<'a> {
        Reader { bytes, structure, at, sizes }
    }

    /// The same bytes under another name, for messages.
    #[must_use]
    pub fn named(self, structure: &'static str) -> Reader<'a> {
        Reader { structure, ..self }
    }

    /// The same bytes with other widths of addresses and lengths.
    #[must_use]
    pub fn with_sizes(self, sizes: Sizes) -> Reader<'a> {
        Reader { sizes, ..self }
    }

    /// What is being read.
    #[must_use]
    pub fn structure(&self) -> &'static str {
        self.structure
    }

    /// Byte of the file that comes next.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Widths of addresses and lengths.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// What is left.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// Bytes left.
    #[must_use]
    pub fn left(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// [`HdfError::Truncated`]; so do all that follow.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let Some((head, rest)) = self.bytes.split_at_checked(len) else {
            return Err(HdfError::Truncated {
                structure: self.structure,
                at: self.at,
                need: len as u64,
                have: self.bytes.len() as u64,
            });
        };
        self.bytes = rest;
        self.at = self.at.saturating_add(len as u64);
        Ok(head)
    }

    /// The next `len` bytes, where the length is one from the file.
    pub fn take_u64(&mut self, len: u64) -> Result<&'a [u8]> {
        self.take(usize::try_from(len).unwrap_or(usize::MAX))
    }

    /// A reader over the next `len` bytes, which this one skips.
    #[inline]
    pub fn sub(&mut self, len: usize) -> Result<Reader<'a>> {
        let at = self.at;
        Ok(Reader { bytes: self.take(len)?, structure: self.structure, at, sizes: self.sizes })
    }

    /// Passes over `len` bytes.
    #[inline]
    pub fn skip(&mut self, len: usize) -> Result<()> {
        self.take(len).map(|_| ())
    }

    /// The next `N` bytes by value.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    /// Two bytes.
    #[inline]
    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Four bytes.
    #[inline]
    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Eight bytes.
    #[inline]
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A number of `width` bytes, at most 8.
    #[inline]
    pub fn uint(&mut self, width: usize) -> Result<u64> {
        let mut out = [0; 8];
        let Some(place) = out.get_mut(..width) else {
            return Err(self.bad("width of a number", width as u64));
        };
        place.copy_from_slice(self.take(width)?);
        Ok(u64::from_le_bytes(out))
    }

    /// A length.
    #[inline]
    pub fn length(&mut self) -> Result<u64> {
        self.uint(usize::from(self.sizes.length))
    }

    /// An address; `None` for the undefined one, all ones.
    #[inline]
    pub fn addr(&mut self) -> Result<Option<FileAddr>> {
        let width = usize::from(self.sizes.offset);
        let value = self.uint(width)?;
        let bits = u32::from(self.sizes.offset).saturating_mul(8);
        let undefined = u64::MAX.checked_shr(64u32.saturating_sub(bits)).unwrap_or(0);
        Ok((value != undefined).then_some(FileAddr(value)))
    }

    /// An address that must be there.
    pub fn defined_addr(&mut self, what: &'static str) -> Result<FileAddr> {
        let at = self.at;
        let structure = self.structure;
        self.addr()?.ok_or(HdfError::Missing { structure, at, what })
    }

    /// `n` items of at least `item_len` bytes must fit into what is left.
    pub fn count(&self, n: u64, item_len: usize) -> Result<usize> {
        let need = n.saturating_mul(item_len.max(1) as u64);
        match usize::try_from(n) {
            Ok(count) if need <= self.bytes.len() as u64 => Ok(count),
            _ => Err(HdfError::Truncated {
                structure: self.structure,
                at: self.at,
                need,
                have: self.bytes.len() as u64,
            }),
        }
    }

    /// The bytes up to a NUL, which is passed over.
    pub fn until_nul(&mut self) -> Result<&'a [u8]> {
        let end = self.bytes.iter().position(|&byte| byte == 0);
        let end = end.ok_or_else(|| self.missing("the NUL at the end of a name"))?;
        let text = self.take(end)?;
        self.skip(1)?;
        Ok(text)
    }

    /// Four letters.
    pub fn signature(&mut self, letters: [u8; 4]) -> Result<()> {
        let at = self.at;
        if self.array::<4>()? == letters {
            Ok(())
        } else {
            Err(HdfError::BadSignature { structure: self.structure, at })
        }
    }

    /// A version, one of `known`.
    pub fn version(&mut self, known: std::ops::RangeInclusive<u8>) -> Result<u8> {
        let at = self.at;
        let version = self.u8()?;
        if known.contains(&version) {
            Ok(version)
        } else {
            let (version, newest) = (u32::from(version), u32::from(*known.end()));
            Err(HdfError::BadVersion { structure: self.structure, at, version, newest })
        }
    }

    /// A checksum over all bytes before it. `whole` is the structure from its first byte on, of
    /// which this reader has the rest.
    ///
    /// # Errors
    /// [`HdfError::BadChecksum`], named by the byte where the structure begins.
    pub fn checksum(&mut self, whole: &[u8]) -> Result<()> {
        let covered = whole.len().saturating_sub(self.bytes.len());
        let at = self.at.saturating_sub(covered as u64);
        let stored = self.u32()?;
        let computed = lookup3(whole.get(..covered).unwrap_or_default(), 0);
        if agrees(stored, computed) {
            Ok(())
        } else {
            Err(HdfError::BadChecksum { structure: self.structure, at, stored, computed })
        }
    }

    /// The error of a field with an impossible value.
    #[must_use]
    pub fn bad(&self, what: &'static str, value: u64) -> HdfError {
        HdfError::BadValue { structure: self.structure, at: self.at, what, value }
    }

    /// The error of something that is not there.
    #[must_use]
    pub fn missing(&self, what: &'static str) -> HdfError {
        HdfError::Missing { structure: self.structure, at: self.at, what }
    }

    /// The error of something that Zonda does not read.
    #[must_use]
    pub fn unsupported(&self, what: &'static str) -> HdfError {
        HdfError::Unsupported { structure: self.structure, at: self.at, what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_addresses_and_the_end() {
        let bytes = [1, 2, 3, 0xff, 0xff, 0xff, 0xff, b'a', 0, 9];
        let sizes = Sizes { offset: 4, length: 2 };
        let mut reader = Reader::new("test", &bytes, 100, sizes);
        assert_eq!(reader.u8().unwrap(), 1);
        assert_eq!(reader.length().unwrap(), 0x0302);
        assert_eq!(reader.addr().unwrap(), None);
        assert_eq!(reader.until_nul().unwrap(), b"a");
        assert_eq!(reader.at(), 109);
        assert!(reader.count(1, 1).is_ok() && reader.count(2, 1).is_err());
        assert!(reader.count(u64::MAX, 16).is_err());
        let error = reader.u16().unwrap_err();
        assert!(matches!(error, HdfError::Truncated { at: 109, need: 2, have: 1, .. }));
        assert_eq!(reader.u8().unwrap(), 9, "an error takes nothing");
        assert!(reader.until_nul().is_err());
    }
}
