//! What can go wrong with a classic file, each cause with the values that explain it.

use zonda_format::{FormatError, NC_STRING};
use zonda_model::memory::NoMemory;
use zonda_model::{Answer, ExtType, NcError};
use zonda_storage::{RemoteFailure, StorageError};

/// A failed operation on a classic file.
///
/// Its code ([`FormatError::nc_error`]) is the one that the reference gives for the same cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClassicError {
    /// The storage below failed.
    #[error(transparent)]
    Storage(#[from] StorageError),

    /// A caller's count, or one in the file, is more than fits into memory.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),

    /// The file ends inside its header.
    #[error("{production} at byte {at}: needs {need} bytes, {have} left")]
    Truncated {
        /// Grammar production being read.
        production: &'static str,
        /// Byte offset in the file.
        at: u64,
        /// Bytes the production needs.
        need: u64,
        /// Bytes that are left.
        have: u64,
    },
    /// The first four bytes are not `CDF` and a known version.
    #[error("magic number at byte 0: not a classic netCDF file ({found:02x?})")]
    BadMagic {
        /// What stands there.
        found: Vec<u8>,
    },
    /// A list does not start with its tag.
    #[error("{production} at byte {at}: tag 0x{expected:02x} expected, got 0x{found:02x}")]
    BadTag {
        /// Grammar production being read.
        production: &'static str,
        /// Byte offset of the tag.
        at: u64,
        /// Tag the grammar asks for.
        expected: u32,
        /// Tag in the file.
        found: u32,
    },
    /// A type code that classic files do not have.
    #[error("{production} at byte {at}: unknown nc_type {found}")]
    BadTypeCode {
        /// Grammar production being read.
        production: &'static str,
        /// Byte offset of the code.
        at: u64,
        /// The code.
        found: u32,
    },
    /// A list or string longer than the rest of the file.
    #[error("{production} at byte {at}: {count} items cannot fit in the {have} bytes left")]
    CountTooLarge {
        /// Grammar production being read.
        production: &'static str,
        /// Byte offset of the count.
        at: u64,
        /// Items claimed.
        count: u64,
        /// Bytes left.
        have: u64,
    },
    /// A header beyond the limit set for this reader.
    #[error("header: longer than the limit of {limit} bytes")]
    HeaderTooLong {
        /// The limit in bytes.
        limit: u64,
    },
    /// A variable of the file names a dimension that does not exist.
    #[error("variable {variable}: no dimension {dim}")]
    BadDimOfVar {
        /// Name of the variable.
        variable: String,
        /// The dimension id found.
        dim: i64,
    },
    /// The record dimension stands elsewhere than first.
    #[error("variable {0}: the record dimension must come first")]
    RecordDimNotFirst(String),
    /// Offsets in the file overlap, fall or point into the header.
    #[error("variable {variable}: data at byte {begin} begins before byte {least}")]
    BadOffset {
        /// Name of the variable.
        variable: String,
        /// Its `begin`.
        begin: u64,
        /// Where the part before it ends.
        least: u64,
    },
    /// A variable larger than its format allows in its place.
    #[error("variable {variable}: too large for {format}")]
    VarTooLarge {
        /// Name of the variable.
        variable: String,
        /// Format name.
        format: &'static str,
    },
    /// A dimension longer than its format allows.
    #[error("dimension {name}: length {len} is beyond what {format} can hold")]
    DimTooLong {
        /// Name of the dimension.
        name: String,
        /// Length asked for.
        len: u64,
        /// Format name.
        format: &'static str,
    },
    /// A second record dimension.
    #[error("dimension {0}: the file has a record dimension already")]
    SecondRecordDim(String),

    /// A name that breaks the rules; `code` is `NC_EBADNAME` or `NC_EMAXNAME`.
    #[error("name {name:?}: {code}")]
    Name {
        /// The name.
        name: String,
        /// Which rule.
        code: NcError,
    },
    /// A name that another object has.
    #[error("name {0:?} is in use")]
    NameInUse(String),
    /// No dimension with that id.
    #[error("no dimension {0}")]
    NoDim(i32),
    /// No dimension with that name.
    #[error("no dimension {0:?}")]
    NoDimNamed(String),
    /// No variable with that id.
    #[error("no variable {0}")]
    NoVar(i32),
    /// No variable with that name.
    #[error("no variable {0:?}")]
    NoVarNamed(String),
    /// `NC_GLOBAL` where a variable is needed.
    #[error("NC_GLOBAL is not a variable")]
    GlobalNotVar,
    /// No attribute with that name or number.
    #[error("no attribute {what} of {owner}")]
    NoAtt {
        /// Name or number.
        what: String,
        /// Variable name, or `the file`.
        owner: String,
    },
    /// A type that the file's format does not have.
    #[error("type {} does not exist in {format}", shown_type(*.code))]
    BadType {
        /// The `nc_type`.
        code: i32,
        /// Format name.
        format: &'static str,
    },
    /// A fill value of another type than its variable, or not exactly one value.
    #[error("variable {0}: _FillValue must be one value of the variable's type")]
    BadFillValue(String),
    /// Too many dimensions for one variable.
    #[error("a variable of {0} dimensions: at most 1024")]
    TooManyDims(usize),
    /// An argument that makes no sense by itself.
    #[error("{0}")]
    InvalidArgument(&'static str),

    /// Text was asked as numbers or the other way round.
    #[error("{0}: text and numbers do not convert into each other")]
    TextNumberMix(String),
    /// A start index outside a dimension.
    #[error("variable {variable}: start {start} is outside dimension {axis} of length {len}")]
    InvalidCoords {
        /// Name of the variable.
        variable: String,
        /// Index of the dimension in the variable.
        axis: usize,
        /// The start index.
        start: usize,
        /// The dimension's length.
        len: u64,
    },
    /// A hyperslab reaching outside a dimension.
    #[error(
        "variable {variable}: start {start} + count {count}{} is beyond the end of dimension {axis} of length {len}",
        if *stride == 1 { String::new() } else { format!(" at stride {stride}") }
    )]
    Edge {
        /// Name of the variable.
        variable: String,
        /// Index of the dimension in the variable.
        axis: usize,
        /// The start index.
        start: usize,
        /// The count.
        count: usize,
        /// The stride.
        stride: isize,
        /// The dimension's length.
        len: u64,
    },
    /// A stride that is not positive or too large.
    #[error(
        "variable {variable}: stride {stride} in dimension {axis} is out of range: expected 1 to {}",
        zonda_slab::STRIDE_LIMIT - 1
    )]
    BadStride {
        /// Name of the variable.
        variable: String,
        /// Index of the dimension in the variable.
        axis: usize,
        /// The stride.
        stride: isize,
    },
    /// More elements than memory can address.
    #[error("variable {0}: the selection has more elements than memory can address")]
    SelectionTooLarge(String),

    /// Data that a writer was moving when it died, or is moving now.
    #[error("{}", if *in_use {
        "a writer is moving data in it"
    } else {
        "its writer died while moving data; zonda recover completes that"
    })]
    HalfMoved {
        /// The writer is alive.
        in_use: bool,
    },
    /// A change to a file that was opened for reading.
    #[error("the file was opened for reading only")]
    ReadOnly,
    /// A data-mode operation in define mode.
    #[error("not possible in define mode")]
    InDefineMode,
    /// A define-mode operation in data mode.
    #[error("only possible in define mode")]
    NotInDefineMode,
    /// An operation on a closed file.
    #[error("the file is closed")]
    Closed,
    /// Two lengths that are the same by construction are not: a bug, and nothing of it was written.
    #[error("{0} is not as long as its place, which is a bug in Zonda")]
    Length(&'static str),
}

impl FormatError for ClassicError {
    fn nc_error(&self) -> NcError {
        match self {
            ClassicError::Storage(
                StorageError::NoMemory { .. }
                | StorageError::Remote { kind: RemoteFailure::NoMemory, .. },
            ) => NcError::NoMem,
            // As the reference answers where its library for HTTP fails.
            ClassicError::Storage(StorageError::Remote { .. }) => NcError::Curl,
            ClassicError::Storage(error) => NcError::System(error.raw_os_error()),
            ClassicError::Truncated { .. }
            | ClassicError::BadMagic { .. }
            | ClassicError::CountTooLarge { .. }
            | ClassicError::HeaderTooLong { .. }
            | ClassicError::BadOffset { .. } => NcError::NotNc,
            // The reference hands out EINVAL, the errno, for these two.
            ClassicError::BadTag { .. } => NcError::System(EINVAL),
            ClassicError::BadTypeCode { .. } => NcError::Inval,
            ClassicError::BadDimOfVar { .. }
            | ClassicError::NoDim(_)
            | ClassicError::NoDimNamed(_) => NcError::BadDim,
            ClassicError::RecordDimNotFirst(_) => NcError::UnlimPos,
            ClassicError::VarTooLarge { .. } => NcError::VarSize,
            ClassicError::DimTooLong { .. } => NcError::DimSize,
            ClassicError::SecondRecordDim(_) => NcError::Unlimit,
            ClassicError::Name { code, .. } => *code,
            ClassicError::NameInUse(_) => NcError::NameInUse,
            ClassicError::NoVar(_) | ClassicError::NoVarNamed(_) => NcError::NotVar,
            ClassicError::GlobalNotVar => NcError::Global,
            ClassicError::NoAtt { .. } => NcError::NotAtt,
            ClassicError::BadType { .. } | ClassicError::BadFillValue(_) => NcError::BadType,
            ClassicError::TooManyDims(_) => NcError::MaxDims,
            ClassicError::InvalidArgument(_) => NcError::Inval,
            ClassicError::TextNumberMix(_) => NcError::Char,
            ClassicError::InvalidCoords { .. } => NcError::InvalidCoords,
            ClassicError::Edge { .. } => NcError::Edge,
            ClassicError::BadStride { .. } => NcError::Stride,
            ClassicError::SelectionTooLarge(_) | ClassicError::NoMemory(_) => NcError::NoMem,
            ClassicError::ReadOnly => NcError::Perm,
            ClassicError::InDefineMode => NcError::InDefine,
            ClassicError::NotInDefineMode => NcError::NotInDefine,
            ClassicError::Closed => NcError::BadId,
            ClassicError::HalfMoved { in_use } => {
                NcError::System(if *in_use { EBUSY } else { EUCLEAN })
            }
            ClassicError::Length(_) => NcError::Internal,
        }
    }

    fn answer(&self) -> Answer {
        match self {
            ClassicError::Storage(error) if error.is_refused() => Answer::Refused,
            ClassicError::Storage(error) => Answer::of_errno(error.raw_os_error()),
            ClassicError::NoMemory(_) | ClassicError::SelectionTooLarge(_) => Answer::NoMemory,
            ClassicError::BadMagic { .. } => Answer::Unknown,
            // The limit is this reader's.
            ClassicError::HeaderTooLong { .. } => Answer::Undecodable,
            // These are found in headers only; a caller who asks for the like has other errors.
            ClassicError::Truncated { .. }
            | ClassicError::BadTag { .. }
            | ClassicError::BadTypeCode { .. }
            | ClassicError::CountTooLarge { .. }
            | ClassicError::BadDimOfVar { .. }
            | ClassicError::BadOffset { .. }
            | ClassicError::HalfMoved { in_use: false } => Answer::Damaged,
            ClassicError::NoDimNamed(_)
            | ClassicError::NoVarNamed(_)
            | ClassicError::NoAtt { .. } => Answer::Missing,
            ClassicError::HalfMoved { in_use: true } => Answer::System,
            _ => Answer::Request,
        }
    }

    fn offset(&self) -> Option<u64> {
        match self {
            ClassicError::Storage(error) => error.offset(),
            ClassicError::Truncated { at, .. }
            | ClassicError::BadTag { at, .. }
            | ClassicError::BadTypeCode { at, .. }
            | ClassicError::CountTooLarge { at, .. } => Some(*at),
            ClassicError::BadMagic { .. } => Some(0),
            ClassicError::BadOffset { begin, .. } => Some(*begin),
            _ => None,
        }
    }

    fn storage(&self) -> Option<&StorageError> {
        match self {
            ClassicError::Storage(error) => Some(error),
            _ => None,
        }
    }

    fn names_object(&self) -> bool {
        false
    }
}

/// `EINVAL` of Linux on every architecture.
const EINVAL: i32 = 22;
/// `EBUSY` of Linux on every architecture.
const EBUSY: i32 = 16;
/// `EUCLEAN`, "structure needs cleaning".
const EUCLEAN: i32 = 117;

/// A caller's memory is not as long as the check of its transfer said.
#[cold]
pub(crate) fn wrong_length() -> ClassicError {
    ClassicError::InvalidArgument("the memory given is not as long as its element count says")
}

/// A name for messages: bytes that are no UTF-8 are shown as replacement characters.
pub(crate) fn shown(name: &[u8]) -> String {
    zonda_model::shown_name(name)
}

/// A type by its name, one that has none by its number.
fn shown_type(code: i32) -> String {
    match ExtType::from_nc_type(code) {
        Some(ty) => ty.name().to_owned(),
        None if code == NC_STRING => "string".to_owned(),
        None => code.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_told_by_their_names() {
        let said = |code| ClassicError::BadType { code, format: "CDF-1" }.to_string();
        assert_eq!(said(10), "type int64 does not exist in CDF-1");
        assert_eq!(said(NC_STRING), "type string does not exist in CDF-1");
        assert_eq!(said(33), "type 33 does not exist in CDF-1");
    }
}
