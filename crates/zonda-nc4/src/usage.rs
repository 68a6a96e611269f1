//! What of a file is used, and by which variables.

use std::collections::BTreeMap;

use zonda_hdf5::usage::{FileUsage, ObjectUsage};
use zonda_model::VarId;

use crate::file::Nc4File;
use crate::model::GroupId;

impl Nc4File {
    /// Walks all that can be reached in the file, as it is in the storage: what was not committed is
    /// not in it. Other files that it leads to are not looked at.
    #[must_use]
    pub fn usage(&self) -> FileUsage {
        FileUsage::of(self.hdf5())
    }

    /// How much of the file a variable takes, from what [`Nc4File::usage`] found. `None` for a variable that does not
    /// exist, or is in another file.
    #[must_use]
    pub fn var_usage(&self, usage: &FileUsage, group: GroupId, var: VarId) -> Option<ObjectUsage> {
        let at = self.var(group, var).ok()?.1.at;
        usage.objects.get(&at.addr).copied().filter(|_| at.file == 0)
    }

    /// Paths of the groups and variables of this file, by the addresses of their headers as
    /// [`Nc4File::usage`] tells of them. What netCDF does not see has none; there are none where the
    /// objects could not be walked.
    #[must_use]
    pub fn object_paths(&self) -> BTreeMap<u64, String> {
        let mut paths = BTreeMap::new();
        let Ok(model) = self.model() else { return paths };
        for (number, group) in model.groups.iter().enumerate() {
            let Ok(id) = u16::try_from(number).map(GroupId) else { continue };
            if group.at.file == 0 {
                paths.insert(group.at.addr.0, model.group_path(id));
            }
            for var in group.vars.iter().filter(|var| var.at.file == 0) {
                paths.insert(var.at.addr.0, model.var_path(id, var));
            }
        }
        paths
    }
}
