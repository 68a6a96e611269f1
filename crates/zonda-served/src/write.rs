//! What changes a served file: made in the copy, and told to the server.

use zonda_convert::Converted;
use zonda_format::{
    Access, AttPut, DispatchWrite, Endianness, Ending, Error, FillMode, FilterSpec, GroupId,
    Reserve, Result, StorageRequest, Transfer, TypeDefinitions, Values, VarRef,
};
use zonda_model::{DimId, VarId};

use crate::call::Call;
use crate::file::ServedFile;

impl DispatchWrite for ServedFile {
    fn check_put(&mut self, put: &mut Transfer<Access<'_>>) -> Result<()> {
        self.check_served_put(put)
    }

    fn put(&mut self, put: &Transfer<Access<'_>>, values: Values<'_>) -> Result<Converted> {
        self.served_put(put, values)
    }

    fn check_put_att(&mut self, att: &AttPut<'_>) -> Result<usize> {
        let AttPut { owner, name, nc_type, n_values, mem } = *att;
        self.define(
            || Call::CheckPutAtt { owner, name: name.into(), nc_type, n_values, mem },
            |file| file.check_put_att(att),
        )
    }

    fn put_att(&mut self, att: &AttPut<'_>, values: Values<'_>) -> Result<Converted> {
        let AttPut { owner, name, nc_type, n_values, mem } = *att;
        let call = |form| Call::PutAtt { owner, name: name.into(), nc_type, n_values, mem, form };
        self.define_with(call, values, nc_type, |file, values| file.put_att(att, values))
    }

    fn del_att(&mut self, owner: VarRef, name: &[u8]) -> Result<()> {
        self.define(|| Call::DelAtt { owner, name: name.into() }, |file| file.del_att(owner, name))
    }

    fn rename_att(&mut self, owner: VarRef, name: &[u8], new_name: &[u8]) -> Result<()> {
        let call = || Call::RenameAtt { owner, name: name.into(), new_name: new_name.into() };
        self.define(call, |file| file.rename_att(owner, name, new_name))
    }

    fn def_dim(&mut self, group: GroupId, name: &[u8], len: usize) -> Result<DimId> {
        let call = || Call::DefDim { group, name: name.into(), len };
        self.define(call, |file| file.def_dim(group, name, len))
    }

    fn rename_dim(&mut self, group: GroupId, dim: DimId, name: &[u8]) -> Result<()> {
        let call = || Call::RenameDim { group, dim, name: name.into() };
        self.define(call, |file| file.rename_dim(group, dim, name))
    }

    fn def_var(
        &mut self,
        group: GroupId,
        name: &[u8],
        nc_type: i32,
        dims: &[i32],
    ) -> Result<VarId> {
        let call = || Call::DefVar { group, name: name.into(), nc_type, dims: dims.into() };
        self.define(call, |file| file.def_var(group, name, nc_type, dims))
    }

    fn rename_var(&mut self, var: VarRef, name: &[u8]) -> Result<()> {
        let call = || Call::RenameVar { var, name: name.into() };
        self.define(call, |file| file.rename_var(var, name))
    }

    fn def_var_fill(
        &mut self,
        var: VarRef,
        no_fill: bool,
        value: Option<Values<'_>>,
    ) -> Result<()> {
        let Some(value) = value else {
            let call = || Call::DefVarFill { var, no_fill, form: None };
            return self.define(call, |file| file.def_var_fill(var, no_fill, None));
        };
        let nc_type = self.copy.definitions().var(var)?.nc_type;
        let call = |form| Call::DefVarFill { var, no_fill, form: Some(form) };
        let define = |file: &mut dyn DispatchWrite, value: Values<'_>| {
            file.def_var_fill(var, no_fill, Some(value))
        };
        self.define_with(call, value, nc_type, define)
    }

    fn set_fill(&mut self, mode: FillMode) -> Result<FillMode> {
        self.define(|| Call::SetFill { mode }, |file| file.set_fill(mode))
    }

    fn redef(&mut self) -> Result<()> {
        self.step(|| Call::Redef, |file| file.redef())
    }

    fn enddef(&mut self, reserve: Reserve) -> Result<()> {
        self.step(|| Call::Enddef { reserve }, |file| file.enddef(reserve))
    }

    fn sync(&mut self) -> Result<()> {
        self.step(|| Call::Sync, |file| file.sync())
    }

    fn end_definitions(&mut self) -> Result<()> {
        self.learn_lengths()?;
        // A get may come here for the lengths alone.
        if self.copy.in_define_mode() {
            self.step(|| Call::EndDefinitions, |file| file.end_definitions())?;
        }
        Ok(())
    }

    /// Of a file of several ranks the server commits what all have told, when they are gone.
    fn drain(&mut self) -> Result<()> {
        self.check()?;
        if self.is_of_ranks() { Ok(()) } else { self.line.ask(&Call::Drain, &[]).map(drop) }
    }

    fn close(&mut self) -> std::result::Result<Ending, (Error, Option<Ending>)> {
        let failure = self.check();
        let ended =
            self.writer_of_copy().map_err(|error| (error, None)).and_then(|file| file.close());
        let told = self.tell(Call::Close);
        self.end();
        // Whatever the copy says, the file is the server's, which removes it where its definitions are refused.
        let ended = ended.map(|_| ()).map_err(|(error, _)| error);
        match failure.and(ended).and(told) {
            Ok(()) => Ok(Ending::Keep),
            Err(error) => Err((error, Some(Ending::Keep))),
        }
    }

    fn abort(&mut self) -> Result<Ending> {
        let ended = self.writer_of_copy().and_then(|file| file.abort());
        let told = self.tell(Call::Abort);
        self.end();
        ended.and(told).map(|()| Ending::Keep)
    }

    fn types(&mut self) -> Result<&mut dyn TypeDefinitions> {
        self.writer_of_copy()?.types()?;
        Ok(self)
    }
}

impl ServedFile {
    fn define_type<T>(
        &mut self,
        call: impl FnOnce() -> Call,
        define: impl FnOnce(&mut dyn TypeDefinitions) -> Result<T>,
    ) -> Result<T> {
        self.define(call, |file| define(file.types()?))
    }
}

impl TypeDefinitions for ServedFile {
    fn def_group(&mut self, parent: GroupId, name: &[u8]) -> Result<GroupId> {
        let call = || Call::DefGroup { parent, name: name.into() };
        self.define_type(call, |file| file.def_group(parent, name))
    }

    fn rename_group(&mut self, group: GroupId, name: &[u8]) -> Result<()> {
        let call = || Call::RenameGroup { group, name: name.into() };
        self.define_type(call, |file| file.rename_group(group, name))
    }

    fn def_compound(&mut self, group: GroupId, size: usize, name: &[u8]) -> Result<i32> {
        let call = || Call::DefCompound { group, size, name: name.into() };
        self.define_type(call, |file| file.def_compound(group, size, name))
    }

    fn insert_field(
        &mut self,
        compound: (GroupId, i32),
        name: &[u8],
        offset: usize,
        field_type: i32,
        dims: &[i32],
    ) -> Result<()> {
        let call = || Call::InsertField {
            compound,
            name: name.into(),
            offset,
            field_type,
            dims: dims.into(),
        };
        self.define_type(call, |file| file.insert_field(compound, name, offset, field_type, dims))
    }

    fn def_vlen(&mut self, group: GroupId, name: &[u8], base: i32) -> Result<i32> {
        let call = || Call::DefVlen { group, name: name.into(), base };
        self.define_type(call, |file| file.def_vlen(group, name, base))
    }

    fn def_opaque(&mut self, group: GroupId, size: usize, name: &[u8]) -> Result<i32> {
        let call = || Call::DefOpaque { group, size, name: name.into() };
        self.define_type(call, |file| file.def_opaque(group, size, name))
    }

    fn def_enum(&mut self, group: GroupId, base: i32, name: &[u8]) -> Result<i32> {
        let call = || Call::DefEnum { group, base, name: name.into() };
        self.define_type(call, |file| file.def_enum(group, base, name))
    }

    fn insert_member(&mut self, of: (GroupId, i32), name: &[u8], value: &[u8]) -> Result<()> {
        let call = || Call::InsertMember { of, name: name.into(), value: value.into() };
        self.define_type(call, |file| file.insert_member(of, name, value))
    }

    fn def_var_deflate(&mut self, var: VarRef, shuffle: bool, level: Option<i32>) -> Result<()> {
        let call = || Call::DefVarDeflate { var, shuffle, level };
        self.define_type(call, |file| file.def_var_deflate(var, shuffle, level))
    }

    fn def_var_fletcher32(&mut self, var: VarRef, on: bool) -> Result<()> {
        let call = || Call::DefVarFletcher32 { var, on };
        self.define_type(call, |file| file.def_var_fletcher32(var, on))
    }

    fn def_var_filter(&mut self, var: VarRef, filter: FilterSpec) -> Result<()> {
        let call = || Call::DefVarFilter { var, filter: filter.clone() };
        self.define_type(call, |file| file.def_var_filter(var, filter.clone()))
    }

    fn def_var_chunking(
        &mut self,
        var: VarRef,
        storage: StorageRequest,
        sizes: Option<&[usize]>,
    ) -> Result<()> {
        let call = || Call::DefVarChunking { var, storage, sizes: sizes.map(Box::from) };
        self.define_type(call, |file| file.def_var_chunking(var, storage, sizes))
    }

    fn def_var_endian(&mut self, var: VarRef, endianness: Endianness) -> Result<()> {
        let call = || Call::DefVarEndian { var, endianness };
        self.define_type(call, |file| file.def_var_endian(var, endianness))
    }

    fn def_var_quantize(&mut self, var: VarRef, mode: i32, kept: i32) -> Result<()> {
        let call = || Call::DefVarQuantize { var, mode, kept };
        self.define_type(call, |file| file.def_var_quantize(var, mode, kept))
    }
}
