//! Decisions of the caller about each object of a copy.

use crate::error::Result;
use zonda_format::{FilterSpec, StorageRequest, VarInfo};

/// Decisions about the objects of a copy, in place of those that follow from
/// [`CopyOptions`](super::CopyOptions); for programs with rules of their own, such as `nccopy`.
///
/// Groups and variables go by their paths from the root of the source, which begin with `/`. With
/// rules, every element of a variable with data is written (but where more than 64 MiB of a variable were
/// never written), and no attribute changes its type.
pub trait CopyRules {
    /// Whether a group is in the target; where it is not, no rule is asked about its contents. The root always is.
    fn has_group(&self, path: &[u8]) -> bool;

    /// Whether a variable is in the target.
    fn has_var(&self, path: &[u8]) -> bool;

    /// Whether the data of a variable are copied.
    fn has_data(&self, path: &[u8]) -> bool;

    /// How a variable with dimensions is stored in a netCDF-4 target.
    ///
    /// # Errors
    /// An error refuses the variable, and ends the copy.
    fn storage(&self, var: &RuledVar<'_>) -> Result<RuledStorage>;
}

/// A variable about whose storage a rule decides.
///
/// See [`copy_by_rules`](crate::copy::copy_by_rules()).
#[derive(Clone, Copy, Debug)]
pub struct RuledVar<'a> {
    /// Path in the source.
    pub path: &'a [u8],
    /// Bytes of an element in memory.
    pub elem_bytes: u64,
    /// Its dimensions, slowest first.
    pub axes: &'a [RuledAxis<'a>],
    /// How an HDF5 source stores it; `None` for others.
    pub source: Option<&'a VarInfo>,
    /// The shape of chunks that the target chooses by default; empty where the variable cannot be in chunks.
    pub default_chunks: &'a [usize],
}

/// A dimension of such a variable.
///
/// See [`copy_by_rules`](crate::copy::copy_by_rules()).
#[derive(Clone, Copy, Debug)]
pub struct RuledAxis<'a> {
    /// Path of the dimension in the source; its name where the group is not known.
    pub path: &'a [u8],
    /// Its length.
    pub len: u64,
    /// Whether it can grow in the target.
    pub is_unlimited: bool,
}

/// How a variable is to be stored.
///
/// See [`copy_by_rules`](crate::copy::copy_by_rules()).
#[derive(Clone, Debug, PartialEq)]
pub struct RuledStorage {
    /// The layout. A variable with filters is in chunks, whatever this says.
    pub request: StorageRequest,
    /// The shape of chunks; `None` for the default.
    pub chunks: Option<Vec<usize>>,
    /// The filters.
    pub filters: RuledFilters,
}

/// Filters of a variable. Those of strings and sequences are left out, with a note: they would not
/// reach the values.
///
/// See [`copy_by_rules`](crate::copy::copy_by_rules()).
#[derive(Clone, Debug, PartialEq)]
pub enum RuledFilters {
    /// As in the source.
    Kept,
    /// These, in the order in which they are asked for.
    These(Vec<FilterSpec>),
}
