//! What only a writer needs to know of a variable.

use zonda_hdf5::message::{Datatype, FilterDescription};

use crate::model::Endianness;

/// A variable that was defined since the file was opened, or changed.
#[derive(Clone, Debug)]
pub(crate) struct VarDraft {
    /// Type of an element in the file.
    pub(crate) datatype: Datatype,
    /// How it is to be stored.
    pub(crate) layout: Layout,
    /// The caller chose the layout; otherwise it follows from shape and filters until the commit.
    pub(crate) layout_chosen: bool,
    /// Filters in the order in which they are applied.
    pub(crate) filters: Vec<FilterDescription>,
    /// What elements are that were never written.
    pub(crate) fill: Fill,
    /// Byte order as it was asked for.
    pub(crate) endianness: Endianness,
    /// Precision that is given up.
    pub(crate) quantize: Option<Quantize>,
    /// It is in the file, or has data: type, layout, filters and fill value stay as they are
    /// (`NC_ELATEDEF`, `NC_ELATEFILL`).
    pub(crate) is_settled: bool,
}

/// How a variable is to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// In one run.
    Contiguous,
    /// In the header.
    Compact,
    /// In chunks of so many elements along each dimension.
    Chunked(Vec<u64>),
}

/// What elements are that were never written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// The default of the type.
    Default,
    /// This, in native memory form (for strings: the text).
    User(Box<[u8]>),
    /// Anything (`NC_NOFILL`).
    None,
}

/// Precision that is given up for better compression (`nc_def_var_quantize`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantize {
    /// How.
    pub mode: QuantizeMode,
    /// Digits, or bits for [`QuantizeMode::BitRound`], that are kept.
    pub kept: u32,
}

/// How precision is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantizeMode {
    /// `NC_QUANTIZE_BITGROOM`
    BitGroom,
    /// `NC_QUANTIZE_GRANULARBR`
    GranularBitRound,
    /// `NC_QUANTIZE_BITROUND`
    BitRound,
}
