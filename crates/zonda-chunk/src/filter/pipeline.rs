//! The filters of one array in their order, applied to its chunks and undone.
//!
//! What a filter is missing is no obstacle to making a pipeline: a file is opened and asked about
//! whatever its filters are, and chunks may have skipped the filter.

use std::fmt;
use std::sync::Arc;

use super::{ChunkShape, Filter, FilterError, FilterSpec, builtin, reserve};

/// Memory of a thread in which chunks are between two filters; kept from chunk to chunk.
#[derive(Debug, Default)]
pub struct Scratch {
    here: Vec<u8>,
    there: Vec<u8>,
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
    steps: Vec<Step>,
    shape: ChunkShape,
    /// Bytes of a chunk; none if they cannot be in memory.
    bytes: Option<usize>,
}

struct Step {
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
        find: &dyn Fn(&FilterSpec) -> Option<Arc<dyn Filter>>,
    ) -> Pipeline {
        let steps = specs
            .iter()
            .map(|spec| Step {
                optional: spec.optional,
                filter: match builtin(spec.id) {
                    Some(make) => make(spec, &shape).map(Arc::from),
                    None => find(spec).ok_or_else(|| FilterError::Missing {
                        id: spec.id,
                        name: spec.name.clone(),
                    }),
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
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<(), FilterError> {
        let active = self.active(mask, out.len())?;
        let Some((first, later)) = active.split_first() else {
            return copy("chunk", stored, out);
        };
        let bytes = undo(later, stored, scratch)?;
        match first.filter.decode_prefix(bytes) {
            None => first.filter.decode_into(bytes, out),
            Some(len) => copy(first.filter.name(), &bytes[..len?], out),
        }
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
        scratch: &'a mut Scratch,
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
    /// [`FilterError`] of a filter that is not optional; `out` then holds anything.
    pub fn encode(
        &self,
        raw: &[u8],
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Result<u32, FilterError> {
        let Scratch { here, there } = scratch;
        let mut mask = 0;
        // Where the bytes are that the next filter gets: the caller's, or in `here`.
        let mut begun = false;
        let last = self.steps.len().saturating_sub(1);
        for (i, step) in self.steps.iter().enumerate() {
            let input: &[u8] = if begun { here } else { raw };
            let output = if i == last { &mut *out } else { &mut *there };
            output.clear();
            let pays = step.filter.as_ref().map_err(FilterError::clone);
            match pays.and_then(|filter| filter.encode(input, output)) {
                Ok(true) if i == last => return Ok(mask),
                Ok(true) => {
                    std::mem::swap(here, there);
                    begun = true;
                }
                Err(error) if !step.optional || i >= MASK_BITS => return Err(error),
                Ok(false) | Err(_) => mask |= 1u32.checked_shl(i as u32).unwrap_or(0),
            }
        }
        let stored: &[u8] = if begun { here } else { raw };
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

/// Undoes filters, the last one first.
fn undo<'a>(
    active: &[Active<'_>],
    stored: &'a [u8],
    scratch: &'a mut Scratch,
) -> Result<&'a [u8], FilterError> {
    let Scratch { here, there } = scratch;
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
                lengthen(step.filter.name(), there, expected)?;
                step.filter.decode_into(input, &mut there[..expected])?;
                expected
            }
            _ => {
                there.clear();
                step.filter.decode(input, step.most, there)?;
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

/// Makes `bytes` at least `len` long; what it held stays, so that only new memory is cleared.
fn lengthen(filter: &'static str, bytes: &mut Vec<u8>, len: usize) -> Result<(), FilterError> {
    if let Some(more) = len.checked_sub(bytes.len()) {
        reserve(filter, bytes, more)?;
        bytes.resize(len, 0);
    }
    Ok(())
}

fn copy(filter: &'static str, bytes: &[u8], out: &mut [u8]) -> Result<(), FilterError> {
    if bytes.len() != out.len() {
        let (got, expected) = (bytes.len(), out.len());
        return Err(FilterError::WrongLength { filter, got, expected });
    }
    out.copy_from_slice(bytes);
    Ok(())
}
