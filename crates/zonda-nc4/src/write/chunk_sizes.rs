//! Shapes of chunks that nobody chose.
//!
//! Small arrays are one chunk, as in the reference. Where that is no good choice, this one is another:
//! docs/dev/chunk-sizes.md has the rule, its reasons and the figures.

use crate::tuning::{
    CHUNK_MAX_BYTES, CHUNK_MAX_RECORDS, LONG_RECORD_BYTES, RECORDS_CHUNK_BYTES, SERIES_CHUNK_BYTES,
    UNLIMITED_CHUNK_BYTES,
};

/// The shape of chunks: what was `given`, and the default where that is 0 or missing. `shape` has
/// the length of each dimension, `None` where it can grow.
pub(crate) fn complete(given: &[u64], shape: &[Option<u64>], elem_size: u64) -> Vec<u64> {
    let mut dims = defaults(shape, elem_size);
    for (dim, &given) in dims.iter_mut().zip(given) {
        if given > 0 {
            *dim = given;
        }
    }
    dims
}

/// The shape of chunks by the rule.
fn defaults(shape: &[Option<u64>], elem_size: u64) -> Vec<u64> {
    let elem_size = elem_size.max(1);
    let fixed: Vec<u64> = shape.iter().map(|len| len.unwrap_or(1).max(1)).collect();
    let n_unlimited = shape.iter().filter(|len| len.is_none()).count();
    let record = fixed.iter().fold(elem_size, |bytes, &len| bytes.saturating_mul(len));
    if n_unlimited == 0 {
        return within(&fixed, elem_size, CHUNK_MAX_BYTES);
    }
    let n_records = if n_unlimited == shape.len() && n_unlimited > 1 {
        UNLIMITED_CHUNK_BYTES.checked_div(elem_size).unwrap_or(1)
    } else if record >= LONG_RECORD_BYTES {
        1
    } else {
        let together = RECORDS_CHUNK_BYTES.checked_div(record).unwrap_or(1).min(CHUNK_MAX_RECORDS);
        let series = SERIES_CHUNK_BYTES.checked_div(elem_size).unwrap_or(1);
        if shape.len() == 1 { together.max(series) } else { together }
    };
    let along = root(n_records, n_unlimited).max(1);
    let mut dims = within(&fixed, elem_size, CHUNK_MAX_BYTES);
    for (dim, len) in dims.iter_mut().zip(shape) {
        if len.is_none() {
            *dim = along;
        }
    }
    dims
}

/// A box of at most so many bytes with the proportions of the array, and such that the last chunk
/// along each dimension is about as full as the others.
fn within(shape: &[u64], elem_size: u64, most: u64) -> Vec<u64> {
    let mut dims = shape.to_vec();
    loop {
        let bytes = dims.iter().fold(elem_size, |bytes, &dim| bytes.saturating_mul(dim));
        // Lengths of 1 cannot become shorter: the others share what is too much.
        let n_long = dims.iter().filter(|&&dim| dim > 1).count();
        if bytes <= most || n_long == 0 {
            break;
        }
        let volume = dims.iter().fold(elem_size as f64, |volume, &dim| volume * dim as f64);
        let scale = (most as f64 / volume).powf(1.0 / n_long as f64);
        for dim in dims.iter_mut().filter(|dim| **dim > 1) {
            let shorter = floor(*dim as f64 * scale).max(1);
            // Always a step, so that it ends, whatever floating-point numbers say.
            *dim = shorter.min(dim.saturating_sub(1));
        }
    }
    for (dim, &len) in dims.iter_mut().zip(shape) {
        let n_chunks = len.div_ceil((*dim).max(1));
        *dim = len.div_ceil(n_chunks.max(1)).max(1);
    }
    dims
}

/// The largest number whose power of `n` is at most `value`.
fn root(value: u64, n: usize) -> u64 {
    let power = |root: u64| (0..n).fold(1u64, |product, _| product.saturating_mul(root));
    let mut root = floor((value as f64).powf(1.0 / n.max(1) as f64));
    while power(root) > value {
        root = root.saturating_sub(1);
    }
    while root < value && power(root.saturating_add(1)) <= value {
        root = root.saturating_add(1);
    }
    root
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "that is what floor is"
)]
fn floor(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests;
