//! What changes a classic file: definitions, attributes, modes and commits.

use smallvec::SmallVec;
use zonda_convert::Converted;
use zonda_format::{
    Access, AttPut, Dispatch, DispatchWrite, Ending, Error, FillMode, GroupId, Reserve, Result,
    TeamWrite, Transfer, Values, VarRef,
};
use zonda_model::{
    DimId, ExtType, Hyperslab, MAX_VAR_DIMS, MemType, VarId, check_name, normalize_name,
};

use crate::attribute::{MAX_VALUES, check_mix, encode};
use crate::atts::{Att, Atts};
use crate::error::{ClassicError, shown, wrong_length};
use crate::file::ClassicFile;
use crate::fill::FILL_VALUE;
use crate::header::{Dim, Header, Name, Var, Version, round_up};

/// A rename: the present name of the object, its id, and the function that sets the new one.
type Renamed<'a> = (&'a Name, i32, fn(&mut Header, usize, Name, bool));

/// The name in stored form.
///
/// # Errors
/// [`ClassicError::Name`] for one that breaks the rules.
fn valid_name(name: &[u8]) -> std::result::Result<Name, ClassicError> {
    let refused = |code| ClassicError::Name { name: shown(name), code };
    check_name(name).map_err(refused)?;
    Ok(Name::from(&*normalize_name(name).map_err(refused)?))
}

fn in_use(name: &[u8]) -> ClassicError {
    ClassicError::NameInUse(shown(name))
}

impl ClassicFile {
    /// Puts an attribute. One that is taken from another rank of a team may be longer in data mode than that of this rank: it is
    /// not longer than what the header has room for, since that rank was allowed to put it.
    pub(crate) fn put_att_of(
        &mut self,
        att: &AttPut<'_>,
        values: Values<'_>,
        is_taken: bool,
    ) -> Result<Converted> {
        let (ty, mem) = self.types_of(att)?;
        let AttPut { owner: VarRef { var: owner, .. }, name, n_values, .. } = *att;
        if n_values.checked_mul(mem.size()) != Some(values.bytes.len()) {
            return Err(wrong_length().into());
        }
        let in_define = self.state.in_define();
        let header = &mut self.state.header;
        let version = header.version;
        let existing = header.att_named(owner, name)?;
        let len = n_values.checked_mul(ty.size()).ok_or_else(wrong_length)?;
        let atts = header.atts_mut(owner)?;
        let old = existing.and_then(|i| atts.get_mut(i));
        let fits = old
            .as_ref()
            .is_some_and(|old| round_up(len as u64, 4) <= round_up(old.bytes.len() as u64, 4));
        if !in_define && !fits && !is_taken {
            return Err(ClassicError::NotInDefineMode.into());
        }
        let stored = match &old {
            // In data mode the reference keeps the name without looking at it again.
            Some(old) if !in_define => old.name.clone(),
            _ => valid_name(name)?,
        };
        let (bytes, converted) = encode(version, ty, mem, values.bytes, len)?;
        let att = Att { name: stored, ty, len: n_values as u64, bytes };
        match old {
            // It was found by its name, so the name stays the same.
            Some(slot) => *slot = att,
            None => atts.push(att),
        }
        self.state.header_dirty |= !in_define;
        Ok(converted)
    }
}

impl DispatchWrite for ClassicFile {
    fn check_put(&mut self, put: &mut Transfer<Access<'_>>) -> Result<()> {
        self.check_shared_put(put)
    }

    fn put(&mut self, put: &Transfer<Access<'_>>, values: Values<'_>) -> Result<Converted> {
        self.shared_put(put, values)
    }

    fn note_reach(&mut self, var: VarRef, slab: &Hyperslab<'_>) {
        if self.state.header.var(var.var).is_ok_and(Var::is_record) {
            self.lengthen_to(slab.axis(0).end());
        }
    }

    /// In the order of the reference: read-only, no such variable, type not in the format, text mixed with numbers, too many
    /// values.
    fn check_put_att(&mut self, att: &AttPut<'_>) -> Result<usize> {
        self.base.require_writable()?;
        let (_, mem) = self.types_of(att)?;
        if att.n_values > MAX_VALUES {
            let what = "an attribute of more than 2147483647 values";
            return Err(ClassicError::InvalidArgument(what).into());
        }
        // In range: of at most 2147483647 values.
        Ok(att.n_values.checked_mul(mem.size()).ok_or_else(wrong_length)?)
    }

    /// In data mode an existing attribute is overwritten if the new value is not longer. Values that do not fit the type are
    /// counted, not refused. Errors: not in define mode, bad name.
    fn put_att(&mut self, att: &AttPut<'_>, values: Values<'_>) -> Result<Converted> {
        self.put_att_of(att, values, false)
    }

    /// In the order of the reference: not in define mode, no such variable, no such attribute.
    fn del_att(&mut self, owner: VarRef, name: &[u8]) -> Result<()> {
        let header = self.state.require_define()?;
        let index = header.find_att(owner.var, name)?;
        header.atts_mut(owner.var)?.remove(index);
        Ok(())
    }

    /// In data mode the new name must fit the space of the old one. In the order of the reference: read-only, no such variable, bad
    /// name, no such attribute, name in use, not in define mode.
    fn rename_att(&mut self, owner: VarRef, name: &[u8], new_name: &[u8]) -> Result<()> {
        self.base.require_writable()?;
        let state = &mut self.state;
        state.require_open()?;
        let in_define = state.in_define();
        let header = &mut state.header;
        header.atts(owner.var)?;
        let stored = valid_name(new_name)?;
        let index = header.find_att(owner.var, name)?;
        if header.att_named(owner.var, &stored)?.is_some() {
            return Err(ClassicError::NameInUse(shown(new_name)).into());
        }
        let atts = header.atts_mut(owner.var)?;
        let has_room = |att: &mut Att| att.name.has_room_for(stored.len());
        if !in_define && !atts.get_mut(index).is_some_and(has_room) {
            return Err(ClassicError::NotInDefineMode.into());
        }
        atts.rename(index, stored, in_define);
        state.header_dirty |= !in_define;
        Ok(())
    }

    /// Defines a dimension; length 0 makes it the record dimension.
    /// In the reference's order: not in define mode, bad name, length beyond the format, a second
    /// record dimension, name in use.
    fn def_dim(&mut self, _group: GroupId, name: &[u8], len: usize) -> Result<DimId> {
        let header = self.state.require_define()?;
        let stored = valid_name(name)?;
        let len = len as u64;
        let limit = match header.version {
            Version::Cdf1 => 0x7FFF_FFFC,
            Version::Cdf2 => 0xFFFF_FFFC,
            // More than can be addressed; a variable over it is refused by enddef.
            Version::Cdf5 => 0xFFFF_FFFF_FFFF_FFFC,
        };
        if len > limit {
            let format = header.version.name();
            return Err(ClassicError::DimTooLong { name: shown(name), len, format }.into());
        }
        if len == 0 && header.record_dim().is_some() {
            return Err(ClassicError::SecondRecordDim(shown(name)).into());
        }
        if header.dim_named(&stored).is_some() {
            return Err(in_use(name).into());
        }
        let id = next_id(header.dims.len())?;
        header.push_dim(Dim { name: stored, len });
        Ok(DimId(id))
    }

    /// Renames a dimension. In data mode the new name must fit the space of the old one.
    /// In the reference's order: read-only, bad name, name in use, no such dimension, not in
    /// define mode.
    fn rename_dim(&mut self, _group: GroupId, dim: DimId, name: &[u8]) -> Result<()> {
        self.rename(name, |header, name| {
            if header.dim_named(name).is_some() {
                return Err(in_use(name).into());
            }
            Ok((&header.dim(dim)?.name, dim.0, Header::rename_dim))
        })
    }

    /// Defines a variable over the dimensions `dims`, slowest first. In the reference's order: not in define mode, bad name, type
    /// not in the format, too many dimensions, name in use, no such dimension, record dimension not first. Then a size of more
    /// bytes than 63 bits can count, which the reference accepts and computes with modulo its integers.
    fn def_var(
        &mut self,
        _group: GroupId,
        name: &[u8],
        nc_type: i32,
        dims: &[i32],
    ) -> Result<VarId> {
        let fill = self.state.fill;
        let header = self.state.require_define()?;
        let stored = valid_name(name)?;
        let ty = header.version.type_of(nc_type)?;
        if dims.len() > MAX_VAR_DIMS {
            return Err(ClassicError::TooManyDims(dims.len()).into());
        }
        if header.var_named(&stored).is_some() {
            return Err(in_use(name).into());
        }
        let mut shape = SmallVec::with_capacity(dims.len());
        for &id in dims {
            let len = header.dim(DimId(id))?.len;
            if len == 0 && !shape.is_empty() {
                return Err(ClassicError::RecordDimNotFirst(shown(name)).into());
            }
            shape.push(len);
        }
        // A size that no file can have, however its variables are laid out.
        let bytes =
            shape.iter().try_fold(ty.size() as u64, |n, &len: &u64| n.checked_mul(len.max(1)));
        if bytes.is_none_or(|bytes| i64::try_from(bytes).is_err()) {
            let format = header.version.name();
            return Err(ClassicError::VarTooLarge { variable: shown(name), format }.into());
        }
        let id = next_id(header.vars.len())?;
        header.push_var(Var {
            name: stored,
            dims: dims.iter().map(|&id| DimId(id)).collect(),
            shape,
            atts: Atts::default(),
            ty,
            begin: 0,
            no_fill: fill == FillMode::NoFill,
        });
        Ok(VarId(id))
    }

    /// Renames a variable. In data mode the new name must fit the space of the old one.
    /// In the reference's order: read-only, bad name, name in use, no such variable, not in define
    /// mode.
    fn rename_var(&mut self, var: VarRef, name: &[u8]) -> Result<()> {
        self.rename(name, |header, name| {
            if header.var_named(name).is_some() {
                return Err(in_use(name).into());
            }
            if var.var == VarId::GLOBAL {
                return Err(ClassicError::GlobalNotVar.into());
            }
            Ok((&header.var(var.var)?.name, var.var.0, Header::rename_var))
        })
    }

    /// Sets whether a variable is filled and, unless it is not, with what: `value` holds one element
    /// of the variable's type in native byte order and becomes its `_FillValue`.
    /// In the reference's order: read-only, not in define mode, no such variable.
    fn def_var_fill(
        &mut self,
        var: VarRef,
        no_fill: bool,
        value: Option<Values<'_>>,
    ) -> Result<()> {
        self.base.require_writable()?;
        let var = self.state.require_define()?.var_mut(var.var)?;
        var.no_fill = no_fill;
        let Some(value) = value.filter(|_| !no_fill) else { return Ok(()) };
        let Some(value) = value.bytes.get(..var.ty.size()) else {
            return Err(ClassicError::BadFillValue(shown(&var.name)).into());
        };
        let mut bytes = SmallVec::from_slice(value);
        if cfg!(target_endian = "little") {
            bytes.reverse();
        }
        // The reference deletes the attribute and appends it anew.
        while let Some((index, _)) = var.atts.find(FILL_VALUE) {
            var.atts.remove(index);
        }
        var.atts.push(Att { name: FILL_VALUE.into(), ty: var.ty, len: 1, bytes });
        Ok(())
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

    fn in_team(&mut self) -> Result<&mut dyn TeamWrite> {
        Ok(self)
    }

    fn close(&mut self) -> std::result::Result<Ending, (Error, Option<Ending>)> {
        ClassicFile::close(self).map_err(|(error, ending)| (error.into(), ending))
    }

    fn abort(&mut self) -> Result<Ending> {
        Ok(ClassicFile::abort(self)?)
    }
}

impl ClassicFile {
    /// The type of an attribute, and that of its values in memory.
    fn types_of(&self, att: &AttPut<'_>) -> Result<(ExtType, MemType)> {
        let header = self.state.require_open()?;
        header.atts(att.owner.var)?;
        let ty = header.version.type_of(att.nc_type)?;
        Ok((ty, check_mix(ty, att.mem, || shown(att.name))?))
    }

    fn rename(
        &mut self,
        name: &[u8],
        find: impl for<'a> FnOnce(&'a Header, &[u8]) -> Result<Renamed<'a>>,
    ) -> Result<()> {
        self.base.require_writable()?;
        let state = &mut self.state;
        state.require_open()?;
        let in_define = state.in_define();
        let stored = valid_name(name)?;
        let (old, id, rename) = find(&state.header, &stored)?;
        if !in_define && !old.has_room_for(stored.len()) {
            return Err(ClassicError::NotInDefineMode.into());
        }
        let index = usize::try_from(id).unwrap_or(usize::MAX);
        rename(&mut state.header, index, stored, in_define);
        state.header_dirty |= !in_define;
        Ok(())
    }
}

/// The id of the next object in a list of `len`.
fn next_id(len: usize) -> std::result::Result<i32, ClassicError> {
    i32::try_from(len)
        .map_err(|_| ClassicError::InvalidArgument("more objects than a C int can number"))
}
