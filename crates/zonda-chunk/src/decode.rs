//! From an element's form in the file to its form in memory.

use zonda_convert::{Converted, Decoder};

use crate::ChunkError;
use crate::filter::shuffle;
use crate::tuning::CONVERT_BLOCK_BYTES;

/// What becomes of each element on its way into the caller's memory.
#[derive(Clone, Copy)]
pub enum Decode<'a> {
    /// Numbers and text.
    Convert(Decoder),
    /// The bytes as they are in the file.
    Raw {
        /// Bytes of an element.
        elem_size: usize,
    },
    /// Whatever the caller does to packed elements, in any order and from any thread.
    Custom {
        /// Bytes of an element in the file.
        file_size: usize,
        /// Bytes of an element in memory.
        mem_size: usize,
        /// Turns packed elements of the file into as many in memory.
        run: &'a (dyn Fn(&[u8], &mut [u8]) -> Converted + Sync),
    },
}

impl std::fmt::Debug for Decode<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Decode::Convert(decoder) => f.debug_tuple("Convert").field(decoder).finish(),
            Decode::Raw { elem_size } => f.debug_tuple("Raw").field(elem_size).finish(),
            Decode::Custom { file_size, mem_size, .. } => {
                f.debug_tuple("Custom").field(file_size).field(mem_size).finish()
            }
        }
    }
}

impl Decode<'_> {
    pub(crate) fn file_size(&self) -> usize {
        match self {
            Decode::Convert(decoder) => decoder.ext_size(),
            Decode::Raw { elem_size } => *elem_size,
            Decode::Custom { file_size, .. } => *file_size,
        }
    }

    pub(crate) fn mem_size(&self) -> usize {
        match self {
            Decode::Convert(decoder) => decoder.mem_size(),
            Decode::Raw { elem_size } => *elem_size,
            Decode::Custom { mem_size, .. } => *mem_size,
        }
    }

    /// Whether elements are the same bytes on both sides.
    pub(crate) fn is_copy(&self) -> bool {
        match self {
            Decode::Convert(decoder) => decoder.is_copy(),
            Decode::Raw { .. } => true,
            Decode::Custom { .. } => false,
        }
    }

    /// Packed elements to packed elements.
    #[inline]
    pub(crate) fn run(&self, src: &[u8], dst: &mut [u8]) -> Converted {
        match self {
            Decode::Convert(decoder) => decoder.decode(src, dst),
            Decode::Raw { .. } => {
                dst.copy_from_slice(src);
                Converted::default()
            }
            Decode::Custom { run, .. } => run(src, dst),
        }
    }

    /// Elements `step` bytes apart, the first at the start of `src`, to packed ones filling `dst`.
    /// `block` is scratch.
    pub(crate) fn row(
        &self,
        src: &[u8],
        step: usize,
        dst: &mut [u8],
        block: &mut Vec<u8>,
    ) -> Converted {
        let (file, mem) = (self.file_size(), self.mem_size());
        let n = dst.len() / mem;
        if step == file || n == 1 {
            return self.run(&src[..n * file], dst);
        }
        match self {
            Decode::Convert(decoder) => {
                decoder.decode_strided(&src[..(n - 1) * step + file], step, dst)
            }
            Decode::Raw { .. } => {
                gather(src, step, file, dst);
                Converted::default()
            }
            Decode::Custom { run, .. } => {
                let mut converted = Converted::default();
                let per_block = (CONVERT_BLOCK_BYTES / file).max(1);
                for (i, dst) in dst.chunks_mut(per_block * mem).enumerate() {
                    let bytes = dst.len() / mem * file;
                    grow(block, bytes);
                    gather(&src[i * per_block * step..], step, file, &mut block[..bytes]);
                    converted = converted.and(run(&block[..bytes], dst));
                }
                converted
            }
        }
    }

    /// Elements `first..` of a shuffled chunk, filling `dst`. `block` is scratch.
    pub(crate) fn shuffled(
        &self,
        planes: &[u8],
        first: usize,
        dst: &mut [u8],
        block: &mut Vec<u8>,
    ) -> Converted {
        let (file, mem) = (self.file_size(), self.mem_size());
        if self.is_copy() {
            shuffle::unshuffle_run(planes, file, first, dst.len() / file, dst);
            return Converted::default();
        }
        let mut converted = Converted::default();
        let per_block = (CONVERT_BLOCK_BYTES / file).max(1);
        for (i, dst) in dst.chunks_mut(per_block * mem).enumerate() {
            let n = dst.len() / mem;
            grow(block, n * file);
            let packed = &mut block[..n * file];
            shuffle::unshuffle_run(planes, file, first + i * per_block, n, packed);
            converted = converted.and(self.run(packed, dst));
        }
        converted
    }

    /// The element `fill` over and over; zeros if it is empty.
    pub(crate) fn fill(&self, fill: &[u8], dst: &mut [u8], block: &mut Vec<u8>) -> Converted {
        let (file, mem) = (self.file_size(), self.mem_size());
        let per_block = (CONVERT_BLOCK_BYTES / file).max(1);
        let n = per_block.min(dst.len() / mem);
        grow(block, n * file);
        let packed = &mut block[..n * file];
        if fill.is_empty() {
            packed.fill(0);
        } else {
            packed.chunks_exact_mut(file).for_each(|elem| elem.copy_from_slice(fill));
        }
        let mut converted = Converted::default();
        for dst in dst.chunks_mut(per_block * mem) {
            converted = converted.and(self.run(&packed[..dst.len() / mem * file], dst));
        }
        converted
    }
}

/// Checks that the size of an element in the array, the fill value and the decoder agree.
pub(crate) fn check_sizes(elem: usize, fill: &[u8], decode: &Decode<'_>) -> Result<(), ChunkError> {
    if elem == 0 {
        return Err(ChunkError::Shape { what: "elements in memory have no bytes" });
    }
    if !fill.is_empty() && fill.len() != elem {
        return Err(ChunkError::Shape { what: "the fill value has another size than an element" });
    }
    if decode.file_size() != elem || decode.mem_size() == 0 {
        return Err(ChunkError::Request {
            what: "the conversion is for elements of another size than those of the array",
        });
    }
    Ok(())
}

/// Packs elements of `size` bytes that lie `step` bytes apart.
fn gather(src: &[u8], step: usize, size: usize, packed: &mut [u8]) {
    match size {
        1 => gather_known::<1>(src, step, packed),
        2 => gather_known::<2>(src, step, packed),
        4 => gather_known::<4>(src, step, packed),
        8 => gather_known::<8>(src, step, packed),
        _ => gather_any(src, step, size, packed),
    }
}

fn gather_known<const N: usize>(src: &[u8], step: usize, packed: &mut [u8]) {
    for (i, elem) in packed.as_chunks_mut::<N>().0.iter_mut().enumerate() {
        elem.copy_from_slice(&src[i * step..][..N]);
    }
}

fn gather_any(src: &[u8], step: usize, size: usize, packed: &mut [u8]) {
    for (i, elem) in packed.chunks_exact_mut(size).enumerate() {
        elem.copy_from_slice(&src[i * step..][..size]);
    }
}

/// Makes `bytes` at least `len` long.
pub(crate) fn grow(bytes: &mut Vec<u8>, len: usize) {
    if bytes.len() < len {
        bytes.resize(len, 0);
    }
}
