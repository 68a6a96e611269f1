//! How the variables of a dataset are stored, and what only HDF5 files have.

use std::collections::BTreeMap;
use std::sync::Arc;

use zonda_chunk::ChunkAt;
use zonda_format::{Destination, Dispatch, StorageKind, StoreVars, VarInfo, VarRef, VlenSink};
use zonda_model::NcError;
use zonda_nc4::{FileUsage, Gap, Nc4File, ObjectUsage, StorageUse};

use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::nc4::of;

/// How variables are stored, where the format knows; else `NC_ENOTNC4`.
impl Dataset {
    pub(crate) fn ask_stored<T>(&self, f: impl FnOnce(&dyn StoreVars) -> Result<T>) -> Result<T> {
        self.named(self.check_storage())?;
        self.ask(|file| f(stored_in(file)?))
    }

    fn check_storage(&self) -> Result<()> {
        if self.capabilities().storage { Ok(()) } else { Err(NcError::NotNc4.into()) }
    }

    /// How a variable is stored, its filters and fill value.
    ///
    /// # Errors
    /// `NC_ENOTNC4`, `NC_EBADGRPID`, `NC_ENOTVAR`, `NC_EHDFERR`.
    pub fn var_info(&self, var: VarRef) -> Result<Arc<VarInfo>> {
        self.ask_stored(|stored| stored.var_info(var))
    }

    /// Shape of the chunks of a variable; `None` where it has none.
    pub(crate) fn chunk_shape(&self, var: VarRef) -> Result<Option<Vec<u64>>> {
        if !self.capabilities().storage || self.is_dap() {
            return Ok(None);
        }
        Ok(match &self.var_info(var)?.storage {
            StorageKind::Chunked(dims) => Some(dims.iter().map(|&n| (n as u64).max(1)).collect()),
            _ => None,
        })
    }

    /// Fill value of a variable of any type, in the form it has in memory, into `out`, which has
    /// the size of an element.
    ///
    /// # Errors
    /// As [`Dataset::var_info`]; `NC_ENOMEM` where `place` has no memory.
    pub fn fill_value(&self, var: VarRef, place: &mut dyn VlenSink, out: &mut [u8]) -> Result<()> {
        let room = Destination { bytes: out, place: Some(place) };
        self.ask_stored(|stored| stored.fill_value(var, room))
    }

    /// Chunk cache of a variable: bytes, slots, preemption.
    ///
    /// # Errors
    /// `NC_ENOTNC4`, `NC_ENOTVAR`.
    pub fn chunk_cache(&self, var: VarRef) -> Result<(usize, usize, f32)> {
        self.ask_stored(|stored| stored.chunk_cache(var))
    }

    /// Sets the least that the chunk cache of a variable may hold.
    ///
    /// # Errors
    /// `NC_ENOTNC4`, `NC_ENOTVAR`, `NC_EINVAL` for a preemption outside 0 to 1.
    pub fn set_chunk_cache(&self, var: VarRef, cache: (usize, usize, f32)) -> Result<()> {
        self.named(self.check_storage())?;
        self.named(
            self.queued_file.change_both(|file| stored_in(file)?.set_chunk_cache(var, cache)),
        )
    }
}

fn stored_in(file: &dyn Dispatch) -> Result<&dyn StoreVars> {
    file.storage_of_vars().ok_or_else(|| NcError::NotNc4.into())
}

/// What only HDF5 files have; else `NC_ENOTNC4`.
impl Dataset {
    /// Whether it is an HDF5 file, and so netCDF-4 or read as such.
    #[must_use]
    pub fn is_hdf5(&self) -> bool {
        let is_of_ranks = || self.is_of_ranks() && self.format().is_hdf5();
        self.queued_file.file().is::<Nc4File>() || is_of_ranks()
    }

    /// Calls `f` with the HDF5 file itself, which does not show puts that still wait.
    pub(crate) fn hdf5<T>(&self, f: impl FnOnce(&Nc4File) -> Result<T>) -> Result<T> {
        let file = self.named(self.queued_file.file().read())?;
        self.named(of(&**file).and_then(f))
    }

    pub(crate) fn change_hdf5<T>(
        &self,
        f: impl FnOnce(&mut Nc4File) -> zonda_nc4::Result<T>,
    ) -> Result<T> {
        let mut held = self.changing()?;
        let file = held.file.as_any_mut().downcast_mut().ok_or(NcError::NotNc4);
        self.named(file.map_err(Error::from).and_then(|file| Ok(f(file)?)))
    }

    /// As [`Dataset::change_hdf5`], for what has errors of all formats.
    pub(crate) fn change_nc4<T>(&self, f: impl FnOnce(&mut Nc4File) -> Result<T>) -> Result<T> {
        let mut held = self.changing()?;
        let file = held.file.as_any_mut().downcast_mut().ok_or(NcError::NotNc4);
        self.named(file.map_err(Error::from).and_then(f))
    }

    /// How much of the file a variable takes up, and in how many chunks.
    ///
    /// # Errors
    /// As [`Dataset::var_info`].
    pub fn stored(&self, var: VarRef) -> Result<StorageUse> {
        self.hdf5(|file| Ok(file.stored(var.group, var.var)?))
    }

    /// Calls a function with each chunk of a variable: its coordinates counted in chunks, and where it is stored.
    /// What was put and not yet committed is committed first.
    ///
    /// # Errors
    /// As [`Dataset::var_info`]; `NC_ENOTBUILT` for a variable without chunks.
    pub fn for_each_chunk(
        &self,
        var: VarRef,
        mut found: impl FnMut(&[u64], ChunkAt),
    ) -> Result<()> {
        if self.is_writable() && !self.is_forked() {
            self.sync()?;
        }
        self.hdf5(|file| Ok(file.for_each_chunk(var.group, var.var, &mut found)?))
    }

    /// Walks all that can be reached in an HDF5 file, as it was committed: what is used and by what,
    /// what is not, what is damaged.
    ///
    /// # Errors
    /// `NC_ENOTNC4`.
    pub fn usage(&self) -> Result<FileUsage> {
        self.hdf5(|file| Ok(file.usage()))
    }

    /// The bytes that a variable takes, from the result of [`Dataset::usage`]. `None` where it is not in that result,
    /// or in another file.
    #[must_use]
    pub fn var_usage(&self, usage: &FileUsage, var: VarRef) -> Option<ObjectUsage> {
        self.hdf5(|file| Ok(file.var_usage(usage, var.group, var.var))).ok()?
    }

    /// Paths of groups and variables of an HDF5 file by the addresses of their headers, for what
    /// [`Dataset::usage`] finds.
    #[must_use]
    pub fn object_paths(&self) -> BTreeMap<u64, String> {
        of(&**self.queued_file.file().even_closed())
            .map_or_else(|_| BTreeMap::new(), Nc4File::object_paths)
    }

    /// Version of the superblock of an HDF5 file, and the bytes of a user block before it.
    #[must_use]
    pub fn superblock(&self) -> Option<(u8, u64)> {
        Some(of(&**self.queued_file.file().even_closed()).ok()?.superblock())
    }

    /// What the definitions lack: external links whose files are not there, refused or not to be read,
    /// and virtual datasets whose length depends on such files. A classic file lacks nothing.
    ///
    /// # Errors
    /// What reading the definitions meets.
    pub fn gaps(&self) -> Result<Vec<Gap>> {
        if !self.is_hdf5() {
            return Ok(Vec::new());
        }
        self.hdf5(|file| Ok(file.model()?.gaps.clone()))
    }
}
