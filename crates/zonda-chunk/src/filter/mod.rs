//! Filters: what is done to the bytes of a chunk on their way into the file and back.

use zonda_model::NcError;

/// A filter with its parameters, as a format describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterSpec {
    /// The number registered with The HDF Group.
    pub id: u32,
    /// The filter may be left out where it fails or does not pay (HDF5 flag bit 0).
    pub optional: bool,
    /// Name that the writer gave, for messages; often empty.
    pub name: String,
    /// Parameters ("cd_values").
    pub params: Vec<u32>,
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
    /// A plugin failed.
    #[error("filter {id}: the plugin failed")]
    Plugin {
        /// Registered number.
        id: u32,
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

    /// Applies the filter: appends to `out`, which is empty. `Ok(false)` where it does not pay
    /// (the result would not be shorter, for filters that then leave the chunk as it is) and the
    /// filter's bit in the chunk's mask is to be set.
    ///
    /// # Errors
    /// [`FilterError`]; `out` then holds anything.
    fn encode(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<bool, FilterError>;
}

impl FilterError {
    /// The code that C sees.
    #[must_use]
    pub fn nc_error(&self) -> NcError {
        match self {
            FilterError::Missing { .. } => NcError::NoFilter,
            FilterError::BadParameter { .. }
            | FilterError::FewParameters { .. }
            | FilterError::Damaged { .. }
            | FilterError::WrongLength { .. }
            | FilterError::Checksum { .. }
            | FilterError::Unsupported { .. }
            | FilterError::Plugin { .. } => NcError::HdfErr,
            FilterError::NoMemory { .. } => NcError::NoMem,
        }
    }
}
