//! Shuffle (2): byte k of all elements side by side, one plane per byte of an element. Bytes that
//! fill no element follow as they are. Parameters: the size of an element.
//!
//! The kernels are plain loops, compiled for several levels of the CPU's vector instructions; the
//! one for the CPU is found at run time. `optimization-notes.md` has the measurements.

use multiversion::multiversion;

use super::{ChunkShape, Filter, FilterError, FilterSpec, reserve};

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
        2 => join::<2>(std::array::from_fn(plane), 2, out),
        4 => join::<4>(std::array::from_fn(plane), 4, out),
        8 => join::<8>(std::array::from_fn(plane), 8, out),
        _ => {
            // Eight, four, two bytes of each element at a time, as many as there are left.
            let mut k = 0;
            while k < elem_size {
                let out = &mut out[k..];
                match elem_size - k {
                    8.. => {
                        join::<8>(std::array::from_fn(|i| plane(k + i)), elem_size, out);
                        k += 8;
                    }
                    4.. => {
                        join::<4>(std::array::from_fn(|i| plane(k + i)), elem_size, out);
                        k += 4;
                    }
                    2.. => {
                        join::<2>(std::array::from_fn(|i| plane(k + i)), elem_size, out);
                        k += 2;
                    }
                    _ => {
                        join::<1>([plane(k)], elem_size, out);
                        k += 1;
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
    let mut k = 0;
    let mut planes = planes.chunks_exact_mut(elems);
    while k < elem_size {
        let raw = &raw[k..];
        let mut next = || planes.next().expect("a plane for each byte");
        match elem_size - k {
            8.. => {
                split::<8>(raw, elem_size, std::array::from_fn(|_| next()));
                k += 8;
            }
            4.. => {
                split::<4>(raw, elem_size, std::array::from_fn(|_| next()));
                k += 4;
            }
            2.. => {
                split::<2>(raw, elem_size, std::array::from_fn(|_| next()));
                k += 2;
            }
            _ => {
                split::<1>(raw, elem_size, [next()]);
                k += 1;
            }
        }
    }
}

/// Byte k of element i becomes `out[i * stride + k]`.
#[multiversion(targets(
    "x86_64+avx2+bmi1+bmi2+avx512f+avx512bw+avx512dq+avx512vl",
    "x86_64+avx2+bmi1+bmi2"
))]
fn join<const N: usize>(planes: [&[u8]; N], stride: usize, out: &mut [u8]) {
    let elems = planes[0].len();
    let planes = planes.map(|plane| &plane[..elems]);
    if stride == N {
        for (i, element) in out.as_chunks_mut::<N>().0.iter_mut().enumerate().take(elems) {
            *element = std::array::from_fn(|k| planes[k][i]);
        }
    } else {
        for (i, element) in out.chunks_mut(stride).enumerate().take(elems) {
            element[..N].copy_from_slice(&std::array::from_fn::<u8, N, _>(|k| planes[k][i]));
        }
    }
}

/// `raw[i * stride + k]` becomes byte i of plane k.
#[multiversion(targets(
    "x86_64+avx2+bmi1+bmi2+avx512f+avx512bw+avx512dq+avx512vl",
    "x86_64+avx2+bmi1+bmi2"
))]
fn split<const N: usize>(raw: &[u8], stride: usize, planes: [&mut [u8]; N]) {
    let elems = planes[0].len();
    let planes = planes.map(|plane| &mut plane[..elems]);
    if stride == N {
        for (i, element) in raw.as_chunks::<N>().0.iter().enumerate().take(elems) {
            for k in 0..N {
                planes[k][i] = element[k];
            }
        }
    } else {
        for (i, element) in raw.chunks(stride).enumerate().take(elems) {
            for (k, &byte) in element[..N].iter().enumerate() {
                planes[k][i] = byte;
            }
        }
    }
}
