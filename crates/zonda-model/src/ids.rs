//! Identifiers as callers hold them.

/// Index of a dimension, as `nc_def_dim` returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DimId(pub i32);

/// Index of a variable, as `nc_def_var` returns it; [`VarId::GLOBAL`] stands for the file itself
/// where attributes are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarId(pub i32);

impl VarId {
    /// `NC_GLOBAL`: the owner of global attributes.
    pub const GLOBAL: VarId = VarId(-1);
}
