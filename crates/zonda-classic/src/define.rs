//! Defining and renaming dimensions and variables.

use smallvec::SmallVec;
use zonda_format::FillMode;
use zonda_model::{DimId, MAX_VAR_DIMS, VarId, check_name, normalize_name};

use crate::atts::{Att, Atts};
use crate::error::{ClassicError, shown};
use crate::file::ClassicFile;
use crate::fill::FILL_VALUE;
use crate::header::{Dim, Header, Name, Var, Version};

/// What gets another name: the one it has, its id, and what gives it one.
type Renamed<'a> = (&'a Name, i32, fn(&mut Header, usize, Name, bool));

/// The name in stored form.
///
/// # Errors
/// [`ClassicError::Name`] for one that breaks the rules.
pub(crate) fn valid_name(name: &[u8]) -> Result<Name, ClassicError> {
    let refused = |code| ClassicError::Name { name: shown(name), code };
    check_name(name).map_err(refused)?;
    Ok(Name::from(&*normalize_name(name).map_err(refused)?))
}

fn in_use(name: &[u8]) -> ClassicError {
    ClassicError::NameInUse(shown(name))
}

impl ClassicFile {
    /// Defines a dimension; length 0 makes it the record dimension.
    ///
    /// # Errors
    /// In the reference's order: not in define mode, bad name, length beyond the format, a second
    /// record dimension, name in use.
    pub fn def_dim(&mut self, name: &[u8], len: usize) -> Result<DimId, ClassicError> {
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
            return Err(ClassicError::DimTooLong { name: shown(name), len, format });
        }
        if len == 0 && header.record_dim().is_some() {
            return Err(ClassicError::SecondRecordDim(shown(name)));
        }
        if header.dim_named(&stored).is_some() {
            return Err(in_use(name));
        }
        let id = next_id(header.dims.len())?;
        header.push_dim(Dim { name: stored, len });
        Ok(DimId(id))
    }

    /// Renames a dimension. In data mode the new name must fit the space of the old one.
    ///
    /// # Errors
    /// In the reference's order: read-only, bad name, name in use, no such dimension, not in
    /// define mode.
    pub fn rename_dim(&mut self, dim: DimId, name: &[u8]) -> Result<(), ClassicError> {
        self.rename(name, |header, name| {
            if header.dim_named(name).is_some() {
                return Err(in_use(name));
            }
            Ok((&header.dim(dim)?.name, dim.0, Header::rename_dim))
        })
    }

    /// Renames a variable. In data mode the new name must fit the space of the old one.
    ///
    /// # Errors
    /// In the reference's order: read-only, bad name, name in use, no such variable, not in define
    /// mode.
    pub fn rename_var(&mut self, var: VarId, name: &[u8]) -> Result<(), ClassicError> {
        self.rename(name, |header, name| {
            if header.var_named(name).is_some() {
                return Err(in_use(name));
            }
            if var == VarId::GLOBAL {
                return Err(ClassicError::GlobalNotVar);
            }
            Ok((&header.var(var)?.name, var.0, Header::rename_var))
        })
    }

    fn rename(
        &mut self,
        name: &[u8],
        find: impl for<'a> FnOnce(&'a Header, &[u8]) -> Result<Renamed<'a>, ClassicError>,
    ) -> Result<(), ClassicError> {
        self.base.require_writable()?;
        let state = &mut self.state;
        state.require_open()?;
        let in_define = state.in_define();
        let stored = valid_name(name)?;
        let (old, id, rename) = find(&state.header, &stored)?;
        if !in_define && !old.has_room_for(stored.len()) {
            return Err(ClassicError::NotInDefineMode);
        }
        let index = usize::try_from(id).unwrap_or(usize::MAX);
        rename(&mut state.header, index, stored, in_define);
        state.header_dirty |= !in_define;
        Ok(())
    }

    /// Defines a variable over the dimensions `dims`, slowest first.
    ///
    /// # Errors
    /// In the reference's order: not in define mode, bad name, type not in the format, too many
    /// dimensions, name in use, no such dimension, record dimension not first. Then more bytes than 63
    /// bits count, which the reference takes and computes with what is left of their number.
    pub fn def_var(
        &mut self,
        name: &[u8],
        nc_type: i32,
        dims: &[i32],
    ) -> Result<VarId, ClassicError> {
        let fill = self.state.fill;
        let header = self.state.require_define()?;
        let stored = valid_name(name)?;
        let ty = header.version.type_of(nc_type)?;
        if dims.len() > MAX_VAR_DIMS {
            return Err(ClassicError::TooManyDims(dims.len()));
        }
        if header.var_named(&stored).is_some() {
            return Err(in_use(name));
        }
        let mut shape = SmallVec::with_capacity(dims.len());
        for &id in dims {
            let len = header.dim(DimId(id))?.len;
            if len == 0 && !shape.is_empty() {
                return Err(ClassicError::RecordDimNotFirst(shown(name)));
            }
            shape.push(len);
        }
        // What no file can have, however its variables are laid out.
        let bytes =
            shape.iter().try_fold(ty.size() as u64, |n, &len: &u64| n.checked_mul(len.max(1)));
        if bytes.is_none_or(|bytes| i64::try_from(bytes).is_err()) {
            let format = header.version.name();
            return Err(ClassicError::VarTooLarge { variable: shown(name), format });
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

    /// Sets whether a variable is filled and, unless it is not, with what: `value` holds one element
    /// of the variable's type in native byte order and becomes its `_FillValue`.
    ///
    /// # Errors
    /// In the reference's order: read-only, not in define mode, no such variable.
    pub fn def_var_fill(
        &mut self,
        var: VarId,
        no_fill: bool,
        value: Option<&[u8]>,
    ) -> Result<(), ClassicError> {
        self.base.require_writable()?;
        let var = self.state.require_define()?.var_mut(var)?;
        var.no_fill = no_fill;
        let Some(value) = value.filter(|_| !no_fill) else { return Ok(()) };
        let Some(value) = value.get(..var.ty.size()) else {
            return Err(ClassicError::BadFillValue(shown(&var.name)));
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
}

/// The id of the next object in a list of `len`.
fn next_id(len: usize) -> Result<i32, ClassicError> {
    i32::try_from(len)
        .map_err(|_| ClassicError::InvalidArgument("more objects than a C int can number"))
}
