//! How variables are stored.

pub use zonda_model::FilterSpec;

/// What is known of how a variable is stored.
#[derive(Clone, Debug)]
pub struct VarInfo {
    /// How its data are stored.
    pub storage: StorageKind,
    /// Filters as the reference lists them: in pipeline order, but the checksum first, and each once.
    pub filters: Vec<FilterSpec>,
    /// Byte order in the file.
    pub endianness: Endianness,
    /// Elements never written are left undefined ("write never").
    pub no_fill: bool,
    /// Fill value of an atomic type but string in native bytes, else empty; the default one where the file has none.
    pub fill_value: Vec<u8>,
}

/// How data are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageKind {
    /// In one run.
    Contiguous,
    /// In the header.
    Compact,
    /// In chunks of this shape.
    Chunked(Vec<usize>),
    /// In external files or other datasets; `nc_inq_var_chunking` has names of its own for the latter.
    External,
    /// In other datasets.
    Virtual,
}

/// Byte order of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endianness {
    /// None: text, bytes, compounds.
    Native,
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

/// Storage as `nc_def_var_chunking` asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageRequest {
    /// `NC_CONTIGUOUS`
    Contiguous,
    /// `NC_COMPACT`
    Compact,
    /// `NC_CHUNKED`
    Chunked,
    /// Another number: checked like contiguous storage, and then ignored.
    Unknown,
}

/// Precision that is given up for better compression (`nc_def_var_quantize`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantize {
    /// How.
    pub mode: QuantizeMode,
    /// Digits, or bits for [`QuantizeMode::BitRound`], that are kept.
    pub kept: u32,
}

/// Modes of giving up precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantizeMode {
    /// `NC_QUANTIZE_BITGROOM`
    BitGroom,
    /// `NC_QUANTIZE_GRANULARBR`
    GranularBitRound,
    /// `NC_QUANTIZE_BITROUND`
    BitRound,
}

impl QuantizeMode {
    /// All of them.
    pub const ALL: [QuantizeMode; 3] =
        [QuantizeMode::BitGroom, QuantizeMode::GranularBitRound, QuantizeMode::BitRound];

    /// The number that C has for it.
    #[must_use]
    pub fn number(self) -> i32 {
        match self {
            QuantizeMode::BitGroom => 1,
            QuantizeMode::GranularBitRound => 2,
            QuantizeMode::BitRound => 3,
        }
    }

    /// Name of the attribute that records it in the file.
    #[must_use]
    pub fn attribute(self) -> &'static str {
        match self {
            QuantizeMode::BitGroom => "_QuantizeBitGroomNumberOfSignificantDigits",
            QuantizeMode::GranularBitRound => "_QuantizeGranularBitRoundNumberOfSignificantDigits",
            QuantizeMode::BitRound => "_QuantizeBitRoundNumberOfSignificantBits",
        }
    }
}
