//! Local heap: the names of an old-style group, or of external files.
//! Spec: HDF5 File Format, "Disk Format: Level 1D - Local Heaps". Version 0 read.
//! The list of its free blocks is not looked at: a reader has no use for it.

use crate::{File, FileAddr, Reader, Result};

const NAME: &str = "local heap";

/// Bytes read at first: header and data are mostly side by side.
const FIRST_READ: u64 = 512;

/// A local heap, its data read.
#[derive(Clone, Debug)]
pub struct LocalHeap {
    data: Box<[u8]>,
    /// Byte of the file where the data are.
    at: u64,
    sizes: crate::Sizes,
}

impl LocalHeap {
    /// Reads header and data.
    ///
    /// # Errors
    /// Those of a structure that is not there or leads out of the file.
    pub fn read(file: &File, addr: FileAddr) -> Result<LocalHeap> {
        let first = file.read_up_to(NAME, addr, FIRST_READ)?;
        let mut reader = file.reader(NAME, addr, &first);
        reader.signature(*b"HEAP")?;
        reader.version(0..=0)?;
        reader.skip(3)?;
        let len = reader.length()?;
        reader.length()?; // First free block.
        let data_addr = reader.defined_addr("data segment")?;
        let at = file.locate(NAME, data_addr, len)?;
        let there = data_addr.0.checked_sub(addr.0).and_then(|skip| {
            let start = usize::try_from(skip).ok()?;
            first.get(start..start.checked_add(usize::try_from(len).ok()?)?)
        });
        let data = match there {
            Some(data) => data.into(),
            None => file.read(NAME, data_addr, len)?.into_boxed_slice(),
        };
        Ok(LocalHeap { data, at, sizes: file.sizes() })
    }

    /// The name that begins at an offset of the data, without its NUL.
    ///
    /// # Errors
    /// Where the offset or the end of the name is not in the data.
    pub fn name(&self, offset: u64) -> Result<&[u8]> {
        let mut reader = Reader::new(NAME, &self.data, self.at, self.sizes);
        reader.take_u64(offset)?;
        reader.until_nul()
    }

    /// All data.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HdfError;
    use crate::testing::{Builder, file};

    fn heap(len: u64, data: u64) -> Builder {
        Builder::default().bytes(b"HEAP\0\0\0\0").u64(len).u64(1).u64(data)
    }

    #[test]
    fn names_beside_the_header_and_elsewhere() {
        for data in [4096 + 32, 8192] {
            let mut bytes = Builder::new(4096).then(heap(24, data)).bytes;
            bytes.resize(usize::try_from(data).unwrap(), 0);
            bytes.extend(b"\0\0\0\0\0\0\0\0temp\0\0\0\0salinity");
            let file = file(&bytes);
            let heap = LocalHeap::read(&file, FileAddr(4096)).unwrap();
            assert_eq!(heap.name(8).unwrap(), b"temp");
            assert_eq!(heap.name(0).unwrap(), b"");
            assert_eq!(heap.data().len(), 24);
            assert!(matches!(heap.name(16), Err(HdfError::Missing { .. })), "no NUL");
            assert!(matches!(heap.name(25), Err(HdfError::Truncated { .. })));
            assert!(heap.name(u64::MAX).is_err());
        }
    }

    #[test]
    fn hostile_headers() {
        let read = |heap: Builder| {
            let bytes = Builder::new(4096).then(heap).bytes(&[0; 64]).bytes;
            LocalHeap::read(&file(&bytes), FileAddr(4096))
        };
        assert!(read(heap(8, 4128)).is_ok());
        assert!(matches!(read(heap(1 << 40, 4128)), Err(HdfError::OutOfFile { .. })));
        assert!(matches!(read(heap(u64::MAX, 4128)), Err(HdfError::OutOfFile { .. })));
        assert!(matches!(read(heap(8, u64::MAX - 1)), Err(HdfError::OutOfFile { .. })));
        assert!(matches!(read(heap(8, u64::MAX)), Err(HdfError::Missing { .. })));
        let mut other = heap(8, 4128);
        other.bytes[0] = b'X';
        assert!(matches!(read(other), Err(HdfError::BadSignature { .. })));
    }
}
