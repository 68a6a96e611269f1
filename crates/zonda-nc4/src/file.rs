//! An open netCDF-4 file.

use std::path::Path;
use std::sync::Arc;

use zonda_chunk::FilterSpec;
use zonda_chunk::filter::Filter;
use zonda_convert::Converted;
use zonda_model::{Hyperslab, VarId};
use zonda_storage::Storage;

use crate::model::{AttInfo, GroupId, Model, VarInfo};
use crate::place::Target;
use crate::{Nc4Error, Result};

/// What an attribute belongs to: a variable, or the group for [`VarId::GLOBAL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Group.
    pub group: GroupId,
    /// Variable, or [`VarId::GLOBAL`].
    pub var: VarId,
}

/// Finds a filter that is not built in, say in a plugin.
pub type FindFilter = dyn Fn(&FilterSpec) -> Option<Arc<dyn Filter>> + Send + Sync;

/// How to open.
#[derive(Clone, Default)]
pub struct OpenHow {
    /// The folder that relative names of other files (external data, virtual datasets, external
    /// links) begin in; `None` for a file in memory, which has no such files.
    pub folder: Option<std::path::PathBuf>,
    /// Asked for filters that are not built in.
    pub find_filter: Option<Arc<FindFilter>>,
}

impl std::fmt::Debug for OpenHow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let finds = self.find_filter.is_some();
        f.debug_struct("OpenHow").field("folder", &self.folder).field("find_filter", &finds).finish()
    }
}

/// A netCDF-4 file, or any HDF5 file seen as one. All methods may be called from any thread.
#[derive(Debug)]
pub struct Nc4File {}

impl Nc4File {
    /// Opens a file: reads the superblock and the root group's header, no more. `name` is for messages.
    ///
    /// # Errors
    /// `NC_ENOTNC` for what is not HDF5, `NC_EHDFERR` for a damaged superblock or root group.
    pub fn open(storage: Arc<dyn Storage>, name: &Path, how: OpenHow) -> Result<Nc4File> { todo!() }

    /// The definitions. The first call walks the file's objects.
    ///
    /// # Errors
    /// `NC_EHDFERR` where an object is damaged.
    pub fn model(&self) -> Result<&Model> { todo!() }

    /// Number of attributes that count (not the hidden ones), in order.
    ///
    /// # Errors
    /// `NC_ENOTVAR`, `NC_EBADGRPID`; `NC_EATTMETA`, `NC_EHDFERR`.
    pub fn n_atts(&self, owner: Owner) -> Result<usize> { todo!() }

    /// The attribute with that number.
    ///
    /// # Errors
    /// As [`Nc4File::n_atts`]; `NC_ENOTATT`.
    pub fn att(&self, owner: Owner, index: usize) -> Result<AttInfo> { todo!() }

    /// The attribute with that name (normalised here) and its number. Reserved ones that the
    /// reference finds by name only (`_NCProperties`, `_IsNetcdf4`, `_SuperblockVersion`) have number -1.
    ///
    /// # Errors
    /// As [`Nc4File::att`].
    pub fn find_att(&self, owner: Owner, name: &[u8]) -> Result<(i32, AttInfo)> { todo!() }

    /// Reads an attribute. `out` hands over the memory for the length in bytes (in memory form).
    ///
    /// # Errors
    /// As [`Nc4File::att`]; `NC_ECHAR`; values that do not fit are counted.
    pub fn get_att<'a, E: From<Nc4Error>>(
        &self,
        owner: Owner,
        name: &[u8],
        target: Target<'_>,
        out: impl FnOnce(usize) -> std::result::Result<&'a mut [u8], E>,
    ) -> std::result::Result<Converted, E> { todo!() }

    /// How a variable is stored, its filters and fill value.
    ///
    /// # Errors
    /// `NC_EBADGRPID`, `NC_ENOTVAR`, `NC_EHDFERR`.
    pub fn var_info(&self, group: GroupId, var: VarId) -> Result<Arc<VarInfo>> { todo!() }

    /// Fill value of a variable of any type in memory form (`nc_inq_var_fill`).
    ///
    /// # Errors
    /// As [`Nc4File::var_info`].
    pub fn fill_value(&self, group: GroupId, var: VarId, target: Target<'_>, out: &mut [u8]) -> Result<()> { todo!() }

    /// Chunk cache of a variable: bytes, slots, preemption.
    ///
    /// # Errors
    /// `NC_ENOTVAR`.
    pub fn chunk_cache(&self, group: GroupId, var: VarId) -> Result<(usize, usize, f32)> { todo!() }

    /// Sets the least that the chunk cache of a variable may hold; the values are reported as set.
    ///
    /// # Errors
    /// `NC_ENOTVAR`, `NC_EINVAL` for a preemption outside 0 to 1.
    pub fn set_chunk_cache(&self, group: GroupId, var: VarId, bytes: usize, slots: usize, preemption: f32) -> Result<()> { todo!() }

    /// Reads a hyperslab. `slab` is told the variable's rank; `out` hands over the memory for the
    /// length in bytes (row-major, shape `count`, elements in memory form) after all checks.
    /// Elements beyond the variable's extent but inside its dimensions, and those never written,
    /// are fill values.
    ///
    /// # Errors
    /// `NC_EBADGRPID`, `NC_ENOTVAR`, `NC_ECHAR`, `NC_EINVALCOORDS`, `NC_EEDGE`, `NC_ESTRIDE`, `NC_ENOFILTER`,
    /// `NC_EFILTER`, `NC_EHDFERR`, in the order of the reference. Values that do not fit are counted.
    pub fn get<'a, 's, E: From<Nc4Error>>(
        &self,
        group: GroupId,
        var: VarId,
        slab: impl FnOnce(usize) -> Hyperslab<'s>,
        target: Target<'_>,
        out: impl FnOnce(usize) -> std::result::Result<&'a mut [u8], E>,
    ) -> std::result::Result<Converted, E> { todo!() }
}
