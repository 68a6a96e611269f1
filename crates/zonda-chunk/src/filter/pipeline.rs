//! The filters of one array in their order, applied to its chunks and undone.
//!
//! What a filter is missing is no obstacle to making a pipeline: a file is opened and asked about
//! whatever its filters are, and chunks may have skipped the filter.

use std::fmt;
use std::sync::Arc;

use zonda_trace::{Args, EventKind, span};

use super::{
    ChunkShape, Filter, FilterError, FilterLookup, FilterSpec, builtin, lengthen, reserve,
};
use crate::tuning::TRUSTED_CHUNK_BYTES;

/// Memory of a thread in which chunks are between two filters; kept from chunk to chunk.
#[derive(Debug, Default)]
pub struct FilterBuffers {
    here: Vec<u8>,
    there: Vec<u8>,
}

impl FilterBuffers {
    /// Bytes that are kept.
    pub(crate) fn bytes(&self) -> usize {
        self.here.capacity() + self.there.capacity()
    }
}

/// A chunk as far as [`Pipeline::decode_shuffled`] undoes its filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded<'a> {
    /// Its elements.
    Plain(&'a [u8]),
    /// Byte k of all elements side by side, as [`super::shuffle::unshuffle_run`] takes it. The
    /// elements are the array's, and nothing follows them.
    Shuffled {
        /// The chunk's bytes.
        planes: &'a [u8],
        /// Bytes of an element, which is the number of planes.
        elem_size: usize,
    },
}

/// The filters of one array. Shared by all threads.
pub struct Pipeline {
    steps: Vec<PipelineStep>,
    shape: ChunkShape,
    /// Bytes of a chunk; none if they cannot be in memory.
    bytes: Option<usize>,
}

struct PipelineStep {
    optional: bool,
    /// What there is to say when a chunk needs it and cannot have it.
    filter: Result<Arc<dyn Filter>, FilterError>,
}

/// A filter that a chunk has not skipped.
struct Active<'a> {
    filter: &'a dyn Filter,
    /// Bytes before it was applied, where they are known.
    len: Option<usize>,
    /// The most bytes there can have been.
    most: usize,
}

impl Pipeline {
    /// The pipeline of `specs`, in the order in which they are applied to a chunk on its way into
    /// the file. `find` is asked for the filters that are not built in.
    ///
    /// Does not fail: a filter that is not there, or whose parameters make no sense, is reported by
    /// each chunk that needs it.
    #[must_use]
    pub fn new(
        specs: &[FilterSpec],
        shape: ChunkShape,
        find: &dyn Fn(&FilterSpec) -> FilterLookup,
    ) -> Pipeline {
        let steps = specs
            .iter()
            .map(|spec| PipelineStep {
                optional: spec.optional,
                filter: match builtin(spec.id) {
                    Some(make) => make(spec, &shape).map(Arc::from),
                    None => find(spec).unwrap_or_else(|| Err(FilterError::missing(spec))),
                },
            })
            .collect();
        let bytes = shape.bytes();
        Pipeline { steps, shape, bytes }
    }

    /// Whether chunks are stored as they are.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether a chunk with this mask is stored as it is.
    #[must_use]
    pub fn skips_all(&self, mask: u32) -> bool {
        (0..self.steps.len()).all(|i| skipped(mask, i))
    }

    /// The mask of a chunk that skips all filters.
    #[must_use]
    pub(crate) fn mask_of_all(&self) -> u32 {
        (0..self.steps.len()).fold(0, |mask, i| mask | 1u32.checked_shl(i as u32).unwrap_or(0))
    }

    /// The chunks that the pipeline is for.
    #[must_use]
    pub fn shape(&self) -> &ChunkShape {
        &self.shape
    }

    /// Undoes the filters: `out` becomes the chunk, of which it has the length. Bit i of `mask`
    /// says that filter i was skipped.
    ///
    /// # Errors
    /// [`FilterError`]; `out` then holds anything.
    pub fn decode(
        &self,
        stored: &[u8],
        mask: u32,
        scratch: &mut FilterBuffers,
        out: &mut [u8],
    ) -> Result<(), FilterError> {
        let active = self.active(mask, out.len())?;
        let Some((first, later)) = active.split_first() else {
            return copy("chunk", stored, out);
        };
        let bytes = undo(later, stored, scratch)?;
        match first.filter.decode_prefix(bytes) {
            None => {
                let _span = undoing(first.filter, bytes.len(), out.len());
                first.filter.decode_into(bytes, out)
            }
            Some(len) => copy(first.filter.name(), &bytes[..len?], out),
        }
    }

    /// Looks whether a chunk is what `stored` makes, where that would be so much more that memory for
    /// it is not to be taken on trust. Then it is decoded, step by step, to be decoded again; else
    /// nothing is done.
    ///
    /// # Errors
    /// As [`Pipeline::decode`].
    pub(crate) fn prove(
        &self,
        stored: &[u8],
        mask: u32,
        scratch: &mut FilterBuffers,
    ) -> Result<(), FilterError> {
        let expected = self.bytes.ok_or_else(|| self.no_memory())?;
        if expected <= TRUSTED_CHUNK_BYTES || expected / MOST_RATIO <= stored.len() {
            return Ok(());
        }
        self.decode_shuffled(stored, mask, scratch).map(|_| ())
    }

    /// Undoes the filters but for a shuffle that comes first: the caller can then put together only
    /// the elements it wants, straight to where it wants them. The result has a chunk's length.
    ///
    /// # Errors
    /// [`FilterError`].
    pub fn decode_shuffled<'a>(
        &self,
        stored: &'a [u8],
        mask: u32,
        scratch: &'a mut FilterBuffers,
    ) -> Result<Decoded<'a>, FilterError> {
        let expected = self.bytes.ok_or_else(|| self.no_memory())?;
        let active = self.active(mask, expected)?;
        let elem_size = self.shape.elem_size;
        let shuffled = elem_size > 1
            && active.first().is_some_and(|first| first.filter.shuffles() == Some(elem_size));
        let bytes = undo(active.get(usize::from(shuffled)..).unwrap_or(&[]), stored, scratch)?;
        if bytes.len() != expected {
            let filter = active.first().map_or("chunk", |first| first.filter.name());
            return Err(FilterError::WrongLength { filter, got: bytes.len(), expected });
        }
        Ok(match shuffled {
            true => Decoded::Shuffled { planes: bytes, elem_size },
            false => Decoded::Plain(bytes),
        })
    }

    /// Applies the filters: `out` becomes what is to be stored, the result the chunk's mask. An
    /// optional filter that fails, and one that says that it does not pay, is skipped.
    ///
    /// # Errors
    /// [`FilterError`] of a filter that is not optional, or [`FilterError::Busy`]; `out` then holds anything.
    pub fn encode(
        &self,
        raw: &[u8],
        scratch: &mut FilterBuffers,
        out: &mut Vec<u8>,
    ) -> Result<u32, FilterError> {
        let FilterBuffers { here, there } = scratch;
        let mut mask = 0;
        // The bytes that the next filter gets: the caller's, or the first so many in `here`.
        let mut made: Option<usize> = None;
        let last = self.steps.len().saturating_sub(1);
        for (i, step) in self.steps.iter().enumerate() {
            let input: &[u8] = made.map_or(raw, |len| &here[..len]);
            let output = if i == last { &mut *out } else { &mut *there };
            let pays = step.filter.as_ref().map_err(FilterError::clone);
            let applied = pays.and_then(|filter| {
                let args =
                    || Args { bytes: input.len() as u64, name: filter.name(), ..Args::default() };
                let mut span = span(EventKind::Filter, args);
                let len = filter.encode_over(input, output);
                let said = || len.as_ref().ok().copied().flatten().unwrap_or(0);
                span.change(|args| args.offset = said() as u64);
                len
            });
            match applied {
                Ok(Some(len)) if i == last => {
                    out.truncate(len);
                    return Ok(mask);
                }
                Ok(Some(len)) => {
                    std::mem::swap(here, there);
                    made = Some(len);
                }
                // It could filter the chunk, at another time.
                Err(error @ FilterError::Busy { .. }) => return Err(error),
                Err(error) if !step.optional || i >= MASK_BITS => return Err(error),
                Ok(None) | Err(_) => mask |= 1u32.checked_shl(i as u32).unwrap_or(0),
            }
        }
        let stored: &[u8] = made.map_or(raw, |len| &here[..len]);
        out.clear();
        reserve("chunk", out, stored.len())?;
        out.extend_from_slice(stored);
        Ok(mask)
    }

    /// The filters that a chunk of `bytes` bytes with this mask has not skipped.
    fn active(&self, mask: u32, bytes: usize) -> Result<Vec<Active<'_>>, FilterError> {
        let mut active = Vec::with_capacity(self.steps.len());
        // No filter makes a chunk much longer; a pipeline of many may not claim it either.
        let ceiling = bytes.saturating_mul(4).saturating_add(1 << 20);
        let (mut len, mut most) = (Some(bytes), bytes);
        for (i, step) in self.steps.iter().enumerate() {
            if skipped(mask, i) {
                continue;
            }
            let filter = step.filter.as_deref().map_err(FilterError::clone)?;
            active.push(Active { filter, len, most });
            len = len.and_then(|len| filter.encoded_len(len));
            most = match len {
                Some(len) => len,
                None => most.saturating_mul(2).saturating_add(1 << 16).min(ceiling),
            };
        }
        Ok(active)
    }

    fn no_memory(&self) -> FilterError {
        FilterError::Shape { dims: self.shape.dims.clone(), elem_size: self.shape.elem_size }
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.steps.iter().map(|step| &step.filter)).finish()
    }
}

/// Filters that a chunk's mask has bits for.
const MASK_BITS: usize = 32;

fn skipped(mask: u32, i: usize) -> bool {
    i < MASK_BITS && mask >> i & 1 == 1
}

/// The event of a filter that is undone, `before` bytes becoming `after`.
#[inline(always)]
fn undoing(filter: &dyn Filter, before: usize, after: usize) -> zonda_trace::TraceSpan {
    span(EventKind::Filter, || Args {
        offset: after as u64,
        bytes: before as u64,
        code: 1,
        name: filter.name(),
        ..Args::default()
    })
}

/// Undoes filters, the last one first.
fn undo<'a>(
    active: &[Active<'_>],
    stored: &'a [u8],
    scratch: &'a mut FilterBuffers,
) -> Result<&'a [u8], FilterError> {
    let FilterBuffers { here, there } = scratch;
    // The bytes so far: the first `len` of `stored`, or of `here`.
    let (mut begun, mut len) = (false, stored.len());
    for step in active.iter().rev() {
        let input: &[u8] = if begun { &here[..len] } else { &stored[..len] };
        if let Some(prefix) = step.filter.decode_prefix(input) {
            len = prefix?;
            continue;
        }
        len = match step.len {
            // What a chunk's shape claims is only taken where the bytes there can make it true.
            Some(expected) if expected / MOST_RATIO <= input.len().saturating_add(64) => {
                let output = lengthen(step.filter.name(), there, expected)?;
                let _span = undoing(step.filter, input.len(), expected);
                step.filter.decode_into(input, output)?;
                expected
            }
            _ => {
                there.clear();
                let mut span = undoing(step.filter, input.len(), 0);
                step.filter.decode(input, step.most, there)?;
                span.change(|args| args.offset = there.len() as u64);
                there.len()
            }
        };
        std::mem::swap(here, there);
        begun = true;
    }
    Ok(if begun { &here[..len] } else { &stored[..len] })
}

/// Bytes that one stored byte may stand for before memory is taken step by step: deflate's limit.
const MOST_RATIO: usize = 1032;

fn copy(filter: &'static str, bytes: &[u8], out: &mut [u8]) -> Result<(), FilterError> {
    if bytes.len() != out.len() {
        let (got, expected) = (bytes.len(), out.len());
        return Err(FilterError::WrongLength { filter, got, expected });
    }
    out.copy_from_slice(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds one to each byte; refuses what begins with 99.
    #[derive(Debug)]
    struct AddOne;

    impl Filter for AddOne {
        fn name(&self) -> &'static str {
            "add one"
        }

        fn decode(&self, stored: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
            assert!(stored.len() <= most);
            out.extend(stored.iter().map(|byte| byte.wrapping_sub(1)));
            Ok(())
        }

        fn encode(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<bool, FilterError> {
            if raw.first() == Some(&99) {
                out.push(1);
                return Err(FilterError::Plugin { id: 40_000 });
            }
            out.extend(raw.iter().map(|byte| byte.wrapping_add(1)));
            Ok(true)
        }
    }

    fn spec(id: u32, optional: bool, params: &[u32]) -> FilterSpec {
        FilterSpec { id, optional, name: "the name".into(), params: params.to_vec() }
    }

    fn pipeline(specs: &[FilterSpec]) -> Pipeline {
        let shape = ChunkShape { dims: vec![4, 5], elem_size: 2 };
        Pipeline::new(specs, shape, &|spec| {
            (spec.id == 40_000).then(|| Ok(Arc::new(AddOne) as Arc<dyn Filter>))
        })
    }

    fn raw() -> Vec<u8> {
        (0..40).collect()
    }

    fn decode(pipeline: &Pipeline, stored: &[u8], mask: u32) -> Result<Vec<u8>, FilterError> {
        let mut scratch = FilterBuffers::default();
        let mut out = vec![0xaa; 40];
        let result = pipeline.decode(stored, mask, &mut scratch, &mut out).map(|()| out);
        let other = match pipeline.decode_shuffled(stored, mask, &mut scratch) {
            Ok(Decoded::Plain(bytes)) => Ok(bytes.to_vec()),
            Ok(Decoded::Shuffled { planes, elem_size }) => {
                let mut out = vec![0; planes.len()];
                super::super::shuffle::unshuffle(planes, elem_size, &mut out);
                Ok(out)
            }
            Err(error) => Err(error),
        };
        match (&result, &other) {
            (Ok(bytes), Ok(others)) => assert_eq!(bytes, others),
            (result, other) => assert_eq!(result.is_ok(), other.is_ok()),
        }
        result
    }

    fn encode(pipeline: &Pipeline, raw: &[u8]) -> Result<(Vec<u8>, u32), FilterError> {
        let mut stored = vec![1, 2, 3];
        let mask = pipeline.encode(raw, &mut FilterBuffers::default(), &mut stored)?;
        Ok((stored, mask))
    }

    #[test]
    fn without_filters_bytes_are_what_they_are() {
        let none = pipeline(&[]);
        assert!(none.is_identity() && none.skips_all(0));
        assert_eq!(encode(&none, &raw()), Ok((raw(), 0)));
        assert_eq!(decode(&none, &raw(), 0), Ok(raw()));
        assert_eq!(
            decode(&none, &raw()[1..], 0),
            Err(FilterError::WrongLength { filter: "chunk", got: 39, expected: 40 })
        );
    }

    #[test]
    fn a_missing_filter_is_an_error_of_chunks_that_need_it() {
        for optional in [false, true] {
            let two = pipeline(&[spec(2, true, &[2]), spec(33_333, optional, &[])]);
            let missing = FilterError::Missing { id: 33_333, name: "the name".into() };
            assert!(!two.is_identity() && !two.skips_all(2) && two.skips_all(3));
            assert_eq!(decode(&two, &raw(), 0), Err(missing.clone()));
            assert_eq!(decode(&two, &raw(), 1), Err(missing.clone()));
            assert_eq!(decode(&two, &raw(), 3), Ok(raw()));
            assert!(decode(&two, &raw(), 2).is_ok_and(|bytes| bytes[..4] == [0, 20, 1, 21]));
            match encode(&two, &raw()) {
                Ok((stored, mask)) => {
                    assert!(optional && mask == 2);
                    assert_eq!(decode(&two, &stored, mask), Ok(raw()));
                }
                Err(error) => assert_eq!((optional, error), (false, missing)),
            }
        }
    }

    #[test]
    fn bad_parameters_are_an_error_of_chunks_that_need_them() {
        let bad = pipeline(&[spec(2, true, &[0]), spec(1, false, &[10])]);
        assert!(matches!(decode(&bad, &raw(), 0), Err(FilterError::BadParameter { .. })));
        assert!(matches!(
            decode(&bad, &raw(), 1),
            Err(FilterError::BadParameter { value: 10, .. })
        ));
        assert_eq!(decode(&bad, &raw(), 3), Ok(raw()));
        assert!(matches!(encode(&bad, &raw()), Err(FilterError::BadParameter { value: 10, .. })));
    }

    #[test]
    fn filters_that_are_not_built_in_are_asked_for() {
        let with = pipeline(&[
            spec(40_000, true, &[]),
            spec(2, true, &[2]),
            spec(40_000, false, &[]),
            spec(3, false, &[]),
            spec(1, true, &[5]),
        ]);
        let (stored, mask) = encode(&with, &raw()).unwrap();
        assert_eq!(mask, 0);
        assert_eq!(decode(&with, &stored, 0), Ok(raw()));
        // An optional filter that fails leaves the chunk to the others, and nothing of its own.
        let with = pipeline(&[spec(40_000, true, &[]), spec(2, true, &[2]), spec(1, true, &[5])]);
        let mut refused = raw();
        refused[0] = 99;
        let (stored, mask) = encode(&with, &refused).unwrap();
        assert_eq!(mask, 1);
        assert_eq!(decode(&with, &stored, mask), Ok(refused));
        let needed = pipeline(&[spec(40_000, false, &[])]);
        assert_eq!(encode(&needed, &[99]), Err(FilterError::Plugin { id: 40_000 }));
    }

    #[test]
    fn only_a_shuffle_of_the_elements_is_left_to_the_caller() {
        let mut scratch = FilterBuffers::default();
        for (size, left) in [(2, true), (4, false), (1, false)] {
            let made = pipeline(&[spec(2, true, &[size]), spec(1, true, &[5])]);
            let (stored, _) = encode(&made, &raw()).unwrap();
            let decoded = made.decode_shuffled(&stored, 0, &mut scratch).unwrap();
            assert_eq!(matches!(decoded, Decoded::Shuffled { elem_size: 2, .. }), left);
            assert_eq!(decode(&made, &stored, 0), Ok(raw()));
        }
    }

    #[test]
    fn a_chunk_that_no_memory_holds_is_an_error() {
        let shape = ChunkShape { dims: vec![u64::MAX, 3], elem_size: 8 };
        let made = Pipeline::new(&[spec(1, true, &[1])], shape, &|_| None);
        let mut scratch = FilterBuffers::default();
        let result = made.decode_shuffled(&[0; 10], 0, &mut scratch);
        assert!(matches!(result, Err(FilterError::Shape { .. })));
    }

    /// What claims to be large is only given the memory that its bytes can fill.
    #[test]
    fn memory_is_taken_for_what_is_there() {
        let shape = ChunkShape { dims: vec![1 << 44], elem_size: 1 };
        for filter in [spec(1, true, &[1]), spec(307, true, &[]), spec(32_000, true, &[])] {
            let made = Pipeline::new(&[spec(2, true, &[1]), filter], shape.clone(), &|_| None);
            let (stored, mask) = encode(&made, &[7; 1000]).unwrap();
            assert_eq!(mask, 0);
            let mut scratch = FilterBuffers::default();
            let result = made.decode_shuffled(&stored, 0, &mut scratch);
            assert!(
                matches!(result, Err(FilterError::WrongLength { got: 1000, .. })),
                "{result:?}"
            );
            assert!(scratch.here.capacity() + scratch.there.capacity() < 4 << 20);
        }
    }
}
