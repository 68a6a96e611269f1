//! What of a file is used, and by which variables.

use zonda_hdf5::usage::{ObjectUsage, Usage};
use zonda_model::VarId;

use crate::file::Nc4File;
use crate::model::GroupId;

impl Nc4File {
    /// Walks all that can be reached in the file, as it is in the storage: what was not committed is
    /// not in it. Other files that it leads to are not looked at.
    #[must_use]
    pub fn usage(&self) -> Usage {
        Usage::of(self.hdf5())
    }

    /// What a variable takes, by what [`Nc4File::usage`] found. `None` for one that is not there, or
    /// not in this file.
    #[must_use]
    pub fn var_usage(&self, usage: &Usage, group: GroupId, var: VarId) -> Option<ObjectUsage> {
        let at = self.var(group, var).ok()?.1.at;
        usage.objects.get(&at.addr).copied().filter(|_| at.file == 0)
    }
}
