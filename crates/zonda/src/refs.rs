//! Which variable is meant.

use zonda_model::VarId;
use zonda_nc4::{GroupId, Owner};

/// A variable of a group, or with [`VarId::GLOBAL`] the group itself as the owner of attributes.
///
/// Made from a [`VarId`] it means the root group, all that a classic dataset has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VarRef {
    /// Group.
    pub group: GroupId,
    /// Variable.
    pub var: VarId,
}

impl VarRef {
    /// The group as the owner of attributes.
    #[must_use]
    pub fn group(group: GroupId) -> VarRef {
        VarRef { group, var: VarId::GLOBAL }
    }
}

impl From<VarId> for VarRef {
    #[inline]
    fn from(var: VarId) -> VarRef {
        VarRef { group: GroupId::ROOT, var }
    }
}

impl From<VarRef> for Owner {
    fn from(VarRef { group, var }: VarRef) -> Owner {
        Owner { group, var }
    }
}
