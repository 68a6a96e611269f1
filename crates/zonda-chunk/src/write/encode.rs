//! From an element's form in memory to its form in the file: the mirror of [`Decode`](crate::Decode).

use zonda_convert::{Converted, Encoder};

use crate::decode::grow;
use crate::tuning::CONVERT_BLOCK_BYTES;

/// What becomes of each element on its way from the caller's memory.
#[derive(Clone, Copy)]
pub enum ElementEncoding<'a> {
    /// Numbers and text.
    Convert(Encoder),
    /// The bytes as they are in memory.
    Raw {
        /// Bytes of an element.
        elem_size: usize,
    },
    /// Whatever the caller does to packed elements, in any order and from any thread. What it
    /// gives for an element must depend on nothing but that element.
    Custom {
        /// Bytes of an element in memory.
        mem_size: usize,
        /// Bytes of an element in the file.
        file_size: usize,
        /// Turns packed elements in memory into as many of the file, every byte of them.
        run: &'a (dyn Fn(&[u8], &mut [u8]) -> Converted + Sync),
    },
}

impl std::fmt::Debug for ElementEncoding<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ElementEncoding::Convert(encoder) => f.debug_tuple("Convert").field(encoder).finish(),
            ElementEncoding::Raw { elem_size } => f.debug_tuple("Raw").field(elem_size).finish(),
            ElementEncoding::Custom { mem_size, file_size, .. } => {
                f.debug_tuple("Custom").field(mem_size).field(file_size).finish()
            }
        }
    }
}

impl ElementEncoding<'_> {
    pub(crate) fn file_size(&self) -> usize {
        match self {
            ElementEncoding::Convert(encoder) => encoder.ext_size(),
            ElementEncoding::Raw { elem_size } => *elem_size,
            ElementEncoding::Custom { file_size, .. } => *file_size,
        }
    }

    pub(crate) fn mem_size(&self) -> usize {
        match self {
            ElementEncoding::Convert(encoder) => encoder.mem_size(),
            ElementEncoding::Raw { elem_size } => *elem_size,
            ElementEncoding::Custom { mem_size, .. } => *mem_size,
        }
    }

    /// Whether elements are the same bytes on both sides.
    pub(crate) fn is_copy(&self) -> bool {
        match self {
            ElementEncoding::Convert(encoder) => encoder.is_copy(),
            ElementEncoding::Raw { .. } => true,
            ElementEncoding::Custom { .. } => false,
        }
    }

    /// Whether elements that do not fit leave what is in the file as it is.
    pub(crate) fn keeps_unfit(&self) -> bool {
        matches!(self, ElementEncoding::Convert(encoder) if encoder.keeps_unfit())
    }

    /// Packed elements to packed elements.
    #[inline]
    pub(crate) fn run(&self, src: &[u8], dst: &mut [u8]) -> Converted {
        match self {
            ElementEncoding::Convert(encoder) => encoder.encode(src, dst),
            ElementEncoding::Raw { .. } => {
                dst.copy_from_slice(src);
                Converted::default()
            }
            ElementEncoding::Custom { run, .. } => run(src, dst),
        }
    }

    /// The packed elements of `src` to places `step` bytes apart, the first at the start of `dst`.
    /// `block` is scratch.
    pub(crate) fn row(
        &self,
        src: &[u8],
        dst: &mut [u8],
        step: usize,
        block: &mut Vec<u8>,
    ) -> Converted {
        let (file, mem) = (self.file_size(), self.mem_size());
        let n = src.len() / mem;
        if step == file || n <= 1 {
            return self.run(src, &mut dst[..n * file]);
        }
        match self {
            ElementEncoding::Convert(encoder) => encoder.encode_strided(src, dst, step),
            ElementEncoding::Raw { .. } => {
                scatter(src, file, dst, step);
                Converted::default()
            }
            ElementEncoding::Custom { run, .. } => {
                let mut converted = Converted::default();
                let per_block = (CONVERT_BLOCK_BYTES / file).max(1);
                for (i, src) in src.chunks(per_block * mem).enumerate() {
                    let bytes = src.len() / mem * file;
                    grow(block, bytes);
                    converted = converted.and(run(src, &mut block[..bytes]));
                    scatter(&block[..bytes], file, &mut dst[i * per_block * step..], step);
                }
                converted
            }
        }
    }
}

/// Spreads packed elements of `size` bytes to places `step` bytes apart.
fn scatter(packed: &[u8], size: usize, dst: &mut [u8], step: usize) {
    match size {
        1 => scatter_known::<1>(packed, dst, step),
        2 => scatter_known::<2>(packed, dst, step),
        4 => scatter_known::<4>(packed, dst, step),
        8 => scatter_known::<8>(packed, dst, step),
        _ => {
            for (i, elem) in packed.chunks_exact(size).enumerate() {
                dst[i * step..][..size].copy_from_slice(elem);
            }
        }
    }
}

fn scatter_known<const N: usize>(packed: &[u8], dst: &mut [u8], step: usize) {
    for (i, elem) in packed.as_chunks::<N>().0.iter().enumerate() {
        dst[i * step..][..N].copy_from_slice(elem);
    }
}
