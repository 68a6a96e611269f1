//! Data Layout message (0x0008): where a dataset's raw bytes are.
//! Spec: HDF5 File Format, "The Data Layout Message". Versions 1 to 5 read, 3 written.
//! Watch: the chunk dimension list has rank + 1 entries, the last being the element size.

use crate::{FileAddr, HdfError, ReadLimits, Reader, Result, Writer};

/// Where a dataset's raw bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataLayout {
    /// In the message itself.
    Compact {
        /// The bytes.
        data: Box<[u8]>,
    },
    /// In one run.
    Contiguous {
        /// Where; `None` where nothing was ever written, or the bytes are in external files.
        addr: Option<FileAddr>,
        /// Bytes; `None` in versions 1 and 2, where it follows from type and shape.
        len: Option<u64>,
    },
    /// In chunks.
    Chunked(ChunkedLayout),
    /// In other datasets; the mapping is an object of the global heap.
    Virtual {
        /// Heap collection; `None` where nothing is mapped.
        heap: Option<FileAddr>,
        /// Object in it.
        index: u32,
    },
}

/// How and where chunks are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkedLayout {
    /// Shape of a chunk in elements, slowest first, without the element size.
    pub chunk_dims: Vec<u64>,
    /// Bytes of an element, as the message says.
    pub elem_size: u32,
    /// How chunks are found.
    pub index: ChunkIndexKind,
    /// Where the index is; `None` where no chunk was ever written.
    pub addr: Option<FileAddr>,
    /// Chunks that the extent cuts are not filtered (version 4, flag bit 0).
    pub partial_edge_unfiltered: bool,
    /// Sizes of filtered chunks have the width of a length (version 5), not one that follows from
    /// the bytes of a chunk.
    pub wide_filtered_sizes: bool,
}

/// How chunks are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkIndexKind {
    /// B-tree of version 1 (layout versions 1 to 3).
    BtreeV1,
    /// There is only one.
    Single {
        /// Bytes in the file and mask of skipped filters, where it is filtered.
        filtered: Option<(u64, u32)>,
    },
    /// One after the other.
    Implicit,
    /// Fixed array.
    FixedArray {
        /// Bits of the number of elements in a page.
        page_bits: u8,
    },
    /// Extensible array.
    ExtensibleArray {
        /// Bits of the largest index.
        max_bits: u8,
        /// Elements in the index block.
        index_elems: u8,
        /// Least number of pointers in a super block.
        min_pointers: u8,
        /// Least number of elements in a data block.
        min_elems: u8,
        /// Bits of the number of elements in a page.
        page_bits: u8,
    },
    /// B-tree of version 2.
    BtreeV2 {
        /// Bytes of a node.
        node_size: u32,
        /// Percentage.
        split: u8,
        /// Percentage.
        merge: u8,
    },
}

impl ChunkedLayout {
    /// Bytes of a chunk before filters; those of a decoded layout fit 63 bits.
    #[must_use]
    pub fn chunk_bytes(&self) -> u64 {
        self.checked_bytes().unwrap_or(u64::MAX)
    }

    fn checked_bytes(&self) -> Option<u64> {
        self.chunk_dims
            .iter()
            .try_fold(u64::from(self.elem_size), |product, &dim| product.checked_mul(dim))
            .filter(|&product| product <= i64::MAX as u64)
    }
}

impl DataLayout {
    /// Decodes the message.
    ///
    /// # Errors
    /// Also for chunks with a dimension of 0 or of more than 2^63 bytes, and for index parameters
    /// that no index can have.
    pub fn decode(mut reader: Reader<'_>, limits: &ReadLimits) -> Result<DataLayout> {
        reader = reader.named(NAME);
        match reader.version(1..=5)? {
            1..=2 => decode_old(reader, limits),
            version => decode_new(reader, version, limits),
        }
    }
}

const NAME: &str = "data layout message";

impl DataLayout {
    /// Encodes the message in version 3.
    ///
    /// # Errors
    /// [`HdfError::Unsupported`] for what only other versions can say: chunk indexes other than
    /// the version 1 B-tree, contiguous data of unknown length, virtual datasets;
    /// [`HdfError::TooLarge`] for compact data of 64 KiB and more and for chunks of 4 GiB and more.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        let unsupported = |what| HdfError::Unsupported { structure: NAME, at: 0, what };
        match self {
            DataLayout::Compact { data } => {
                let too_large = |_| too_large(data.len() as u64);
                let len = u16::try_from(data.len()).map_err(too_large)?;
                writer.u8(3).u8(COMPACT).u16(len).put(data);
            }
            DataLayout::Contiguous { addr, len } => {
                let len = len.ok_or(unsupported("writing contiguous data of unknown length"))?;
                writer.u8(3).u8(CONTIGUOUS).addr(*addr)?.length(len)?;
            }
            DataLayout::Chunked(layout) => {
                let old_style = layout.index == ChunkIndexKind::BtreeV1
                    && !layout.partial_edge_unfiltered
                    && !layout.wide_filtered_sizes;
                if !old_style {
                    return Err(unsupported("writing a chunk index of this kind"));
                }
                if let len @ 0x1_0000_0000.. = layout.chunk_bytes() {
                    return Err(too_large(len));
                }
                let n_dims = layout.chunk_dims.len().saturating_add(1);
                let n_dims = u8::try_from(n_dims).map_err(|_| too_large(n_dims as u64))?;
                writer.u8(3).u8(CHUNKED).u8(n_dims).addr(layout.addr)?;
                for &dim in &layout.chunk_dims {
                    writer.uint(dim, 4)?;
                }
                writer.u32(layout.elem_size);
            }
            DataLayout::Virtual { .. } => return Err(unsupported("writing a virtual layout")),
        }
        Ok(())
    }
}

fn too_large(value: u64) -> HdfError {
    HdfError::TooLarge { structure: NAME, value }
}

const COMPACT: u8 = 0;
const CONTIGUOUS: u8 = 1;
const CHUNKED: u8 = 2;
const VIRTUAL: u8 = 3;

/// Versions 1 and 2, from behind the version on.
fn decode_old(mut reader: Reader<'_>, limits: &ReadLimits) -> Result<DataLayout> {
    let n_dims = usize::from(reader.u8()?);
    let class = reader.u8()?;
    reader.skip(5)?;
    let addr = if class == COMPACT { None } else { reader.addr()? };
    match class {
        CHUNKED => {
            let (chunk_dims, elem_size) = chunk_dims(&mut reader, n_dims, 4, limits)?;
            chunked(&reader, chunk_dims, elem_size, ChunkIndexKind::BtreeV1, addr)
        }
        COMPACT | CONTIGUOUS => {
            // The shape again, cut to 32 bits: the dataspace knows better.
            if n_dims > limits.rank.saturating_add(1) {
                return Err(reader.bad("number of dimensions", n_dims as u64));
            }
            reader.skip(n_dims.saturating_mul(4))?;
            if class == CONTIGUOUS {
                return Ok(DataLayout::Contiguous { addr, len: None });
            }
            let len = reader.u32()?;
            Ok(DataLayout::Compact { data: reader.take_u64(u64::from(len))?.into() })
        }
        _ => Err(reader.bad("layout class", u64::from(class))),
    }
}

/// Versions 3 to 5, from behind the version on.
fn decode_new(mut reader: Reader<'_>, version: u8, limits: &ReadLimits) -> Result<DataLayout> {
    match reader.u8()? {
        COMPACT => {
            let len = reader.u16()?;
            Ok(DataLayout::Compact { data: reader.take(usize::from(len))?.into() })
        }
        CONTIGUOUS => {
            let addr = reader.addr()?;
            Ok(DataLayout::Contiguous { addr, len: Some(reader.length()?) })
        }
        CHUNKED if version == 3 => {
            let n_dims = usize::from(reader.u8()?);
            let addr = reader.addr()?;
            let (chunk_dims, elem_size) = chunk_dims(&mut reader, n_dims, 4, limits)?;
            chunked(&reader, chunk_dims, elem_size, ChunkIndexKind::BtreeV1, addr)
        }
        CHUNKED => decode_chunked(reader, version, limits),
        VIRTUAL if version >= 4 => {
            Ok(DataLayout::Virtual { heap: reader.addr()?, index: reader.u32()? })
        }
        class => Err(reader.bad("layout class", u64::from(class))),
    }
}

/// The chunked class of versions 4 and 5, from behind the class on.
fn decode_chunked(mut reader: Reader<'_>, version: u8, limits: &ReadLimits) -> Result<DataLayout> {
    let flags = reader.u8()?;
    if flags & !3 != 0 {
        return Err(reader.bad("flags", u64::from(flags)));
    }
    let n_dims = usize::from(reader.u8()?);
    let width = usize::from(reader.u8()?);
    if width == 0 || width > 8 {
        return Err(reader.bad("width of a chunk's dimensions", width as u64));
    }
    let (dims, elem_size) = chunk_dims(&mut reader, n_dims, width, limits)?;
    let index = match reader.u8()? {
        1 => ChunkIndexKind::Single {
            filtered: match flags & 2 {
                0 => None,
                _ => Some((reader.length()?, reader.u32()?)),
            },
        },
        2 => ChunkIndexKind::Implicit,
        3 => ChunkIndexKind::FixedArray { page_bits: parameter(&mut reader)? },
        4 => ChunkIndexKind::ExtensibleArray {
            max_bits: parameter(&mut reader)?,
            index_elems: parameter(&mut reader)?,
            min_pointers: parameter(&mut reader)?,
            min_elems: parameter(&mut reader)?,
            page_bits: parameter(&mut reader)?,
        },
        5 => {
            let node_size = reader.u32()?;
            if node_size == 0 {
                return Err(reader.bad("bytes of a B-tree node", 0));
            }
            let (split, merge) = (parameter(&mut reader)?, parameter(&mut reader)?);
            ChunkIndexKind::BtreeV2 { node_size, split, merge }
        }
        kind => return Err(reader.bad("kind of chunk index", u64::from(kind))),
    };
    let addr = reader.addr()?;
    let mut layout = chunked(&reader, dims, elem_size, index, addr)?;
    if let DataLayout::Chunked(chunked) = &mut layout {
        chunked.partial_edge_unfiltered = flags & 1 != 0;
        chunked.wide_filtered_sizes = version == 5;
    }
    Ok(layout)
}

/// A parameter of an index, none of which can be 0.
fn parameter(reader: &mut Reader<'_>) -> Result<u8> {
    match reader.u8()? {
        0 => Err(reader.bad("parameter of a chunk index", 0)),
        value => Ok(value),
    }
}

/// `n_dims` numbers of `width` bytes: the shape of a chunk, and the bytes of an element.
fn chunk_dims(
    reader: &mut Reader<'_>,
    n_dims: usize,
    width: usize,
    limits: &ReadLimits,
) -> Result<(Vec<u64>, u32)> {
    if n_dims < 2 || n_dims > limits.rank.saturating_add(1) {
        return Err(reader.bad("number of a chunk's dimensions", n_dims as u64));
    }
    let mut dims: Vec<u64> = (0..n_dims).map(|_| reader.uint(width)).collect::<Result<_>>()?;
    if dims.contains(&0) {
        return Err(reader.bad("dimension of a chunk", 0));
    }
    let elem_size = dims.pop().unwrap_or_default();
    match u32::try_from(elem_size) {
        Ok(elem_size) => Ok((dims, elem_size)),
        Err(_) => Err(reader.bad("bytes of an element", elem_size)),
    }
}

fn chunked(
    reader: &Reader<'_>,
    chunk_dims: Vec<u64>,
    elem_size: u32,
    index: ChunkIndexKind,
    addr: Option<FileAddr>,
) -> Result<DataLayout> {
    let layout = ChunkedLayout {
        chunk_dims,
        elem_size,
        index,
        addr,
        partial_edge_unfiltered: false,
        wide_filtered_sizes: false,
    };
    match layout.checked_bytes() {
        Some(_) => Ok(DataLayout::Chunked(layout)),
        None => Err(reader.bad("bytes of a chunk", u64::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{encoded, hex};
    use crate::{HdfError, Sizes};

    fn decode(bytes: &[u8]) -> Result<DataLayout> {
        let sizes = Sizes { offset: 4, length: 4 };
        DataLayout::decode(Reader::new("test", bytes, 0, sizes), &ReadLimits::default())
    }

    fn chunked(bytes: &[u8]) -> ChunkedLayout {
        match decode(bytes).unwrap() {
            DataLayout::Chunked(chunked) => chunked,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn versions_1_to_3() {
        let contiguous = b"\x01\x02\x01\0\0\0\0\0\x10\0\0\0\x03\0\0\0\x04\0\0\0";
        let addr = Some(FileAddr(16));
        assert_eq!(decode(contiguous).unwrap(), DataLayout::Contiguous { addr, len: None });
        let compact = b"\x02\x01\x00\0\0\0\0\0\x02\0\0\0\x02\0\0\0hi";
        assert_eq!(decode(compact).unwrap(), DataLayout::Compact { data: b"hi"[..].into() });
        let old = chunked(b"\x01\x02\x02\0\0\0\0\0\xff\xff\xff\xff\x03\0\0\0\x04\0\0\0");
        assert_eq!((old.chunk_dims.as_slice(), old.elem_size, old.addr), (&[3][..], 4, None));
        assert_eq!((old.index, old.chunk_bytes()), (ChunkIndexKind::BtreeV1, 12));
        let new = b"\x03\x01\xff\xff\xff\xff\x08\0\0\0";
        assert_eq!(decode(new).unwrap(), DataLayout::Contiguous { addr: None, len: Some(8) });
        assert_eq!(
            decode(b"\x03\0\x01\0x").unwrap(),
            DataLayout::Compact { data: b"x"[..].into() }
        );
        let new = chunked(b"\x03\x02\x03\x10\0\0\0\x05\0\0\0\x06\0\0\0\x08\0\0\0");
        assert_eq!((new.chunk_dims.as_slice(), new.elem_size), (&[5, 6][..], 8));
    }

    #[test]
    fn versions_4_and_5() {
        let single = chunked(b"\x04\x02\x02\x02\x01\x05\x08\x01\x63\0\0\0\x01\0\0\0\x10\0\0\0");
        assert_eq!(single.index, ChunkIndexKind::Single { filtered: Some((99, 1)) });
        assert_eq!(single.addr, Some(FileAddr(16)));
        let single = chunked(b"\x04\x02\x01\x02\x01\x05\x08\x01\x10\0\0\0");
        assert_eq!(single.index, ChunkIndexKind::Single { filtered: None });
        assert!(single.partial_edge_unfiltered && !single.wide_filtered_sizes);
        let fixed = chunked(b"\x05\x02\0\x02\x02\x05\0\x08\0\x03\x0a\x10\0\0\0");
        assert_eq!(fixed.index, ChunkIndexKind::FixedArray { page_bits: 10 });
        assert!(fixed.wide_filtered_sizes);
        let growing = chunked(b"\x04\x02\0\x02\x01\x05\x08\x04\x20\x04\x05\x10\x0a\x10\0\0\0");
        let ChunkIndexKind::ExtensibleArray { min_pointers, min_elems, .. } = growing.index else {
            panic!("{growing:?}")
        };
        assert_eq!((min_pointers, min_elems), (5, 16));
        let tree = chunked(b"\x04\x02\0\x02\x01\x05\x08\x05\0\x08\0\0\x64\x28\x10\0\0\0");
        let expected = ChunkIndexKind::BtreeV2 { node_size: 2048, split: 100, merge: 40 };
        assert_eq!(tree.index, expected);
        let mapped = decode(b"\x04\x03\x10\0\0\0\x07\0\0\0").unwrap();
        assert_eq!(mapped, DataLayout::Virtual { heap: Some(FileAddr(16)), index: 7 });
    }

    #[test]
    fn hostile_layouts() {
        assert!(matches!(decode(b"\x06\x01"), Err(HdfError::BadVersion { .. })));
        assert!(decode(b"\x03\x03\x10\0\0\0\x07\0\0\0").is_err(), "virtual before version 4");
        assert!(decode(b"\x03\0\x02\0x").is_err(), "compact data cut");
        assert!(decode(b"\x03\x02\x01\x10\0\0\0\x08\0\0\0").is_err(), "no dimension");
        assert!(decode(b"\x03\x02\x02\x10\0\0\0\0\0\0\0\x08\0\0\0").is_err(), "empty chunk");
        let mut many = b"\x03\x02\x22\x10\0\0\0".to_vec();
        many.extend(b"\x01\0\0\0".repeat(34));
        assert!(decode(&many).is_err(), "34 dimensions");
        let mut huge = b"\x04\x02\0\x03\x08".to_vec();
        huge.extend(
            [[0, 0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 1, 0, 0, 0], [8, 0, 0, 0, 0, 0, 0, 0]].concat(),
        );
        huge.extend(b"\x02\x10\0\0\0");
        assert!(matches!(decode(&huge), Err(HdfError::BadValue { .. })), "bytes of a chunk");
        assert!(decode(b"\x04\x02\0\x02\x09\x05\x08\x02\x10\0\0\0").is_err(), "width");
        assert!(decode(b"\x04\x02\0\x02\x01\x05\x08\x03\0\x10\0\0\0").is_err(), "page bits");
        assert!(decode(b"\x04\x02\0\x02\x01\x05\x08\x06\x10\0\0\0").is_err(), "index kind");
    }

    #[test]
    fn written_as_libraries_do() {
        // netCDF-C 4.9.0 on HDF5 1.10.8: compact, contiguous, chunks of 512 doubles.
        let bodies = [
            "0300 0800 feffffffffffffff",
            "0301 ffffffffffffffff 1400000000000000",
            "0302 02 ffffffffffffffff 00020000 08000000",
        ];
        for body in bodies.map(hex) {
            let reader = Reader::new("test", &body, 0, Sizes::EIGHT);
            let layout = DataLayout::decode(reader, &ReadLimits::default()).unwrap();
            assert_eq!(encoded(|writer| layout.encode(writer)).unwrap(), body);
        }
    }

    #[test]
    fn what_is_not_written() {
        let encode = |layout: DataLayout| encoded(|writer| layout.encode(writer));
        let layout = chunked(b"\x03\x02\x03\x10\0\0\0\x05\0\0\0\x06\0\0\0\x08\0\0\0");
        assert!(encode(DataLayout::Chunked(layout.clone())).is_ok());
        let mut other = layout.clone();
        other.index = ChunkIndexKind::Implicit;
        let error = encode(DataLayout::Chunked(other)).unwrap_err();
        assert!(matches!(error, HdfError::Unsupported { .. }), "{error}");
        let edges = ChunkedLayout { partial_edge_unfiltered: true, ..layout.clone() };
        assert!(matches!(encode(DataLayout::Chunked(edges)), Err(HdfError::Unsupported { .. })));
        // The largest chunk has one byte less than 4 GiB.
        let bytes = |dims: &[u64]| {
            let layout = ChunkedLayout { chunk_dims: dims.into(), elem_size: 1, ..layout.clone() };
            encode(DataLayout::Chunked(layout))
        };
        assert!(bytes(&[0xffff, 0x1_0001]).is_ok());
        assert!(matches!(bytes(&[1 << 16, 1 << 16]), Err(HdfError::TooLarge { .. })));
        assert!(matches!(bytes(&[u64::MAX, 2]), Err(HdfError::TooLarge { .. })));
        let compact = |len| encode(DataLayout::Compact { data: vec![0; len].into() });
        assert!(compact(0xffff).is_ok() && compact(0x1_0000).is_err());
        let unknown = DataLayout::Contiguous { addr: None, len: None };
        assert!(matches!(encode(unknown), Err(HdfError::Unsupported { .. })));
        let mapped = DataLayout::Virtual { heap: None, index: 0 };
        assert!(matches!(encode(mapped), Err(HdfError::Unsupported { .. })));
    }
}
