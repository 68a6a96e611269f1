//! Definitions and attributes, checked in the order of the classic formats.

use zonda_convert::{ByteOrder, Converted, Decoder, Encoder};
use zonda_format::{
    AttAccess, AttPut, Definitions, Error, GroupId, Result, Transfer, Values, VarRef,
};
use zonda_model::{
    DimId, ExtType, MAX_VAR_DIMS, MemType, NcError, VarId, check_name, memory, normalize_name,
    shown_name,
};

use crate::file::{PlainFile, RULE};
use crate::model::{Att, Dim, FILL_VALUE, Var, in_order, number};
use crate::select::check_mix;

/// Most values of one attribute (the reference's limit in every format).
const MAX_VALUES: usize = 0x7FFF_FFFF;

/// A name in the form in which it is stored.
fn valid_name(name: &[u8]) -> Result<Vec<u8>> {
    let refused = |code| Error::with_text(code, format!("name {:?}: {code}", shown_name(name)));
    check_name(name).map_err(refused)?;
    Ok(normalize_name(name).map_err(refused)?.into_owned())
}

fn in_use(name: &[u8]) -> Error {
    Error::with_text(NcError::NameInUse, format!("name {:?} is in use", shown_name(name)))
}

impl PlainFile {
    /// The type, if the data model of the format has it.
    fn type_of(&self, nc_type: i32) -> Result<ExtType> {
        let most = self.model.format.last_type();
        let found = ExtType::from_nc_type(nc_type).filter(|&ty| ty <= most);
        Ok(found.ok_or(NcError::BadType)?)
    }

    pub(crate) fn define_dim(&mut self, name: &[u8], len: usize) -> Result<DimId> {
        let model = self.require_define()?;
        let (name, len) = (valid_name(name)?, len as u64);
        if i64::try_from(len).is_err() {
            return Err(NcError::DimSize.into());
        }
        if len == 0 && model.dims.iter().any(Dim::is_unlimited) {
            return Err(NcError::Unlimit.into());
        }
        if model.find_dim(GroupId::ROOT, &name).is_ok() {
            return Err(in_use(&name));
        }
        let id = number(model.dims.len())?;
        model.dims.push(Dim { name, len });
        Ok(DimId(id))
    }

    pub(crate) fn define_var(&mut self, name: &[u8], nc_type: i32, dims: &[i32]) -> Result<VarId> {
        self.require_define()?;
        let name = valid_name(name)?;
        let ty = self.type_of(nc_type)?;
        if dims.len() > MAX_VAR_DIMS {
            return Err(NcError::MaxDims.into());
        }
        let model = &mut self.model;
        if model.find_var(GroupId::ROOT, &name).is_ok() {
            return Err(in_use(&name));
        }
        let dims: Vec<DimId> = dims.iter().map(|&id| DimId(id)).collect();
        let mut shape = Vec::with_capacity(dims.len());
        for &id in &dims {
            let len = model.dim(id)?.len;
            if len == 0 && !shape.is_empty() {
                return Err(NcError::UnlimPos.into());
            }
            shape.push(len);
        }
        let var = Var { shape, ..Var::new(name, ty, dims, self.no_fill) };
        if var.bytes(model.records).is_none() {
            return Err(NcError::VarSize.into());
        }
        let id = number(model.vars.len())?;
        model.vars.push(var);
        Ok(VarId(id))
    }

    pub(crate) fn define_fill(
        &mut self,
        var: VarId,
        no_fill: bool,
        value: Option<Values<'_>>,
    ) -> Result<()> {
        self.require_writable()?;
        let var = self.require_define()?.var_mut(var)?;
        var.no_fill = no_fill;
        let Some(value) = value.filter(|_| !no_fill) else { return Ok(()) };
        let native = value.bytes.get(..var.ty.size()).ok_or(NcError::BadType)?.to_vec();
        let bytes = in_order(native, ByteOrder::NATIVE, ByteOrder::Big);
        // The reference deletes the attribute and appends it anew.
        var.atts.retain(|att| *att.name != *FILL_VALUE);
        var.atts.push(Att { name: FILL_VALUE.to_vec(), ty: var.ty, bytes });
        Ok(())
    }

    pub(crate) fn give_dim(&mut self, dim: DimId, name: &[u8]) -> Result<()> {
        self.require_writable()?;
        let name = valid_name(name)?;
        if self.model.find_dim(GroupId::ROOT, &name).is_ok() {
            return Err(in_use(&name));
        }
        self.require_room(name.len() <= self.model.dim(dim)?.name.len())?;
        if let Some(dim) = self.model.dims.get_mut(crate::model::index(dim.0)) {
            dim.name = name;
        }
        Ok(())
    }

    pub(crate) fn give_var(&mut self, var: VarId, name: &[u8]) -> Result<()> {
        self.require_writable()?;
        let name = valid_name(name)?;
        if self.model.find_var(GroupId::ROOT, &name).is_ok() {
            return Err(in_use(&name));
        }
        if var == VarId::GLOBAL {
            return Err(NcError::Global.into());
        }
        self.require_room(name.len() <= self.model.var(var)?.name.len())?;
        self.model.var_mut(var)?.name = name;
        Ok(())
    }

    pub(crate) fn give_att(&mut self, owner: VarId, old: &[u8], name: &[u8]) -> Result<()> {
        self.require_writable()?;
        self.model.atts(owner)?;
        let name = valid_name(name)?;
        let (index, att) = self.model.att(owner, old)?;
        let fits = name.len() <= att.name.len();
        if self.model.att(owner, &name).is_ok() {
            return Err(in_use(&name));
        }
        self.require_room(fits)?;
        if let Some(att) = self.model.atts_mut(owner)?.get_mut(index) {
            att.name = name;
        }
        Ok(())
    }

    pub(crate) fn delete_att(&mut self, owner: VarRef, name: &[u8]) -> Result<()> {
        let model = self.require_define()?;
        let (index, _) = model.att(owner.var, name)?;
        model.atts_mut(owner.var)?.remove(index);
        Ok(())
    }

    /// The type of an attribute that is put, that of its values in memory, and how many bytes these are.
    pub(crate) fn types_of(&self, att: &AttPut<'_>) -> Result<(ExtType, MemType, usize)> {
        self.require_writable()?;
        self.model.atts(att.owner.var)?;
        let ty = self.type_of(att.nc_type)?;
        let mem = check_mix(ty, att.mem)?;
        let bytes = att.n_values.checked_mul(mem.size()).filter(|_| att.n_values <= MAX_VALUES);
        Ok((ty, mem, bytes.ok_or(NcError::Inval)?))
    }

    /// In data mode an existing attribute is overwritten if the new value is not longer.
    pub(crate) fn put_att_now(&mut self, att: &AttPut<'_>, values: &[u8]) -> Result<Converted> {
        let (ty, mem, n_bytes) = self.types_of(att)?;
        let (owner, n) = (att.owner.var, att.n_values);
        let len = n.checked_mul(ty.size()).filter(|_| values.len() == n_bytes);
        let len = len.ok_or(NcError::Inval)?;
        let old = self.model.att(owner, att.name).ok();
        let old = old.map(|(index, old)| (index, old.bytes.len().next_multiple_of(4)));
        self.require_room(old.is_some_and(|(_, room)| len.next_multiple_of(4) <= room))?;
        let name = valid_name(att.name)?;
        let mut bytes = memory::filled(len, 0u8)?;
        let encoder = Encoder::new(ty, ByteOrder::Big, mem, RULE).map_err(|_| NcError::Char)?;
        let converted = encoder.encode(values, &mut bytes);
        let (atts, new) = (self.model.atts_mut(owner)?, Att { name, ty, bytes });
        match old.and_then(|(index, _)| atts.get_mut(index)) {
            Some(old) => *old = new,
            None => atts.push(new),
        }
        Ok(converted)
    }

    pub(crate) fn check_att(&self, get: &mut Transfer<AttAccess<'_>>) -> Result<()> {
        get.forget();
        let att = get.of();
        let (_, found) = self.model.att(att.owner.var, att.name)?;
        let n_elems = found.n_values();
        if n_elems == 0 {
            return Ok(());
        }
        let mem = check_mix(found.ty, att.mem)?;
        let n_bytes = n_elems.checked_mul(mem.size()).ok_or(NcError::NoMem)?;
        get.note(n_bytes, n_elems, Some(mem), [0, 0]);
        Ok(())
    }

    pub(crate) fn get_att_checked(
        &self,
        get: &Transfer<AttAccess<'_>>,
        out: &mut [u8],
    ) -> Result<Converted> {
        let (_, found) = self.model.att(get.of().owner.var, get.of().name)?;
        let Some(mem) = get.mem else { return Ok(Converted::default()) };
        let decoder =
            Decoder::new(found.ty, ByteOrder::Big, mem, RULE).map_err(|_| NcError::Char)?;
        if out.len() != get.n_bytes || found.n_values() != get.n_elems {
            return Err(NcError::Inval.into());
        }
        Ok(decoder.decode(&found.bytes, out))
    }
}
