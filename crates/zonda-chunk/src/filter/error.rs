//! Why a filter cannot be undone or applied.

use zonda_model::{Answer, FilterSpec, NcError};

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
    #[error("filter {filter}: parameter {index} is {value}, which is not valid")]
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
    #[error("a chunk of {dims:?} elements of {elem_size} bytes does not fit into memory")]
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
