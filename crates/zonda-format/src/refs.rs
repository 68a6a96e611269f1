//! Which group or variable is meant.

use zonda_model::VarId;

/// A group, numbered in the order in which the reference finds them; 0 is the root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u16);

impl GroupId {
    /// The root group.
    pub const ROOT: GroupId = GroupId(0);
}

/// A variable of a group, or with [`VarId::GLOBAL`] the group itself as the owner of attributes.
///
/// Made from a [`VarId`] it means the root group, all that a classic dataset has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
