//! Filters: what is done to the bytes of a chunk on their way into the file and back.
//!
//! Each filter is one file, with both directions in it. To add one, add its `mod` and its line in
//! [`BUILTIN`] here, and its row in `docs/status/filters.md`.

mod aec;
mod bits;
mod bitshuffle;
mod blosc;
mod blosc2;
mod blosclz;
mod bzip2;
mod deflate;
mod error;
mod fletcher32;
mod lz;
mod lz4;
mod lzf;
mod memory;
mod nbit;
mod pipeline;
mod quantize;
mod scaleoffset;
pub mod shuffle;
mod szip;
mod zfp;
mod zstd;

use std::sync::Arc;

pub use error::FilterError;
use memory::{
    BlockBuffers, lengthen, reserve, with_block_buffers, with_thread_value, zeroed_table,
};
pub use pipeline::{Decoded, FilterBuffers, Pipeline};
pub use zonda_model::FilterSpec;

/// Makes a filter for the chunks of one array, checking the parameters.
pub type MakeFilter = fn(&FilterSpec, &ChunkShape) -> Result<Box<dyn Filter>, FilterError>;

/// A built-in filter: one line of [`BUILTIN`].
#[derive(Debug)]
pub struct BuiltinFilter {
    /// The number registered with The HDF Group.
    pub id: u32,
    /// What users call it.
    pub name: &'static str,
    /// Makes it for one array.
    pub make: MakeFilter,
    /// Whether it can be applied. All can be undone.
    pub can_encode: bool,
}

impl BuiltinFilter {
    /// A filter that can be applied and undone.
    const fn both(id: u32, name: &'static str, make: MakeFilter) -> BuiltinFilter {
        BuiltinFilter { id, name, make, can_encode: true }
    }

    /// A filter that can only be undone.
    const fn decoder(id: u32, name: &'static str, make: MakeFilter) -> BuiltinFilter {
        BuiltinFilter { id, name, make, can_encode: false }
    }
}

/// Every built-in filter, by ascending number.
pub static BUILTIN: &[BuiltinFilter] = &[
    BuiltinFilter::both(1, "deflate", deflate::new),
    BuiltinFilter::both(2, "shuffle", shuffle::new),
    BuiltinFilter::both(3, "fletcher32", fletcher32::new),
    BuiltinFilter::both(4, "szip", szip::new),
    BuiltinFilter::both(5, "nbit", nbit::new),
    BuiltinFilter::both(6, "scaleoffset", scaleoffset::new),
    BuiltinFilter::both(307, "bzip2", bzip2::new),
    BuiltinFilter::both(32000, "lzf", lzf::new),
    BuiltinFilter::both(32001, "blosc", blosc::new),
    BuiltinFilter::both(32004, "lz4", lz4::new),
    BuiltinFilter::both(32008, "bitshuffle", bitshuffle::new),
    BuiltinFilter::both(32013, "zfp", zfp::new),
    BuiltinFilter::both(32015, "zstd", zstd::new),
    BuiltinFilter::decoder(32022, "bitgroom", quantize::new),
    BuiltinFilter::decoder(32023, "granular bitround", quantize::new),
    BuiltinFilter::both(32026, "blosc2", blosc2::new),
];

fn find(id: u32) -> Option<&'static BuiltinFilter> {
    BUILTIN.iter().find(|filter| filter.id == id)
}

/// How the built-in filter with this registered number is made; `None` if no built-in filter has it.
#[must_use]
pub fn builtin(id: u32) -> Option<MakeFilter> {
    find(id).map(|filter| filter.make)
}

/// Whether a filter is built in.
#[must_use]
pub fn is_builtin(id: u32) -> bool {
    find(id).is_some()
}

/// The name of the built-in filter with this registered number.
#[must_use]
pub fn name_of(id: u32) -> Option<&'static str> {
    find(id).map(|filter| filter.name)
}

/// The registered number of the built-in filter with this name.
#[must_use]
pub fn id_of(name: &str) -> Option<u32> {
    BUILTIN.iter().find(|filter| filter.name == name).map(|filter| filter.id)
}

/// The name of a built-in filter as files have it: `None` for numbers below 256, which are HDF5's own filters
/// and have no name in files.
#[must_use]
pub fn builtin_name(id: u32) -> Option<&'static str> {
    name_of(id).filter(|_| id >= 256)
}

/// The chunks that filters work on: all chunks of an array have one shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkShape {
    /// Elements along each dimension, slowest first.
    pub dims: Vec<u64>,
    /// Bytes of an element.
    pub elem_size: usize,
}

impl ChunkShape {
    /// Elements of a chunk; none if they cannot be counted.
    #[must_use]
    pub fn elems(&self) -> Option<usize> {
        let elems = self.dims.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim))?;
        usize::try_from(elems).ok()
    }

    /// Bytes of a chunk before filtering; none if no memory could hold them.
    #[must_use]
    pub fn bytes(&self) -> Option<usize> {
        let bytes = self.elems()?.checked_mul(self.elem_size)?;
        (bytes <= isize::MAX as usize).then_some(bytes)
    }
}

/// A filter that is built in or loaded, ready for the chunks of one array.
///
/// Made once per array by its module's `new` from the parameters, which it checks; used by many
/// threads at once.
pub trait Filter: Send + Sync {
    /// Its name, for messages.
    fn name(&self) -> &'static str;

    /// Undoes the filter: appends to `out`, which is empty, what `stored` was made from.
    ///
    /// `most` is the most bytes that the result may have: a result that would be longer is an
    /// error, found before that memory is taken. `out` may have capacity already.
    ///
    /// # Errors
    /// [`FilterError`]; `out` then holds anything.
    fn decode(&self, stored: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), FilterError>;

    /// Undoes the filter into exactly `out.len()` bytes of the caller's: the last step of a
    /// pipeline, straight to where the chunk is wanted. Bytes more or fewer are an error.
    ///
    /// # Errors
    /// [`FilterError`]; `out` then holds anything.
    fn decode_into(&self, stored: &[u8], out: &mut [u8]) -> Result<(), FilterError> {
        let mut bytes = Vec::new();
        self.decode(stored, out.len(), &mut bytes)?;
        if bytes.len() != out.len() {
            let (got, expected) = (bytes.len(), out.len());
            return Err(FilterError::WrongLength { filter: self.name(), got, expected });
        }
        out.copy_from_slice(&bytes);
        Ok(())
    }

    /// For filters whose result is the beginning of `stored`, as a checksum at the end is: how many
    /// bytes of it, so that nothing is copied. None for all others.
    fn decode_prefix(&self, stored: &[u8]) -> Option<Result<usize, FilterError>> {
        let _ = stored;
        None
    }

    /// Length of what `encode` gives for `raw_len` bytes, for filters where it depends on nothing
    /// else. Lets the step before decode straight into memory of the right length.
    fn encoded_len(&self, raw_len: usize) -> Option<usize> {
        let _ = raw_len;
        None
    }

    /// Bytes of an element, for the filter that puts byte k of all elements side by side.
    fn shuffles(&self) -> Option<usize> {
        None
    }

    /// Applies the filter: appends to `out`, which is empty. `Ok(false)` where it does not pay
    /// (the result would not be shorter, for filters that then leave the chunk as it is) and the
    /// filter's bit in the chunk's mask is to be set.
    ///
    /// # Errors
    /// [`FilterError`]; `out` then holds anything.
    fn encode(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<bool, FilterError>;

    /// Applies the filter over whatever `out` holds, so that memory which is used again need not be cleared first: the result is the first bytes
    /// of `out`, as many as are said, or `None` where it does not pay.
    ///
    /// # Errors
    /// As [`Filter::encode`].
    fn encode_over(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<Option<usize>, FilterError> {
        out.clear();
        Ok(self.encode(raw, out)?.then_some(out.len()))
    }
}

// By its name alone: else the table of each type's methods would have the text of all that the type holds.
impl std::fmt::Debug for dyn Filter + '_ {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Filter")
    }
}

/// What is said of a filter that is not built in: `None` where nobody has it, an error where it is there
/// and cannot be used.
pub type FilterLookup = Option<Result<Arc<dyn Filter>, FilterError>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_filter_has_a_name_and_nothing_else_has() {
        for id in 0..=33_000 {
            assert_eq!(name_of(id).is_some(), is_builtin(id), "filter {id}");
            assert_eq!(builtin_name(id).is_some(), is_builtin(id) && id >= 256, "filter {id}");
        }
        for filter in BUILTIN {
            assert_eq!(id_of(filter.name), Some(filter.id), "two filters have this name or number");
        }
        assert!(BUILTIN.is_sorted_by_key(|filter| filter.id));
    }

    #[test]
    fn filters_that_can_only_be_undone_say_so() {
        for filter in BUILTIN.iter().filter(|filter| !filter.can_encode) {
            let spec = FilterSpec {
                id: filter.id,
                optional: false,
                name: String::new(),
                params: Vec::new(),
            };
            let shape = ChunkShape { dims: vec![4], elem_size: 4 };
            let made = (filter.make)(&spec, &shape).unwrap();
            assert_eq!(made.name(), filter.name);
            let refused = made.encode(&[0; 16], &mut Vec::new());
            assert!(matches!(refused, Err(FilterError::Unsupported { .. })), "{}", filter.name);
        }
    }
}
