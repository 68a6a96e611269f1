//! Elements at a stride: gathered into a small packed block, which the block kernels convert.
//!
//! One gather and one scatter per element size replace a strided kernel per pair of types; the
//! packed block stays in the first-level cache.

use crate::tuning::STRIDED_BLOCK_ELEMS;
use crate::{Converted, Decoder, Encoder};

/// Widest element of any type, in bytes.
const MAX_SIZE: usize = 8;

/// How many elements of `size` bytes lie at `stride` within `len_bytes`.
fn fitting(len_bytes: usize, size: usize, stride: usize) -> usize {
    match len_bytes.checked_sub(size) {
        None => 0,
        Some(_) if stride == 0 => usize::MAX,
        Some(last_start) => last_start / stride + 1,
    }
}

/// Packs elements of `N` bytes lying `stride` apart; `src` starts at the first.
fn gather<const N: usize>(src: &[u8], stride: usize, packed: &mut [u8]) {
    for (i, cell) in packed.as_chunks_mut::<N>().0.iter_mut().enumerate() {
        cell.copy_from_slice(&src[i * stride..][..N]);
    }
}

/// The reverse of [`gather`].
fn scatter<const N: usize>(packed: &[u8], dst: &mut [u8], stride: usize) {
    for (i, cell) in packed.as_chunks::<N>().0.iter().enumerate() {
        dst[i * stride..][..N].copy_from_slice(cell);
    }
}

fn gather_sized(size: usize, src: &[u8], stride: usize, packed: &mut [u8]) {
    match size {
        1 => gather::<1>(src, stride, packed),
        2 => gather::<2>(src, stride, packed),
        4 => gather::<4>(src, stride, packed),
        _ => gather::<8>(src, stride, packed),
    }
}

fn scatter_sized(size: usize, packed: &[u8], dst: &mut [u8], stride: usize) {
    match size {
        1 => scatter::<1>(packed, dst, stride),
        2 => scatter::<2>(packed, dst, stride),
        4 => scatter::<4>(packed, dst, stride),
        _ => scatter::<8>(packed, dst, stride),
    }
}

pub(crate) fn decode(
    decoder: &Decoder,
    src: &[u8],
    ext_stride_bytes: usize,
    dst: &mut [u8],
) -> Converted {
    let (ext_size, mem_size) = (decoder.ext_size(), decoder.mem_size());
    let n_elems = (dst.len() / mem_size).min(fitting(src.len(), ext_size, ext_stride_bytes));
    let dst = &mut dst[..n_elems * mem_size];
    if ext_stride_bytes == ext_size {
        return decoder.decode(&src[..n_elems * ext_size], dst);
    }
    let mut packed = [0; STRIDED_BLOCK_ELEMS * MAX_SIZE];
    let mut converted = Converted::default();
    for (block, dst) in dst.chunks_mut(STRIDED_BLOCK_ELEMS * mem_size).enumerate() {
        let packed = &mut packed[..dst.len() / mem_size * ext_size];
        gather_sized(
            ext_size,
            &src[block * STRIDED_BLOCK_ELEMS * ext_stride_bytes..],
            ext_stride_bytes,
            packed,
        );
        converted = converted.and(decoder.decode(packed, dst));
    }
    converted
}

pub(crate) fn encode(
    encoder: &Encoder,
    src: &[u8],
    dst: &mut [u8],
    ext_stride_bytes: usize,
) -> Converted {
    let (ext_size, mem_size) = (encoder.ext_size(), encoder.mem_size());
    let n_elems = (src.len() / mem_size).min(fitting(dst.len(), ext_size, ext_stride_bytes));
    let src = &src[..n_elems * mem_size];
    if ext_stride_bytes == ext_size {
        return encoder.encode(src, &mut dst[..n_elems * ext_size]);
    }
    let mut packed = [0; STRIDED_BLOCK_ELEMS * MAX_SIZE];
    let mut converted = Converted::default();
    for (block, src) in src.chunks(STRIDED_BLOCK_ELEMS * mem_size).enumerate() {
        let packed = &mut packed[..src.len() / mem_size * ext_size];
        let dst = &mut dst[block * STRIDED_BLOCK_ELEMS * ext_stride_bytes..];
        if encoder.keeps_unfit() {
            gather_sized(ext_size, dst, ext_stride_bytes, packed);
        }
        converted = converted.and(encoder.encode(src, packed));
        scatter_sized(ext_size, packed, dst, ext_stride_bytes);
    }
    converted
}
