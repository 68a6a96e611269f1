//! Shuffle (2): byte k of all elements side by side, one plane per byte of an element. Bytes that
//! fill no element follow as they are. Parameters: the size of an element.
//!
//! The kernels are plain loops, compiled for several levels of the CPU's vector instructions; the
//! one for the CPU is found at run time. `optimization-notes.md` has the measurements.

use std::{array, slice};

use multiversion::multiversion;

use super::{ChunkShape, Filter, FilterError, FilterSpec, lengthen, reserve};

const NAME: &str = "shuffle";

#[derive(Debug)]
struct Shuffle {
    elem_size: usize,
}

pub(crate) fn new(spec: &FilterSpec, _: &ChunkShape) -> Result<Box<dyn Filter>, FilterError> {
    match spec.params[..] {
        [value] if value > 0 => Ok(Box::new(Shuffle { elem_size: value as usize })),
        [value] => Err(FilterError::BadParameter { filter: NAME, index: 0, value }),
        _ => Err(FilterError::FewParameters { filter: NAME, have: spec.params.len(), need: 1 }),
    }
}

impl Filter for Shuffle {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, stored: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
        if stored.len() > most {
            let (got, expected) = (stored.len(), most);
            return Err(FilterError::WrongLength { filter: NAME, got, expected });
        }
        reserve(NAME, out, stored.len())?;
        out.resize(stored.len(), 0);
        unshuffle(stored, self.elem_size, out);
        Ok(())
    }

    fn decode_into(&self, stored: &[u8], out: &mut [u8]) -> Result<(), FilterError> {
        if stored.len() != out.len() {
            let (got, expected) = (stored.len(), out.len());
            return Err(FilterError::WrongLength { filter: NAME, got, expected });
        }
        unshuffle(stored, self.elem_size, out);
        Ok(())
    }

    fn decode_prefix(&self, stored: &[u8]) -> Option<Result<usize, FilterError>> {
        (self.elem_size == 1).then_some(Ok(stored.len()))
    }

    fn encoded_len(&self, raw_len: usize) -> Option<usize> {
        Some(raw_len)
    }

    fn shuffles(&self) -> Option<usize> {
        Some(self.elem_size)
    }

    fn encode(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<bool, FilterError> {
        reserve(NAME, out, raw.len())?;
        out.resize(raw.len(), 0);
        shuffle(raw, self.elem_size, out);
        Ok(true)
    }

    fn encode_over(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<Option<usize>, FilterError> {
        shuffle(raw, self.elem_size, lengthen(NAME, out, raw.len())?);
        Ok(Some(raw.len()))
    }
}

/// Puts the elements of a shuffled chunk together again; what fills no element is copied.
///
/// # Panics
/// If the lengths differ.
pub fn unshuffle(stored: &[u8], elem_size: usize, out: &mut [u8]) {
    assert_eq!(stored.len(), out.len(), "shuffling keeps the length");
    let elems = stored.len().checked_div(elem_size).unwrap_or(0);
    if elem_size <= 1 || elems <= 1 {
        return out.copy_from_slice(stored);
    }
    let (planes, rest) = stored.split_at(elems * elem_size);
    let (whole, out_rest) = out.split_at_mut(planes.len());
    unshuffle_run(planes, elem_size, 0, elems, whole);
    out_rest.copy_from_slice(rest);
}

/// Puts `elems` elements of a shuffled chunk together again, from element `first` on.
///
/// `planes` is the whole chunk, `elem_size` planes of the same length; `out` takes
/// `elems * elem_size` bytes.
///
/// # Panics
/// If the run is not in the chunk, or `out` has another length.
pub fn unshuffle_run(planes: &[u8], elem_size: usize, first: usize, elems: usize, out: &mut [u8]) {
    if elems == 0 || elem_size == 0 {
        return assert!(out.is_empty(), "no elements");
    }
    let each = planes.len() / elem_size;
    let plane = |k: usize| &planes[k * each..][..each][first..][..elems];
    assert_eq!(out.len(), elems * elem_size, "room for the run");
    match elem_size {
        1 => out.copy_from_slice(plane(0)),
        2 => join_2(plane(0), plane(1), out),
        4 => join_4(array::from_fn(plane), out),
        8 => join_8(array::from_fn(plane), out),
        _ => {
            for (t, out) in out.chunks_mut(TILE * elem_size).enumerate() {
                let n = out.len() / elem_size;
                let part = |k: usize| &plane(k)[t * TILE..][..n];
                let mut k = 0;
                while k < elem_size {
                    let mut tile = [0; 8 * TILE];
                    match elem_size - k {
                        8.. => {
                            join_8(array::from_fn(|i| part(k + i)), &mut tile[..8 * n]);
                            k += place::<8>(&tile, elem_size, k, out);
                        }
                        4.. => {
                            join_4(array::from_fn(|i| part(k + i)), &mut tile[..4 * n]);
                            k += place::<4>(&tile, elem_size, k, out);
                        }
                        2.. => {
                            join_2(part(k), part(k + 1), &mut tile[..2 * n]);
                            k += place::<2>(&tile, elem_size, k, out);
                        }
                        _ => {
                            tile[..n].copy_from_slice(part(k));
                            k += place::<1>(&tile, elem_size, k, out);
                        }
                    }
                }
            }
        }
    }
}

/// Puts byte k of all elements side by side; what fills no element is copied.
///
/// # Panics
/// If the lengths differ.
pub fn shuffle(raw: &[u8], elem_size: usize, out: &mut [u8]) {
    assert_eq!(raw.len(), out.len(), "shuffling keeps the length");
    let elems = raw.len().checked_div(elem_size).unwrap_or(0);
    if elem_size <= 1 || elems <= 1 {
        return out.copy_from_slice(raw);
    }
    let (raw, rest) = raw.split_at(elems * elem_size);
    let (planes, out_rest) = out.split_at_mut(raw.len());
    out_rest.copy_from_slice(rest);
    let mut planes = planes.chunks_exact_mut(elems);
    let mut k = 0;
    while k < elem_size {
        k += match elem_size - k {
            8.. => split_at::<8>(raw, elem_size, k, &mut planes),
            4.. => split_at::<4>(raw, elem_size, k, &mut planes),
            2.. => split_at::<2>(raw, elem_size, k, &mut planes),
            _ => split_at::<1>(raw, elem_size, k, &mut planes),
        };
    }
}

/// Bytes k to k + N of each element to the next planes; N.
fn split_at<const N: usize>(
    raw: &[u8],
    elem_size: usize,
    k: usize,
    planes: &mut slice::ChunksExactMut<'_, u8>,
) -> usize {
    let mut planes: [&mut [u8]; N] =
        array::from_fn(|_| planes.next().expect("as many planes as an element has bytes"));
    if elem_size == N {
        split(raw, planes);
        return N;
    }
    let mut tile = [[0; N]; TILE];
    for (t, raw) in raw.chunks(TILE * elem_size).enumerate() {
        let n = raw.len() / elem_size;
        for (to, element) in tile.iter_mut().zip(raw.chunks_exact(elem_size)) {
            to.copy_from_slice(&element[k..k + N]);
        }
        split(tile[..n].as_flattened(), planes.each_mut().map(|plane| &mut plane[t * TILE..][..n]));
    }
    N
}

/// Elements of other sizes are joined and split in parts of 8, 4, 2 and 1 bytes, by way of a tile of
/// so many elements that stays in the first cache.
const TILE: usize = 256;

/// Puts parts of N bytes to byte `k` of each element; N.
fn place<const N: usize>(tile: &[u8], elem_size: usize, k: usize, out: &mut [u8]) -> usize {
    for (element, part) in out.chunks_exact_mut(elem_size).zip(tile.as_chunks::<N>().0) {
        element[k..k + N].copy_from_slice(part);
    }
    N
}

// Building a word and storing it once is vectorised for the ends of short runs too; storing byte by
// byte is not.

#[multiversion(targets(
    "x86_64+avx2+bmi1+bmi2+avx512f+avx512bw+avx512dq+avx512vl",
    "x86_64+avx2+bmi1+bmi2"
))]
fn join_2(low: &[u8], high: &[u8], out: &mut [u8]) {
    for ((pair, &low), &high) in out.as_chunks_mut::<2>().0.iter_mut().zip(low).zip(high) {
        *pair = (u16::from(low) | u16::from(high) << 8).to_le_bytes();
    }
}

#[multiversion(targets(
    "x86_64+avx2+bmi1+bmi2+avx512f+avx512bw+avx512dq+avx512vl",
    "x86_64+avx2+bmi1+bmi2"
))]
fn join_4(planes: [&[u8]; 4], out: &mut [u8]) {
    let out = out.as_chunks_mut::<4>().0;
    let planes = planes.map(|plane| &plane[..out.len()]);
    for (i, word) in out.iter_mut().enumerate() {
        let bytes: [u32; 4] = array::from_fn(|k| u32::from(planes[k][i]));
        *word = (bytes[0] | bytes[1] << 8 | bytes[2] << 16 | bytes[3] << 24).to_le_bytes();
    }
}

#[multiversion(targets(
    "x86_64+avx2+bmi1+bmi2+avx512f+avx512bw+avx512dq+avx512vl",
    "x86_64+avx2+bmi1+bmi2"
))]
fn join_8(planes: [&[u8]; 8], out: &mut [u8]) {
    let out = out.as_chunks_mut::<8>().0;
    let planes = planes.map(|plane| &plane[..out.len()]);
    for (i, word) in out.iter_mut().enumerate() {
        *word = array::from_fn(|k| planes[k][i]);
    }
}

/// Byte k of each element to plane k.
#[multiversion(targets(
    "x86_64+avx2+bmi1+bmi2+avx512f+avx512bw+avx512dq+avx512vl",
    "x86_64+avx2+bmi1+bmi2"
))]
fn split<const N: usize>(raw: &[u8], planes: [&mut [u8]; N]) {
    let raw = raw.as_chunks::<N>().0;
    let planes = planes.map(|plane| &mut plane[..raw.len()]);
    for (i, element) in raw.iter().enumerate() {
        for k in 0..N {
            planes[k][i] = element[k];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_and_length() {
        for size in (1..=35).chain([64, 100, 255, 1000]) {
            for elems in [0usize, 1, 2, 3, 31, 32, 33, 127, 255, 256, 257, 600] {
                for rest in [0, size / 2, size - 1] {
                    let raw: Vec<u8> =
                        (0..elems * size + rest).map(|i| (i * 7 % 251) as u8).collect();
                    let mut expected = raw.clone();
                    if elems > 1 {
                        for (i, &byte) in raw[..elems * size].iter().enumerate() {
                            expected[i % size * elems + i / size] = byte;
                        }
                    }
                    let mut planes = vec![0; raw.len()];
                    shuffle(&raw, size, &mut planes);
                    assert!(planes == expected, "shuffle {elems} of {size} and {rest}");
                    let mut back = vec![0; raw.len()];
                    unshuffle(&planes, size, &mut back);
                    assert!(back == raw, "unshuffle {elems} of {size} and {rest}");
                    for first in [0, 1, elems / 2, elems] {
                        let run = elems.saturating_sub(first) / 2;
                        let mut part = vec![0; run * size];
                        let from = first.min(elems - run);
                        unshuffle_run(&planes[..elems * size], size, from, run, &mut part);
                        assert!(part == raw[from * size..][..run * size], "{run} of {size}");
                    }
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "range")]
    fn a_run_outside_is_refused() {
        unshuffle_run(&[0; 40], 4, 8, 3, &mut [0; 12]);
    }
}
