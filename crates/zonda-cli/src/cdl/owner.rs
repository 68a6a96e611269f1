//! What attributes belong to.

use zonda::{Dataset, Meta, VarRef};

/// The variable or group that attributes belong to.
pub(super) struct AttributeOwner<'a> {
    pub(super) file: &'a Dataset,
    pub(super) meta: &'a Meta<'a>,
    pub(super) var: VarRef,
    /// Empty for a group.
    pub(super) name: &'a [u8],
}
