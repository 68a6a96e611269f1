//! Filters: what is done to the bytes of a chunk on their way into the file and back.
//!
//! One file per filter, with both directions in it; `docs/status/filters.md` lists them. A filter
//! joins by its module, its line in [`builtin`] and its row in that table.

mod aec;
mod bits;
mod bitshuffle;
mod blosc;
mod blosc2;
mod blosclz;
mod bzip2;
mod deflate;
mod fletcher32;
mod lz;
mod lz4;
mod lzf;
mod nbit;
mod pipeline;
mod quantize;
mod room;
mod scaleoffset;
pub mod shuffle;
mod szip;
mod zfp;
mod zstd;

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::thread::LocalKey;

use zonda_model::memory::{self, NoMemory};
use zonda_model::{Answer, NcError};

pub use zonda_model::FilterSpec;

pub use pipeline::{Decoded, Pipeline, Scratch};

/// Makes a filter for the chunks of one array, checking the parameters.
pub type Make = fn(&FilterSpec, &ChunkShape) -> Result<Box<dyn Filter>, FilterError>;

/// How a built-in filter is made, by its registered number; `None` for one that is not built in.
#[must_use]
pub fn builtin(id: u32) -> Option<Make> {
    let make: Make = match id {
        1 => deflate::new,
        2 => shuffle::new,
        3 => fletcher32::new,
        4 => szip::new,
        5 => nbit::new,
        6 => scaleoffset::new,
        307 => bzip2::new,
        32000 => lzf::new,
        32001 => blosc::new,
        32004 => lz4::new,
        32008 => bitshuffle::new,
        32013 => zfp::new,
        32015 => zstd::new,
        32022 | 32023 => quantize::new,
        32026 => blosc2::new,
        _ => return None,
    };
    Some(make)
}

/// Whether a filter is built in.
#[must_use]
pub fn is_builtin(id: u32) -> bool {
    builtin(id).is_some()
}

/// What a built-in filter is called.
#[must_use]
pub fn name_of(id: u32) -> Option<&'static str> {
    Some(match id {
        1 => "deflate",
        2 => "shuffle",
        3 => "fletcher32",
        4 => "szip",
        5 => "nbit",
        6 => "scaleoffset",
        307 => "bzip2",
        32000 => "lzf",
        32001 => "blosc",
        32004 => "lz4",
        32008 => "bitshuffle",
        32013 => "zfp",
        32015 => "zstd",
        32022 => "bitgroom",
        32023 => "granular bitround",
        32026 => "blosc2",
        _ => return None,
    })
}

/// Number of the built-in filter that is called so.
#[must_use]
pub fn id_of(name: &str) -> Option<u32> {
    let ids = (1..=6).chain([307]).chain(32_000..32_030);
    ids.into_iter().find(|&id| name_of(id) == Some(name))
}

/// What a built-in filter is called in files, if it has a name there: HDF5 names no filters of its own,
/// whose numbers are below 256.
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

/// Why a filter cannot be undone or applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// Neither built in nor among the plugins.
    #[error("filter {id}{}: neither built in nor found as a plugin", named(.name))]
    Missing {
        /// Registered number.
        id: u32,
        /// Name that the writer gave.
        name: String,
    },
    /// Plugins were not loaded because they are not to be trusted, and no other has it. Which filters
    /// they have nobody knows.
    #[error("filter {id}{}: {why}", named(.name))]
    Refused {
        /// Registered number.
        id: u32,
        /// Name that the writer gave.
        name: String,
        /// Which file, and what is wrong with it.
        why: String,
    },
    /// The parameters make no sense.
    #[error("filter {filter}: parameter {index} is {value}")]
    BadParameter {
        /// Name of the filter.
        filter: &'static str,
        /// Which parameter.
        index: usize,
        /// Its value.
        value: u32,
    },
    /// Parameters are missing.
    #[error("filter {filter}: {have} parameters, needs {need}")]
    FewParameters {
        /// Name of the filter.
        filter: &'static str,
        /// Parameters there are.
        have: usize,
        /// Parameters needed.
        need: usize,
    },
    /// The stored bytes are not what the filter writes.
    #[error("filter {filter}: damaged at byte {at} of the chunk's stored bytes: {what}")]
    Damaged {
        /// Name of the filter.
        filter: &'static str,
        /// Byte of the filter's input.
        at: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// Undone, the chunk has another length than its shape says.
    #[error("filter {filter}: gave {got} bytes, expected {expected}")]
    WrongLength {
        /// Name of the filter.
        filter: &'static str,
        /// Bytes it gave, or would have given.
        got: usize,
        /// Bytes expected.
        expected: usize,
    },
    /// A checksum does not match.
    #[error("filter {filter}: checksum {stored:08x}, but the bytes give {computed:08x}")]
    Checksum {
        /// Name of the filter.
        filter: &'static str,
        /// In the file.
        stored: u32,
        /// Of the bytes.
        computed: u32,
    },
    /// Part of what the filter can write, but not undone by Zonda.
    #[error("filter {filter}: {what} is not supported")]
    Unsupported {
        /// Name of the filter.
        filter: &'static str,
        /// What.
        what: &'static str,
    },
    /// The chunk cannot be in memory at all.
    #[error("chunk of {dims:?} elements of {elem_size} bytes")]
    Shape {
        /// Elements along each dimension.
        dims: Vec<u64>,
        /// Bytes of an element.
        elem_size: usize,
    },
    /// A plugin failed.
    #[error("filter {id}: the plugin failed")]
    Plugin {
        /// Registered number.
        id: u32,
    },
    /// A plugin is in the middle of a call, and waiting for it could be without end.
    #[error("filter {filter}: {what}")]
    Busy {
        /// Name of the filter.
        filter: &'static str,
        /// What would be waited for.
        what: &'static str,
    },
    /// There is no memory for it.
    #[error("filter {filter}: no memory for {bytes} bytes")]
    NoMemory {
        /// Name of the filter.
        filter: &'static str,
        /// Bytes asked for.
        bytes: usize,
    },
}

fn named(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" ({name:?})") }
}

/// A filter that is built in or loaded, ready for the chunks of one array.
///
/// Made once per array by its module's `new` from the parameters, which it checks; used by many
/// threads at once.
pub trait Filter: Send + Sync + std::fmt::Debug {
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
}

/// What is said of a filter that is not built in: `None` where nobody has it, an error where it is there
/// and cannot be used.
pub type Found = Option<Result<Arc<dyn Filter>, FilterError>>;

/// `EPERM` of Linux.
const EPERM: i32 = 1;
/// `EDEADLK` of Linux on the architectures that are built.
const EDEADLK: i32 = 35;

impl FilterError {
    /// That nobody has a filter.
    #[must_use]
    pub fn missing(spec: &FilterSpec) -> FilterError {
        FilterError::Missing { id: spec.id, name: spec.name.clone() }
    }

    /// The code that C sees.
    #[must_use]
    pub fn nc_error(&self) -> NcError {
        match self {
            FilterError::Missing { .. } => NcError::NoFilter,
            // Of files that are there and not used, as the storage says it.
            FilterError::Refused { .. } => NcError::System(EPERM),
            FilterError::Busy { .. } => NcError::System(EDEADLK),
            FilterError::BadParameter { .. }
            | FilterError::FewParameters { .. }
            | FilterError::Damaged { .. }
            | FilterError::WrongLength { .. }
            | FilterError::Checksum { .. }
            | FilterError::Unsupported { .. }
            | FilterError::Plugin { .. } => NcError::HdfErr,
            FilterError::Shape { .. } | FilterError::NoMemory { .. } => NcError::NoMem,
        }
    }

    /// What kind of answer it is, of a chunk that is read.
    #[must_use]
    pub fn answer(&self) -> Answer {
        match self {
            FilterError::Missing { .. } | FilterError::Unsupported { .. } => Answer::Undecodable,
            FilterError::Refused { .. } => Answer::Refused,
            FilterError::Busy { .. } => Answer::System,
            FilterError::BadParameter { .. }
            | FilterError::FewParameters { .. }
            | FilterError::Damaged { .. }
            | FilterError::WrongLength { .. }
            | FilterError::Checksum { .. }
            | FilterError::Plugin { .. } => Answer::Damaged,
            FilterError::Shape { .. } | FilterError::NoMemory { .. } => Answer::NoMemory,
        }
    }
}

/// Room for `len` more bytes, or the error that says so.
pub(crate) fn reserve(
    filter: &'static str,
    out: &mut Vec<u8>,
    len: usize,
) -> Result<(), FilterError> {
    out.try_reserve(len).map_err(|_| FilterError::NoMemory { filter, bytes: len })
}

/// A table of zeros that a filter works with.
pub(crate) fn table<T: Clone + Default>(
    filter: &'static str,
    len: usize,
) -> Result<Box<[T]>, FilterError> {
    let no_memory = |error: NoMemory| FilterError::NoMemory { filter, bytes: error.bytes };
    Ok(memory::filled(len, T::default()).map_err(no_memory)?.into_boxed_slice())
}

/// Memory of the thread for filters that work block by block; it keeps its length between calls,
/// so that only what is new has to be cleared.
#[derive(Default)]
pub(crate) struct Work {
    /// For a block before the next step.
    pub(crate) block: Vec<u8>,
    /// For what that step itself needs.
    pub(crate) inner: Vec<u8>,
}

pub(crate) fn with_work<T>(work: impl FnOnce(&mut Work) -> T) -> T {
    thread_local! {
        static WORK: Cell<Work> = const { Cell::new(Work { block: Vec::new(), inner: Vec::new() }) };
    }
    // It may be gone, as below.
    let mut memory = WORK.try_with(Cell::take).unwrap_or_default();
    let result = work(&mut memory);
    let _gone = WORK.try_with(|kept| kept.set(memory));
    result
}

/// Work with what the thread keeps for it; with something new where that is gone already, since a process that
/// ends without closing its files stores chunks then, and where the thread is at work with it, as in a
/// signal handler that came into a call and whose forked child makes files of its own.
pub(crate) fn with_kept<K, T>(
    kept: &'static LocalKey<RefCell<K>>,
    new: impl FnOnce() -> K,
    work: impl FnOnce(&mut K) -> T,
) -> T {
    let mut work = Some(work);
    let done = kept.try_with(|kept| {
        let mut kept = kept.try_borrow_mut().ok()?;
        work.take().map(|work| work(&mut kept))
    });
    match (done, work) {
        (Ok(Some(done)), _) => done,
        (_, Some(work)) => work(&mut new()),
        (_, None) => unreachable!("what was done has a result"),
    }
}

/// The first `len` bytes, made if there are fewer; what they hold is left over.
pub(crate) fn lengthen<'a>(
    filter: &'static str,
    bytes: &'a mut Vec<u8>,
    len: usize,
) -> Result<&'a mut [u8], FilterError> {
    if let Some(more) = len.checked_sub(bytes.len()) {
        reserve(filter, bytes, more)?;
        bytes.resize(len, 0);
    }
    Ok(&mut bytes[..len])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_filter_has_a_name_and_nothing_else_has() {
        for id in 0..=33_000 {
            assert_eq!(name_of(id).is_some(), is_builtin(id), "filter {id}");
            assert_eq!(builtin_name(id).is_some(), is_builtin(id) && id >= 256, "filter {id}");
        }
    }
}
