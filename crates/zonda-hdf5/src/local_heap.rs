//! Local heap: the names of an old-style group, or of external files.
//! Spec: HDF5 File Format, "Disk Format: Level 1D - Local Heaps". Version 0 read and written. The
//! list of its free blocks is ignored: a reader has no use for it, and heaps are written without
//! one.

use crate::tuning::LOCAL_HEAP_READ_BYTES;
use crate::{File, FileAddr, HdfError, Reader, Result, Sizes, Writer};

const NAME: &str = "local heap";

/// A local heap, its data read.
#[derive(Clone, Debug)]
pub struct LocalHeap {
    data: Box<[u8]>,
    /// Where the header and the data are.
    places: [FileAddr; 2],
    /// Byte of the file where the data are.
    at: u64,
    sizes: Sizes,
}

/// Offsets in the data, and the length of a header, are multiples of this.
const ALIGN: usize = 8;

/// What the list of free blocks begins with where there are none.
const NO_FREE_BLOCK: u64 = 1;

/// Bytes of a header with its padding.
fn header_len(sizes: Sizes) -> usize {
    let (offset, length) = (usize::from(sizes.offset), usize::from(sizes.length));
    let len = offset.saturating_add(length.saturating_mul(2)).saturating_add(8);
    len.checked_next_multiple_of(ALIGN).unwrap_or(len)
}

impl LocalHeap {
    /// Reads header and data.
    ///
    /// # Errors
    /// Those of a structure that is not there or leads out of the file.
    pub fn read(file: &File, addr: FileAddr) -> Result<LocalHeap> {
        let first = file.read_up_to(NAME, addr, LOCAL_HEAP_READ_BYTES)?;
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
        Ok(LocalHeap { data, places: [addr, data_addr], at, sizes: file.sizes() })
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

    /// Its extents: header and data.
    #[must_use]
    pub fn extents(&self) -> [(FileAddr, u64); 2] {
        let [header, data] = self.places;
        [(header, header_len(self.sizes) as u64), (data, self.data.len() as u64)]
    }
}

/// A local heap that is being made. It has the empty name from the beginning, at offset 0.
#[derive(Debug)]
pub struct NewLocalHeap {
    data: Writer,
}

impl NewLocalHeap {
    /// With nothing but the empty name.
    #[must_use]
    pub fn new(sizes: Sizes) -> NewLocalHeap {
        let mut data = Writer::new(NAME, sizes);
        data.zeros(ALIGN);
        NewLocalHeap { data }
    }

    /// Adds a name, which has no NUL, and gives its offset.
    pub fn insert(&mut self, name: &[u8]) -> u64 {
        let at = self.data.len() as u64;
        self.data.put(name).u8(0).pad_to(ALIGN);
        at
    }

    /// The heap as it is at `place`: its header, and the data directly behind it.
    ///
    /// # Errors [`HdfError::TooLarge`] for more data than fit into a length of the file.
    pub fn encode(
        self,
        place: impl FnOnce(u64) -> Result<FileAddr>,
    ) -> Result<(FileAddr, Vec<u8>)> {
        let (sizes, data) = (self.data.sizes(), self.data.finish());
        let (header, len) = (header_len(sizes), data.len() as u64);
        let addr = place(len.saturating_add(header as u64))?;
        let too_large = HdfError::TooLarge { structure: NAME, value: addr.0 };
        let data_addr = addr.0.checked_add(header as u64).ok_or(too_large)?;
        let mut writer = Writer::with_room(NAME, sizes, header.saturating_add(data.len()));
        writer.put(b"HEAP").u8(0).zeros(3).length(len)?.length(NO_FREE_BLOCK)?;
        writer.addr(Some(FileAddr(data_addr)))?.pad_to(ALIGN).put(&data);
        Ok((addr, writer.finish()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{StructureBytes, file};

    fn heap(len: u64, data: u64) -> StructureBytes {
        StructureBytes::default().bytes(b"HEAP\0\0\0\0").u64(len).u64(1).u64(data)
    }

    #[test]
    fn names_beside_the_header_and_elsewhere() {
        for data in [4096 + 32, 8192] {
            let mut bytes = StructureBytes::new(4096).then(heap(24, data)).bytes;
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
    fn what_is_written_is_read() {
        for sizes in [Sizes::EIGHT, Sizes { offset: 4, length: 4 }, Sizes { offset: 2, length: 4 }]
        {
            let mut heap = NewLocalHeap::new(sizes);
            let names: [&[u8]; 5] = [b"a", b"seven77", b"eight888", b"", b"\xc3\xa9"];
            let places = names.map(|name| heap.insert(name));
            assert_eq!(places, [8, 16, 24, 40, 48]);
            let mut len = 0;
            let place = |asked| {
                len = asked;
                Ok(FileAddr(64))
            };
            let (addr, bytes) = heap.encode(place).unwrap();
            assert_eq!((addr, bytes.len() as u64), (FileAddr(64), len));
            let storage = crate::testing::storage(&[&[0; 64], bytes.as_slice()].concat());
            let file = File::bare(storage, sizes, crate::ReadLimits::default());
            let heap = LocalHeap::read(&file, addr).unwrap();
            for (place, name) in places.into_iter().zip(names) {
                assert_eq!(heap.name(place).unwrap(), name);
            }
            let [(header, header_len), (data, data_len)] = heap.extents();
            assert_eq!((header, header.0 + header_len), (addr, data.0));
            assert_eq!(header_len + data_len, len);
        }
        let mut heap = NewLocalHeap::new(Sizes { offset: 2, length: 2 });
        heap.insert(&[b'x'; 1 << 16]);
        assert!(matches!(heap.encode(|_| Ok(FileAddr(64))), Err(HdfError::TooLarge { .. })));
    }

    #[test]
    fn hostile_headers() {
        let read = |heap: StructureBytes| {
            let bytes = StructureBytes::new(4096).then(heap).bytes(&[0; 64]).bytes;
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
