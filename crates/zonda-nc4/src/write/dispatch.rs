//! A netCDF-4 file as all formats show theirs: puts, definitions, and how it ends.

use zonda_chunk::filter::{builtin_name, is_builtin};
use zonda_chunk::{ChunkError, FilterSpec};
use zonda_convert::Converted;
use zonda_format::{
    Access, AttPut, Definitions as _, Dispatch as _, DispatchWrite, Endianness, Ending, Error,
    FillMode, GroupId, Reserve, Result, StorageRequest, TeamWrite, Transfer, TypeDefinitions,
    Values, VarRef,
};
use zonda_model::{DimId, Hyperslab, NcError, VarId};

use super::lifecycle::root_refusal;
use crate::Nc4Error;
use crate::fault::Fault;
use crate::file::Nc4File;
use crate::value_target::NoVlens;

impl DispatchWrite for Nc4File {
    /// First step of writing a hyperslab: all that may refuse it. Says how many bytes the caller's memory has to have
    /// (row-major, shape `count`, elements in memory form).
    ///
    /// A file in define mode leaves it, unless it keeps to the classic model. The variable's storage is made where it is
    /// not there.
    ///
    /// # Errors
    /// `NC_EBADGRPID`, `NC_ENOTVAR`, `NC_ECHAR`, `NC_EINDEFINE`,
    /// `NC_ESTRIDE`, `NC_EINVALCOORDS`, `NC_EEDGE`, `NC_EBADTYPE` for numbers given to strings and
    /// user-defined types, `NC_EHDFERR` for a file open for reading, in the order of the reference;
    /// `NC_ENOFILTER`, `NC_ENOTBUILT` for storage that cannot be changed yet.
    fn check_put(&mut self, put: &mut Transfer<Access<'_>>) -> Result<()> {
        Ok(self.ready(put).map_err(|fault| self.put_fault(put.of().var, fault))?)
    }

    /// Second step of writing, which the first one has checked and while the file did not change.
    ///
    /// Dimensions that can grow do. What was put is in the file after the next commit; reads see it at once.
    ///
    /// # Errors
    /// `NC_EINVAL` for memory of another length than the check said; `NC_EBADTYPE` for strings and sequences of
    /// which nobody says where they are; `NC_EFILTER`, `NC_EHDFERR`, and what the storage reports. Values that do not fit are counted.
    fn put(&mut self, put: &Transfer<Access<'_>>, values: Values<'_>) -> Result<Converted> {
        let of = put.of();
        if values.bytes.len() != put.n_bytes {
            return Err(self.put_fault(of.var, Fault::wrong_length()).into());
        }
        if put.n_elems == 0 {
            return Ok(Converted::default());
        }
        self.commit_if_due(of.var.group, of.var.var, of.slab.start)?;
        let mut none = NoVlens::default();
        let done = match values.fetch {
            Some(fetch) => self.put_ready(put, fetch, values.bytes),
            None => self.put_ready(put, &mut none, values.bytes),
        };
        if none.is_asked {
            return Err(none.refused(self.path_of(of.var)).into());
        }
        Ok(done.map_err(|fault| self.put_fault(of.var, fault))?)
    }

    fn put_now(&mut self, put: &mut Transfer<Access<'_>>, values: Values<'_>) -> Result<Converted> {
        match self.put_one(put.of(), values.bytes) {
            Some(converted) => Ok(converted),
            None => {
                self.check_put(put)?;
                self.put(put, values)
            }
        }
    }

    /// Stores the deferred chunks: those that are complete and wait until there are enough for all threads. A caller
    /// that has nothing else to do may call it; the file does not depend on it.
    ///
    /// # Errors
    /// What storage, filters and space report. What could not be stored stays in memory, and the next
    /// commit tries again.
    fn store_complete(&mut self) -> Result<()> {
        let Nc4File { files, writing: Some(writing), .. } = self else { return Ok(()) };
        let stored = writing.store_complete(files.main());
        Ok(stored.map_err(|fault| fault.at(|| String::from("/")))?)
    }

    fn note_reach(&mut self, var: VarRef, slab: &Hyperslab<'_>) {
        self.grow_by(var, slab);
    }

    /// First step of putting an attribute: all that may refuse it, and bytes that its values take in memory.
    ///
    /// `_FillValue` of a variable becomes its fill value.
    ///
    /// # Errors
    /// In the reference's order: `NC_ENOTVAR`, `NC_EATTMETA`; `NC_EINVAL` for more values than an int
    /// counts; `NC_EBADNAME` for a name that is too long; `NC_EPERM`; `NC_EBADNAME`; `NC_ENAMEINUSE`
    /// for a reserved name; in the classic model and data mode `NC_ENOTINDEFINE` for a new attribute
    /// or a longer one; `NC_EBADTYPE`, `NC_ECHAR`, `NC_ESTRICTNC3`; `NC_EINVAL` or `NC_EBADTYPID` for
    /// a type that is not there; of `_FillValue` `NC_EINVAL` for other than one value,
    /// `NC_ELATEFILL` where data were written and `NC_EBADTYPE` for another type than the variable's;
    /// `NC_EDAPURL` for numbers as values of a user-defined type, and `NC_EMAXATTS`.
    fn check_put_att(&mut self, att: &AttPut<'_>) -> Result<usize> {
        let AttPut { owner, name, .. } = *att;
        self.n_atts(owner)?;
        Ok(self.define_att(owner, name, |it| it.check_put_att(att))?)
    }

    /// Second step of putting an attribute, while the file did not change.
    ///
    /// # Errors
    /// `NC_EINVAL` for memory of another length than the check said; `NC_EBADTYPE` for strings and sequences of which nobody
    /// says where they are; `NC_ENOMEM`, `NC_EMAXATTS`. Values that do not fit are counted.
    fn put_att(&mut self, att: &AttPut<'_>, values: Values<'_>) -> Result<Converted> {
        let AttPut { owner, name, .. } = *att;
        let mut none = NoVlens::default();
        let done = self.define_att(owner, name, |it| it.put_att(att, values, &mut none));
        Ok(if none.is_asked { Err(none.refused(self.path(owner))) } else { done }?)
    }

    fn del_att(&mut self, owner: VarRef, name: &[u8]) -> Result<()> {
        Ok(self.define_att(owner, name, |it| it.del_att(owner, name))?)
    }

    fn rename_att(&mut self, owner: VarRef, name: &[u8], new_name: &[u8]) -> Result<()> {
        Ok(self.define_att(owner, name, |it| it.rename_att(owner, name, new_name))?)
    }

    fn def_dim(&mut self, group: GroupId, name: &[u8], len: usize) -> Result<DimId> {
        Ok(self.define(group, name, |it| it.def_dim(group, name, len))?)
    }

    fn rename_dim(&mut self, group: GroupId, dim: DimId, name: &[u8]) -> Result<()> {
        Ok(self.define(group, name, |it| it.rename_dim(group, dim, name))?)
    }

    fn def_var(
        &mut self,
        group: GroupId,
        name: &[u8],
        nc_type: i32,
        dims: &[i32],
    ) -> Result<VarId> {
        Ok(self.define(group, name, |it| it.def_var(group, name, nc_type, dims))?)
    }

    fn rename_var(&mut self, of: VarRef, name: &[u8]) -> Result<()> {
        Ok(self.define(of.group, name, |it| it.rename_var(of, name))?)
    }

    fn def_var_fill(&mut self, of: VarRef, no_fill: bool, value: Option<Values<'_>>) -> Result<()> {
        Ok(self.define_of_var(of, |it| it.def_var_fill(of, no_fill, value))?)
    }

    fn set_fill(&mut self, mode: FillMode) -> Result<FillMode> {
        // If definitions cannot be read, that is reported before `NC_EPERM`.
        self.model()?;
        let writing = self.writing_mut()?;
        let no_fill = std::mem::replace(&mut writing.mode.no_fill, mode == FillMode::NoFill);
        Ok(if no_fill { FillMode::NoFill } else { FillMode::Fill })
    }

    /// Enters define mode. To enter it twice is an error in the classic model only.
    ///
    /// # Errors
    /// `NC_EINDEFINE` where it is entered already, `NC_EPERM` for a file open for reading; those of
    /// a commit of the data that were put before.
    fn redef(&mut self) -> Result<()> {
        let writing = self.writing_mut()?;
        if writing.mode.is_defining {
            let is_classic = writing.how.classic;
            return if is_classic { Err(root_refusal(NcError::InDefine).into()) } else { Ok(()) };
        }
        // A type that is not complete prevents a commit; the caller can complete it in define mode.
        let is_complete = self.settle().is_ok();
        if is_complete {
            // An abort takes back what comes after this commit.
            self.commit()?;
        }
        let writing = self.writing_mut()?;
        writing.mode.is_defining = true;
        writing.mode.is_redefining = is_complete;
        Ok(())
    }

    /// Leaves define mode and commits.
    ///
    /// # Errors
    /// `NC_ENOTINDEFINE` outside of define mode; those of the commit, after which define mode is
    /// left all the same and a later commit can succeed.
    fn enddef(&mut self, _reserve: Reserve) -> Result<()> {
        if !self.in_define_mode() {
            return Err(root_refusal(NcError::NotInDefine).into());
        }
        self.leave_define_mode()?;
        self.settle_fill_values();
        Ok(self.commit()?)
    }

    /// Commits all that was defined and put. Does nothing for a file open for reading.
    ///
    /// # Errors
    /// `NC_EINDEFINE` in define mode where the classic model is kept to; those of the commit.
    fn sync(&mut self) -> Result<()> {
        let Some(writing) = self.writing.as_deref() else { return Ok(()) };
        if writing.mode.is_defining && writing.how.classic {
            return Err(root_refusal(NcError::InDefine).into());
        }
        if writing.mode.is_defining {
            self.settle_fill_values();
        }
        self.leave_define_mode()?;
        Ok(self.commit()?)
    }

    /// Ends define mode as a get does: with a commit, after which attributes have their places, but
    /// fill values of variables may still change.
    ///
    /// # Errors
    /// `NC_EPERM`; those of the commit, after which define mode is left all the same.
    fn end_definitions(&mut self) -> Result<()> {
        self.leave_define_mode()?;
        Ok(self.commit()?)
    }

    fn reread(&mut self) -> Result<()> {
        Ok(self.open_anew()?)
    }

    /// Sets whether a close leaves the end of the file where it is. It has to where others write, too: their data are
    /// behind the end of what this writer knows to be used.
    fn keep_end(&mut self, keeps: bool) {
        if let Some(writing) = &mut self.writing {
            writing.file_end.is_kept = keeps;
        }
    }

    /// Commits what it can at the end of a process, whatever the mode.
    ///
    /// # Errors
    /// Those of the commit, after which the mode is what it was.
    fn drain(&mut self) -> Result<()> {
        let Some(writing) = self.writing.as_deref() else { return Ok(()) };
        let mode = writing.mode;
        self.leave_define_mode()?;
        let done = self.commit().and_then(|()| self.tidy());
        let done = done.and_then(|()| self.end_where_used());
        if done.is_err()
            && let Some(writing) = &mut self.writing
        {
            writing.mode = mode;
        }
        Ok(done?)
    }

    /// Commits and closes. After a sync that failed the file is closed as well: no later sync can succeed.
    fn close(&mut self) -> std::result::Result<Ending, (Error, Option<Ending>)> {
        let ending = match self.drain() {
            Ok(()) => Ok(Ending::Keep),
            Err(error) if error.is_of_lost_file(&**self.hdf5().storage()) => {
                Err((error, Some(Ending::Keep)))
            }
            Err(error) => return Err((error, None)),
        };
        // Without a writer nothing syncs a second time, which could fail though all is done.
        self.writing = None;
        ending
    }

    /// Takes back what was defined since the caller entered define mode. Define mode that definitions entered by themselves is
    /// committed with the data put before.
    fn abort(&mut self) -> Result<Ending> {
        let Some(writing) = &self.writing else { return Ok(Ending::Keep) };
        // If definitions never ended, nothing is kept of the file.
        let is_begun = writing.mode.is_defining && !writing.mode.has_defined;
        if is_begun || (writing.mode.is_defining && writing.mode.is_redefining) {
            let done = self.end_where_used();
            self.writing = None;
            done?;
            return Ok(if is_begun { Ending::Remove } else { Ending::Keep });
        }
        // If a type is not complete, the file stays open, so that the caller can complete it.
        self.settle()?;
        let done = self.drain();
        self.writing = None;
        done.map(|()| Ending::Keep)
    }

    fn in_team(&mut self) -> Result<&mut dyn TeamWrite> {
        Ok(self)
    }

    fn types(&mut self) -> Result<&mut dyn TypeDefinitions> {
        Ok(self)
    }
}

impl TypeDefinitions for Nc4File {
    fn def_group(&mut self, parent: GroupId, name: &[u8]) -> Result<GroupId> {
        Ok(self.define(parent, name, |it| it.def_group(parent, name))?)
    }

    fn rename_group(&mut self, group: GroupId, name: &[u8]) -> Result<()> {
        Ok(self.define(group, name, |it| it.rename_group(group, name))?)
    }

    fn def_compound(&mut self, group: GroupId, size: usize, name: &[u8]) -> Result<i32> {
        Ok(self.define(group, name, |it| it.def_compound(group, size, name))?)
    }

    fn insert_field(
        &mut self,
        compound: (GroupId, i32),
        name: &[u8],
        offset: usize,
        field_type: i32,
        dims: &[i32],
    ) -> Result<()> {
        Ok(self.define(compound.0, name, |it| {
            it.insert_field(compound, name, offset, field_type, dims)
        })?)
    }

    fn def_vlen(&mut self, group: GroupId, name: &[u8], base: i32) -> Result<i32> {
        Ok(self.define(group, name, |it| it.def_vlen(group, name, base))?)
    }

    fn def_opaque(&mut self, group: GroupId, size: usize, name: &[u8]) -> Result<i32> {
        Ok(self.define(group, name, |it| it.def_opaque(group, size, name))?)
    }

    fn def_enum(&mut self, group: GroupId, base: i32, name: &[u8]) -> Result<i32> {
        Ok(self.define(group, name, |it| it.def_enum(group, base, name))?)
    }

    fn insert_member(
        &mut self,
        (group, nc_type): (GroupId, i32),
        name: &[u8],
        value: &[u8],
    ) -> Result<()> {
        Ok(self.define(group, name, |it| it.insert_member(nc_type, name, value))?)
    }

    fn def_var_deflate(&mut self, of: VarRef, shuffle: bool, level: Option<i32>) -> Result<()> {
        Ok(self.define_of_var(of, |it| it.def_var_deflate(of, shuffle, level))?)
    }

    fn def_var_fletcher32(&mut self, of: VarRef, on: bool) -> Result<()> {
        Ok(self.define_of_var(of, |it| it.def_var_fletcher32(of, on))?)
    }

    /// Adds a filter to the pipeline, or gives one that is there other parameters. The checksum is
    /// applied first and shuffle before the others; the rest in the order of the calls.
    ///
    /// # Errors
    /// In the reference's order: `NC_ENOTVAR`; `NC_EFILTER` for a type of variable length;
    /// `NC_EINDEFINE` (this code, indeed) outside of define mode; `NC_EINVAL` for a scalar;
    /// `NC_ELATEDEF`; `NC_EHDFERR` for a number beyond 65535, `NC_ENOFILTER` for a filter that is not
    /// to be had; `NC_EFILTER` and `NC_EINVAL` for bad parameters.
    fn def_var_filter(&mut self, of: VarRef, mut filter: FilterSpec) -> Result<()> {
        let find = self.how.find_filter.clone();
        let mut refused = None;
        let done = self.define_of_var(of, |it| {
            let is_own = is_builtin(filter.id);
            let found = if is_own { None } else { find.and_then(|find| find(&filter)) };
            let found = found.and_then(|found| found.map_err(|error| refused = Some(error)).ok());
            let is_there = is_own || found.is_some();
            if filter.name.is_empty() {
                // libhdf5 1.10 counts no bytes for a name, and then writes the name that a plugin has.
                let name = found.map(|found| found.name()).or_else(|| builtin_name(filter.id));
                filter.name = name.unwrap_or_default().to_owned();
            }
            it.add_filter(of, filter, is_there)
        });
        match (done, refused) {
            // The message says if there is a plugin that is refused because it is not to be trusted.
            (Err(Nc4Error::Explained { object, code: NcError::NoFilter, .. }), Some(error)) => {
                let error = ChunkError::Filter { chunk: Vec::new(), at: 0, error };
                Err(Nc4Error::Chunk { object, error }.into())
            }
            (done, _) => Ok(done?),
        }
    }

    fn def_var_chunking(
        &mut self,
        of: VarRef,
        storage: StorageRequest,
        sizes: Option<&[usize]>,
    ) -> Result<()> {
        Ok(self.define_of_var(of, |it| it.def_var_chunking(of, storage, sizes))?)
    }

    fn def_var_endian(&mut self, of: VarRef, endianness: Endianness) -> Result<()> {
        Ok(self.define_of_var(of, |it| it.def_var_endian(of, endianness))?)
    }

    fn def_var_quantize(&mut self, of: VarRef, mode: i32, kept: i32) -> Result<()> {
        Ok(self.define_of_var(of, |it| it.def_var_quantize(of, mode, kept))?)
    }
}
