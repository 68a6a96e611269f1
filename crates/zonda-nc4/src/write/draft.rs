//! What only a writer needs to know of a variable.

use zonda_format::{Quantize, StorageRequest};
use zonda_hdf5::message::{Datatype, FilterDescription};

use super::OwnedValues;
use crate::model::Endianness;

/// A variable that was defined since the file was opened, or changed.
#[derive(Clone, Debug)]
pub(crate) struct VarDraft {
    /// Type of an element in the file. Of a user-defined type that still grows it is what the type
    /// was when the variable was defined; once settled it is final.
    pub(crate) datatype: Datatype,
    /// How it is to be stored; follows from `storage`, `chunks` and the shape.
    pub(crate) layout: Layout,
    /// What the caller asked for, or what filters and unlimited dimensions made of it.
    pub(crate) storage: StorageRequest,
    /// Shape of chunks as the caller gave it; where it says 0, the default is taken.
    pub(crate) chunks: Option<Box<[u64]>>,
    /// Filters with the parameters that were asked for, in the order in which they are applied.
    pub(crate) filters: Vec<FilterDescription>,
    /// The filters as they go into the file: some have further parameters there.
    /// Set when the variable is settled.
    pub(crate) stored_filters: Vec<FilterDescription>,
    /// The filters were given as they go into the file.
    pub(crate) filters_are_stored: bool,
    /// Elements never written are left undefined (`NC_NOFILL`).
    pub(crate) no_fill: bool,
    /// The fill value that was set, in memory form; `None` for the default of the type.
    pub(crate) fill_value: Option<OwnedValues>,
    /// Byte order as it was asked for.
    pub(crate) endianness: Endianness,
    /// How the precision of values is reduced.
    pub(crate) quantize: Option<Quantize>,
    /// The variable is in the file, or has data: type, layout and filters cannot change (`NC_ELATEDEF`).
    pub(crate) is_settled: bool,
    /// Something was written, or definitions were ended by `nc_enddef`: the fill value stays as
    /// it is (`NC_ELATEFILL`).
    pub(crate) is_written: bool,
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

/// The value of elements that nobody wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill<'a> {
    /// The default of the type.
    Default,
    /// A value that was set.
    User(&'a OwnedValues),
    /// Anything (`NC_NOFILL`).
    None,
}

impl VarDraft {
    /// The value of elements that nobody wrote.
    pub(crate) fn fill(&self) -> Fill<'_> {
        match &self.fill_value {
            _ if self.no_fill => Fill::None,
            Some(held) => Fill::User(held),
            None => Fill::Default,
        }
    }
}
