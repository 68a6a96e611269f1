//! A netCDF-4 file as all formats show theirs.

use std::any::Any;
use std::sync::Arc;

use zonda_convert::Converted;
use zonda_format::{
    Access, AttAccess, AttPut, Capabilities, Definitions, Destination, Dispatch, DispatchWrite,
    Endianness, Ending, Error, FillMode, FilterSpec, GroupId, OwnedValues, PutRules, Quantize,
    Reserve, Result, StorageRequest, StoreVars, Transfer, TypeDefinitions, Values, VarInfo, VarRef,
    View as FormatView, VlenSource,
};
use zonda_model::{DimId, Hyperslab, VarId};
use zonda_storage::Storage;

use crate::file::Nc4File;
use crate::write::View;

impl Dispatch for Nc4File {
    fn capabilities(&self) -> &'static Capabilities {
        &Capabilities::NETCDF4
    }

    fn storage(&self) -> Option<&Arc<dyn Storage>> {
        Some(self.hdf5().storage())
    }

    fn definitions(&self) -> &dyn Definitions {
        self
    }

    fn is_writable(&self) -> bool {
        Nc4File::is_writable(self)
    }

    fn in_define_mode(&self) -> bool {
        Nc4File::in_define_mode(self)
    }

    fn rank(&self, var: VarRef) -> usize {
        Nc4File::rank(self, var)
    }

    fn check_get(&self, get: &mut Transfer<Access<'_>>) -> Result<()> {
        Ok(Nc4File::check_get(self, get)?)
    }

    fn get(&self, get: &Transfer<Access<'_>>, room: Destination<'_>) -> Result<Converted> {
        Ok(Nc4File::get(self, get, room)?)
    }

    fn get_now(&self, get: &mut Transfer<Access<'_>>, room: Destination<'_>) -> Result<Converted> {
        Ok(Nc4File::get_now(self, get, room)?)
    }

    fn check_get_att(&self, get: &mut Transfer<AttAccess<'_>>) -> Result<()> {
        Ok(Nc4File::check_get_att(self, get)?)
    }

    fn get_att(&self, get: &Transfer<AttAccess<'_>>, room: Destination<'_>) -> Result<Converted> {
        Ok(Nc4File::get_att(self, get, room)?)
    }

    fn is_get_ready(&self, get: &Access<'_>) -> Result<bool> {
        Ok(Nc4File::is_get_ready(self, get)?)
    }

    fn read_again(&mut self, tries: &mut u32) -> bool {
        Nc4File::read_again(self, tries)
    }

    fn storage_of_vars(&self) -> Option<&dyn StoreVars> {
        Some(self)
    }

    fn refresh(&mut self) -> Result<()> {
        Nc4File::refresh(self)?;
        Ok(())
    }

    fn view(&self) -> Result<Option<Box<dyn FormatView>>> {
        Ok(Some(Box::new(Nc4File::view(self)?)))
    }

    fn committed_name(&self, var: VarRef) -> Option<Box<[u8]>> {
        Nc4File::committed_name(self, var.group, var.var)
    }

    fn n_confirmed(&self) -> Option<u64> {
        Some(Nc4File::n_confirmed(self))
    }

    fn may_end_definitions(&self) -> bool {
        !Nc4File::in_define_mode(self) || self.get_ends_define_mode()
    }

    fn writer(&mut self) -> Option<&mut dyn DispatchWrite> {
        Some(self)
    }

    fn leave(&mut self) {
        Nc4File::leave(self);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl DispatchWrite for Nc4File {
    fn check_put(&mut self, put: &mut Transfer<Access<'_>>) -> Result<()> {
        Ok(Nc4File::check_put(self, put)?)
    }

    fn put(&mut self, put: &Transfer<Access<'_>>, values: Values<'_>) -> Result<Converted> {
        Ok(Nc4File::put(self, put, values)?)
    }

    fn put_now(&mut self, put: &mut Transfer<Access<'_>>, values: Values<'_>) -> Result<Converted> {
        Ok(Nc4File::put_now(self, put, values)?)
    }

    fn store_complete(&mut self) -> Result<()> {
        Ok(Nc4File::store_complete(self)?)
    }

    fn check_put_att(&mut self, att: &AttPut<'_>) -> Result<usize> {
        Ok(Nc4File::check_put_att(self, att)?)
    }

    fn put_att(&mut self, att: &AttPut<'_>, values: Values<'_>) -> Result<Converted> {
        Ok(Nc4File::put_att(self, att, values)?)
    }

    fn del_att(&mut self, owner: VarRef, name: &[u8]) -> Result<()> {
        Ok(Nc4File::del_att(self, owner, name)?)
    }

    fn rename_att(&mut self, owner: VarRef, name: &[u8], new_name: &[u8]) -> Result<()> {
        Ok(Nc4File::rename_att(self, owner, name, new_name)?)
    }

    fn def_dim(&mut self, group: GroupId, name: &[u8], len: usize) -> Result<DimId> {
        Ok(Nc4File::def_dim(self, group, name, len)?)
    }

    fn rename_dim(&mut self, group: GroupId, dim: DimId, name: &[u8]) -> Result<()> {
        Ok(Nc4File::rename_dim(self, group, dim, name)?)
    }

    fn def_var(
        &mut self,
        group: GroupId,
        name: &[u8],
        nc_type: i32,
        dims: &[i32],
    ) -> Result<VarId> {
        Ok(Nc4File::def_var(self, group, name, nc_type, dims)?)
    }

    fn rename_var(&mut self, var: VarRef, name: &[u8]) -> Result<()> {
        Ok(Nc4File::rename_var(self, var.group, var.var, name)?)
    }

    fn def_var_fill(
        &mut self,
        var: VarRef,
        no_fill: bool,
        value: Option<Values<'_>>,
    ) -> Result<()> {
        Ok(Nc4File::def_var_fill(self, var.group, var.var, no_fill, value)?)
    }

    fn set_fill(&mut self, mode: FillMode) -> Result<FillMode> {
        let no_fill = Nc4File::set_fill(self, mode == FillMode::NoFill)?;
        Ok(if no_fill { FillMode::NoFill } else { FillMode::Fill })
    }

    fn redef(&mut self) -> Result<()> {
        Ok(Nc4File::redef(self)?)
    }

    fn enddef(&mut self, _reserve: Reserve) -> Result<()> {
        Ok(Nc4File::enddef(self)?)
    }

    fn sync(&mut self) -> Result<()> {
        Ok(Nc4File::sync(self)?)
    }

    fn end_definitions(&mut self) -> Result<()> {
        Ok(Nc4File::end_definitions(self)?)
    }

    fn reread(&mut self) -> Result<()> {
        Ok(Nc4File::reread(self)?)
    }

    fn keep_end(&mut self, keeps: bool) {
        Nc4File::keep_end(self, keeps);
    }

    fn drain(&mut self) -> Result<()> {
        Ok(Nc4File::drain(self)?)
    }

    /// Where a sync was lost it has ended: nothing can mend that.
    fn close(&mut self) -> std::result::Result<Ending, (Error, Option<Ending>)> {
        let ending = match Nc4File::drain(self).map_err(Error::from) {
            Ok(()) => Ok(Ending::Keep),
            Err(error) if error.is_of_lost_file(&**self.hdf5().storage()) => {
                Err((error, Some(Ending::Keep)))
            }
            Err(error) => return Err((error, None)),
        };
        // Once more would be another sync, which may fail when all is done.
        self.end_writing();
        ending
    }

    fn abort(&mut self) -> Result<Ending> {
        Ok(if Nc4File::abort(self)? { Ending::Remove } else { Ending::Keep })
    }

    fn types(&mut self) -> Result<&mut dyn TypeDefinitions> {
        Ok(self)
    }
}

impl TypeDefinitions for Nc4File {
    fn def_group(&mut self, parent: GroupId, name: &[u8]) -> Result<GroupId> {
        Ok(Nc4File::def_group(self, parent, name)?)
    }

    fn rename_group(&mut self, group: GroupId, name: &[u8]) -> Result<()> {
        Ok(Nc4File::rename_group(self, group, name)?)
    }

    fn def_compound(&mut self, group: GroupId, size: usize, name: &[u8]) -> Result<i32> {
        Ok(Nc4File::def_compound(self, group, size, name)?)
    }

    fn insert_field(
        &mut self,
        (group, compound): (GroupId, i32),
        name: &[u8],
        offset: usize,
        field_type: i32,
        dims: &[i32],
    ) -> Result<()> {
        Ok(Nc4File::insert_field(self, group, compound, name, offset, field_type, dims)?)
    }

    fn def_vlen(&mut self, group: GroupId, name: &[u8], base: i32) -> Result<i32> {
        Ok(Nc4File::def_vlen(self, group, name, base)?)
    }

    fn def_opaque(&mut self, group: GroupId, size: usize, name: &[u8]) -> Result<i32> {
        Ok(Nc4File::def_opaque(self, group, size, name)?)
    }

    fn def_enum(&mut self, group: GroupId, base: i32, name: &[u8]) -> Result<i32> {
        Ok(Nc4File::def_enum(self, group, base, name)?)
    }

    fn insert_member(&mut self, of: (GroupId, i32), name: &[u8], value: &[u8]) -> Result<()> {
        Ok(Nc4File::insert_member(self, of.0, of.1, name, value)?)
    }

    fn def_var_deflate(&mut self, var: VarRef, shuffle: bool, level: Option<i32>) -> Result<()> {
        let VarRef { group, var } = var;
        let (deflate, level) = (level.is_some(), level.unwrap_or(0));
        Ok(Nc4File::def_var_deflate(self, group, var, shuffle, deflate, level)?)
    }

    fn def_var_fletcher32(&mut self, var: VarRef, on: bool) -> Result<()> {
        Ok(Nc4File::def_var_fletcher32(self, var.group, var.var, on)?)
    }

    fn def_var_filter(&mut self, var: VarRef, filter: FilterSpec) -> Result<()> {
        Ok(Nc4File::def_var_filter(self, var.group, var.var, filter)?)
    }

    fn def_var_chunking(
        &mut self,
        var: VarRef,
        storage: StorageRequest,
        sizes: Option<&[usize]>,
    ) -> Result<()> {
        Ok(Nc4File::def_var_chunking(self, var.group, var.var, storage, sizes)?)
    }

    fn def_var_endian(&mut self, var: VarRef, endianness: Endianness) -> Result<()> {
        Ok(Nc4File::def_var_endian(self, var.group, var.var, endianness)?)
    }

    fn def_var_quantize(&mut self, var: VarRef, mode: i32, kept: i32) -> Result<()> {
        Ok(Nc4File::def_var_quantize(self, var.group, var.var, mode, kept)?)
    }
}

impl StoreVars for Nc4File {
    fn var_info(&self, var: VarRef) -> Result<Arc<VarInfo>> {
        Ok(Nc4File::var_info(self, var.group, var.var)?)
    }

    fn var_quantize(&self, var: VarRef) -> Result<Option<Quantize>> {
        Ok(Nc4File::var_quantize(self, var.group, var.var)?)
    }

    fn fill_value(&self, var: VarRef, room: Destination<'_>) -> Result<()> {
        Ok(Nc4File::fill_value(self, var, None, room)?)
    }

    fn chunk_cache(&self, var: VarRef) -> Result<(usize, usize, f32)> {
        Ok(Nc4File::chunk_cache(self, var.group, var.var)?)
    }

    fn set_chunk_cache(&self, var: VarRef, cache: (usize, usize, f32)) -> Result<()> {
        let (bytes, slots, preemption) = cache;
        Ok(Nc4File::set_chunk_cache(self, var.group, var.var, bytes, slots, preemption)?)
    }
}

impl FormatView for View {
    fn file(&self) -> &dyn Dispatch {
        &**self
    }

    fn put_rules(&self, var: VarRef) -> Result<Option<PutRules>> {
        Ok(View::put_rules(self, var.group, var.var)?)
    }

    fn grow(&mut self, var: VarRef, rules: &PutRules, slab: &Hyperslab<'_>) -> Option<u64> {
        View::grow(self, var.group, var.var, &rules.fixed, slab)
    }

    fn grown(&mut self, var: VarRef, slab: &Hyperslab<'_>) {
        View::grown(self, var.group, var.var, slab);
    }

    fn hold(&self, nc_type: i32, fetch: &mut dyn VlenSource, elems: &[u8]) -> Result<OwnedValues> {
        Ok(View::hold(self, nc_type, fetch, elems)?)
    }
}
