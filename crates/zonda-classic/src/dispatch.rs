//! A classic file as all formats show theirs.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zonda_convert::Converted;
use zonda_format::{
    Access, AttAccess, AttPut, AttView, Capabilities, ClassicVar, Definitions, Destination,
    DimView, Dims, Dispatch, DispatchWrite, Ending, Error, FillMode, Format, GroupId, GroupView,
    Layout, PutRules, Reserve, Result, Transfer, Values, VarRef, VarView,
};
use zonda_model::{DimId, NcError, VarId};
use zonda_storage::Storage;

use crate::file::ClassicFile;

impl ClassicFile {
    /// Records that there are for who asks about definitions: those of puts that were accepted count.
    fn n_shown(&self) -> u64 {
        self.n_records().max(self.base.n_accepted.load(Ordering::Acquire))
    }
}

/// Whoever asks about another group than the root was told before that there is none; here the root answers for it.
impl Definitions for ClassicFile {
    fn format(&self) -> Format {
        self.state.header.version.format()
    }

    fn group(&self, group: GroupId) -> Result<GroupView<'_>> {
        self.check_group(group)?;
        Ok(GroupView {
            name: b"/",
            parent: None,
            children: &[],
            types: &[],
            n_vars: self.state.header.vars.len(),
            dims: Dims::First(self.state.header.dims.len()),
        })
    }

    fn check_group(&self, group: GroupId) -> Result<()> {
        if group == GroupId::ROOT { Ok(()) } else { Err(NcError::BadGrpId.into()) }
    }

    fn n_vars(&self, _group: GroupId) -> usize {
        self.state.header.vars.len()
    }

    fn dims(&self, _group: GroupId) -> Dims<'_> {
        Dims::First(self.state.header.dims.len())
    }

    fn dim(&self, id: DimId) -> Result<DimView<'_>> {
        let dim = self.state.header.dim(id)?;
        let is_unlimited = dim.len == 0;
        let len = if is_unlimited { self.n_shown() } else { dim.len };
        Ok(DimView { name: &dim.name, len, is_unlimited })
    }

    fn find_dim(&self, _group: GroupId, name: &[u8]) -> Result<DimId> {
        Ok(self.state.header.find_dim(name)?)
    }

    fn most_unlimited(&self) -> usize {
        1
    }

    fn first_unlimited(&self, _group: GroupId) -> Option<DimId> {
        self.state.header.record_dim()
    }

    fn n_records(&self) -> Option<u64> {
        Some(self.n_shown())
    }

    fn var(&self, var: VarRef) -> Result<VarView<'_>> {
        let var = self.state.header.var(var.var)?;
        let classic = ClassicVar {
            no_fill: var.no_fill,
            begin: var.begin,
            slab_bytes: var.slab_bytes(),
            is_record: var.is_record(),
        };
        let nc_type = var.ty.nc_type();
        Ok(VarView { name: &var.name, nc_type, dims: &var.dims, classic: Some(classic) })
    }

    fn find_var(&self, _group: GroupId, name: &[u8]) -> Result<VarId> {
        Ok(self.state.header.find_var(name)?)
    }

    fn var_shape(&self, var: VarRef, out: &mut [usize]) -> Result<usize> {
        let var = self.state.header.var(var.var)?;
        for (axis, (out, &len)) in out.iter_mut().zip(&var.shape).enumerate() {
            let len = if axis == 0 && var.is_record() { self.n_shown() } else { len };
            *out = usize::try_from(len).unwrap_or(usize::MAX);
        }
        Ok(var.shape.len())
    }

    fn n_atts(&self, owner: VarRef) -> Result<usize> {
        Ok(self.state.header.atts(owner.var)?.len())
    }

    fn att(&self, owner: VarRef, index: usize) -> Result<AttView<'_>> {
        Ok(self.state.header.atts(owner.var)?.get(index).ok_or(NcError::NotAtt)?.into())
    }

    fn find_att(&self, owner: VarRef, name: &[u8]) -> Result<(i32, AttView<'_>)> {
        let (index, att) = self.state.header.att(owner.var, name)?;
        Ok((i32::try_from(index).unwrap_or(i32::MAX), att.into()))
    }

    fn layout(&self) -> Option<Layout> {
        Some(self.state.header.layout)
    }
}

impl Dispatch for ClassicFile {
    fn capabilities(&self) -> &'static Capabilities {
        &Capabilities::CLASSIC
    }

    fn storage(&self) -> Option<&Arc<dyn Storage>> {
        Some(&self.base.storage)
    }

    fn definitions(&self) -> &dyn Definitions {
        self
    }

    fn is_writable(&self) -> bool {
        ClassicFile::is_writable(self)
    }

    fn in_define_mode(&self) -> bool {
        ClassicFile::in_define_mode(self)
    }

    fn rank(&self, var: VarRef) -> usize {
        ClassicFile::rank(self, var.var)
    }

    fn check_get(&self, get: &mut Transfer<Access<'_>>) -> Result<()> {
        Ok(ClassicFile::check_get(self, get)?)
    }

    fn get(&self, get: &Transfer<Access<'_>>, room: Destination<'_>) -> Result<Converted> {
        Ok(ClassicFile::get(self, get, room.bytes)?)
    }

    fn get_now(&self, get: &mut Transfer<Access<'_>>, room: Destination<'_>) -> Result<Converted> {
        Ok(ClassicFile::get_now(self, get, room.bytes)?)
    }

    fn check_get_att(&self, get: &mut Transfer<AttAccess<'_>>) -> Result<()> {
        Ok(ClassicFile::check_get_att(self, get)?)
    }

    fn get_att(&self, get: &Transfer<AttAccess<'_>>, room: Destination<'_>) -> Result<Converted> {
        Ok(ClassicFile::get_att(self, get, room.bytes)?)
    }

    fn refresh(&mut self) -> Result<()> {
        Ok(ClassicFile::sync(self)?)
    }

    fn check_shared_put(&self, put: &mut Transfer<Access<'_>>) -> Result<()> {
        Ok(ClassicFile::check_put(self, put)?)
    }

    fn shared_put(&self, put: &Transfer<Access<'_>>, values: Values<'_>) -> Result<Converted> {
        Ok(ClassicFile::put(self, put, values.bytes)?)
    }

    fn shared_put_now(
        &self,
        put: &mut Transfer<Access<'_>>,
        values: Values<'_>,
    ) -> Result<Converted> {
        Ok(ClassicFile::put_now(self, put, values.bytes)?)
    }

    fn put_rules(&self, var: VarRef) -> Option<PutRules> {
        self.state.header.put_rules(var.var)
    }

    fn n_accepted(&self) -> Option<&Arc<AtomicU64>> {
        Some(&self.base.n_accepted)
    }

    /// None where a name was changed that no commit has yet.
    fn committed_name(&self, var: VarRef) -> Option<Box<[u8]>> {
        let var = self.state.header.var(var.var).ok().filter(|_| !self.has_uncommitted_header())?;
        Some(var.name.to_vec().into())
    }

    fn writer(&mut self) -> Option<&mut dyn DispatchWrite> {
        Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl DispatchWrite for ClassicFile {
    fn check_put(&mut self, put: &mut Transfer<Access<'_>>) -> Result<()> {
        Ok(ClassicFile::check_put(self, put)?)
    }

    fn put(&mut self, put: &Transfer<Access<'_>>, values: Values<'_>) -> Result<Converted> {
        Ok(ClassicFile::put(self, put, values.bytes)?)
    }

    fn check_put_att(&mut self, att: &AttPut<'_>) -> Result<usize> {
        Ok(ClassicFile::check_put_att(self, att)?)
    }

    fn put_att(&mut self, att: &AttPut<'_>, values: Values<'_>) -> Result<Converted> {
        Ok(ClassicFile::put_att(self, att, values.bytes)?)
    }

    fn del_att(&mut self, owner: VarRef, name: &[u8]) -> Result<()> {
        Ok(ClassicFile::del_att(self, owner.var, name)?)
    }

    fn rename_att(&mut self, owner: VarRef, name: &[u8], new_name: &[u8]) -> Result<()> {
        Ok(ClassicFile::rename_att(self, owner.var, name, new_name)?)
    }

    fn def_dim(&mut self, _group: GroupId, name: &[u8], len: usize) -> Result<DimId> {
        Ok(ClassicFile::def_dim(self, name, len)?)
    }

    fn rename_dim(&mut self, _group: GroupId, dim: DimId, name: &[u8]) -> Result<()> {
        Ok(ClassicFile::rename_dim(self, dim, name)?)
    }

    fn def_var(
        &mut self,
        _group: GroupId,
        name: &[u8],
        nc_type: i32,
        dims: &[i32],
    ) -> Result<VarId> {
        Ok(ClassicFile::def_var(self, name, nc_type, dims)?)
    }

    fn rename_var(&mut self, var: VarRef, name: &[u8]) -> Result<()> {
        Ok(ClassicFile::rename_var(self, var.var, name)?)
    }

    fn def_var_fill(
        &mut self,
        var: VarRef,
        no_fill: bool,
        value: Option<Values<'_>>,
    ) -> Result<()> {
        let value = value.map(|value| value.bytes);
        Ok(ClassicFile::def_var_fill(self, var.var, no_fill, value)?)
    }

    fn set_fill(&mut self, mode: FillMode) -> Result<FillMode> {
        Ok(ClassicFile::set_fill(self, mode)?)
    }

    fn redef(&mut self) -> Result<()> {
        Ok(ClassicFile::redef(self)?)
    }

    fn enddef(&mut self, reserve: Reserve) -> Result<()> {
        Ok(ClassicFile::enddef(self, reserve)?)
    }

    fn sync(&mut self) -> Result<()> {
        Ok(ClassicFile::sync(self)?)
    }

    fn drain(&mut self) -> Result<()> {
        Ok(ClassicFile::drain(self)?)
    }

    fn close(&mut self) -> std::result::Result<Ending, (Error, Option<Ending>)> {
        ClassicFile::close(self).map_err(|(error, ending)| (error.into(), ending))
    }

    fn abort(&mut self) -> Result<Ending> {
        Ok(ClassicFile::abort(self)?)
    }
}
