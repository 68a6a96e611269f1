//! Defining user types.
//!
//! A type may be changed until it is in the file, also when variables have it. What the reference
//! takes at first and then refuses at every end of definitions is refused here at once, with the
//! same code: a file whose definitions can never be written would lose what else is in it.

use zonda_model::{ExtType, NcError};

use super::ObjectKey;
use super::datatypes::Typed;
use super::define::Definer;
use super::type_size::{check_items, check_types};
use crate::element_form::NC_STRING;
use crate::fault::{Coded, Outcome, refuse_if};
use crate::model::{Endianness, Field, GroupId, Model, TypeEntry, UserClass, UserType};

/// Bytes of a sequence in memory.
const SEQUENCE: usize = 16;

impl Definer<'_> {
    /// Defines a compound of `size` bytes, still without fields.
    ///
    /// # Errors
    /// In the reference's order: `NC_EBADNAME`, `NC_EMAXNAME`; `NC_ESTRICTNC3` in the classic model;
    /// `NC_EINVAL` for a size of 0 or beyond 32 bits; `NC_ENAMEINUSE`. `NC_EPERM` in a file open
    /// for reading, after the check of the classic model.
    pub(super) fn def_compound(
        &mut self,
        group: GroupId,
        size: usize,
        name: &[u8],
    ) -> Outcome<i32> {
        self.def_type(group, name, |_| Ok((size, UserClass::Compound(Vec::new()))))
    }

    /// Adds a field to a compound: `dims` is its shape, empty for a single value.
    ///
    /// # Errors
    /// In the reference's order: `NC_EBADNAME`, `NC_EMAXNAME`; `NC_EINVAL` for a negative type,
    /// `NC_EBADTYPID` for one that is not there, `NC_EBADTYPE` for one that is no compound;
    /// `NC_ETYPDEFINED` for one that is in the file. Then `NC_EBADTYPE` for a field of a type that
    /// is not there or is not complete, and `NC_EHDFERR` for one that does not fit, is named as
    /// another or lies over it, or makes a type that no file can hold (`type_size`).
    pub(super) fn insert_field(
        &mut self,
        (group, nc_type): (GroupId, i32),
        name: &[u8],
        offset: usize,
        field_type: i32,
        dims: &[i32],
    ) -> Outcome<()> {
        let name = self.stored_name(name, false)?;
        let is_compound = |class: &UserClass| matches!(class, UserClass::Compound(_));
        self.growing(nc_type, is_compound)?;
        // Only types that were defined before this one are in the file before it.
        refuse_if(field_type >= nc_type, NcError::BadType)?;
        let end = |offset: usize, field_type, dims: &[i32]| {
            let size = memory_size(self.model, field_type, dims)?;
            offset.checked_add(size).ok_or(NcError::HdfErr)
        };
        let last = end(offset, field_type, dims)?;
        let size = self.model.user_type(nc_type).map_or(0, |ty| ty.size);
        refuse_if(last > size, NcError::HdfErr)?;
        let known = self.model.user_type(nc_type).map(|ty| &ty.class);
        if let Some(UserClass::Compound(fields)) = known {
            for field in fields {
                let its_last = end(field.offset, field.nc_type, &field.dims)?;
                let is_apart = its_last <= offset || last <= field.offset;
                refuse_if(!is_apart || field.name == name, NcError::HdfErr)?;
            }
        }
        let home = self.model.user_type(nc_type).map_or(group, |ty| ty.group);
        check_items(self.model, field_type, home)?;
        let ty = self.model.user_type_mut(nc_type).ok_or(NcError::Internal)?;
        if let UserClass::Compound(fields) = &mut ty.shown.class {
            fields.push(Field { name, offset, nc_type: field_type, dims: dims.to_vec() });
        }
        let checked = check_types(self.model, nc_type);
        if checked.is_err()
            && let Some(ty) = self.model.user_type_mut(nc_type)
            && let UserClass::Compound(fields) = &mut ty.shown.class
        {
            fields.pop();
        }
        checked
    }

    /// Defines a type of sequences of any length.
    ///
    /// # Errors
    /// As [`Definer::def_compound`]; `NC_EBADTYPE` for items of a type that is not there.
    pub(super) fn def_vlen(&mut self, group: GroupId, name: &[u8], base: i32) -> Outcome<i32> {
        self.def_type(group, name, |model| {
            item_size(model, base)?;
            Ok((SEQUENCE, UserClass::Vlen { base }))
        })
    }

    /// Defines a type of `size` bytes that only programs understand.
    ///
    /// # Errors
    /// As [`Definer::def_compound`].
    pub(super) fn def_opaque(&mut self, group: GroupId, size: usize, name: &[u8]) -> Outcome<i32> {
        self.def_type(group, name, |_| Ok((size, UserClass::Opaque)))
    }

    /// Defines an enumeration, still without members.
    ///
    /// # Errors
    /// As [`Definer::def_compound`]; `NC_EINVAL` for a negative base type, `NC_EBADTYPE` and
    /// `NC_EBADTYPID` for one that is not there, `NC_EHDFERR` for one that is no integer.
    pub(super) fn def_enum(&mut self, group: GroupId, base: i32, name: &[u8]) -> Outcome<i32> {
        self.def_type(group, name, |model| {
            let ext = match (ExtType::from_nc_type(base), model.user_type(base)) {
                (Some(ext), _) => ext,
                (None, Some(_)) => return Err(NcError::HdfErr),
                (None, None) if base == NC_STRING => return Err(NcError::HdfErr),
                (None, None) if base < 0 => return Err(NcError::Inval),
                (None, None) if base == 0 => return Err(NcError::BadType),
                (None, None) => return Err(NcError::BadTypId),
            };
            refuse_if(
                matches!(ext, ExtType::Char | ExtType::Float | ExtType::Double),
                NcError::HdfErr,
            )?;
            Ok((ext.size(), UserClass::Enum { base, members: Vec::new() }))
        })
    }

    /// Adds a member to an enumeration; `value` has the native bytes of its base type.
    ///
    /// # Errors
    /// In the reference's order: `NC_EBADNAME`, `NC_EMAXNAME`; `NC_EINVAL` for a negative type,
    /// `NC_EBADTYPID` for one that is not there, `NC_EBADTYPE` for one that is no enumeration;
    /// `NC_ETYPDEFINED` for one that is in the file. Then `NC_EHDFERR` for a name or value that
    /// another member has, and for one more than a file can hold (`type_size`); `NC_EINVAL` for a value
    /// of another size.
    pub(super) fn insert_member(&mut self, nc_type: i32, name: &[u8], value: &[u8]) -> Outcome<()> {
        let name = self.stored_name(name, false)?;
        self.growing(nc_type, |class| matches!(class, UserClass::Enum { .. }))?;
        let ty = self.model.user_type_mut(nc_type).ok_or(NcError::Internal)?;
        let value: Box<[u8]> = value.get(..ty.size).ok_or(NcError::Inval)?.into();
        if let UserClass::Enum { members, .. } = &mut ty.shown.class {
            refuse_if(
                members.iter().any(|known| known.0 == name || known.1 == value),
                NcError::HdfErr,
            )?;
            members.push((name, value));
        }
        let checked = check_types(self.model, nc_type);
        if checked.is_err()
            && let Some(ty) = self.model.user_type_mut(nc_type)
            && let UserClass::Enum { members, .. } = &mut ty.shown.class
        {
            members.pop();
        }
        checked
    }

    fn def_type(
        &mut self,
        group: GroupId,
        name: &[u8],
        what: impl FnOnce(&Model) -> Coded<(usize, UserClass)>,
    ) -> Outcome<i32> {
        let name = self.stored_name(name, true)?;
        self.group(group)?;
        refuse_if(self.is_classic(), NcError::StrictNc3)?;
        // Unlike other definitions, types do not enter define mode.
        self.writing()?;
        let (size, class) = what(self.model)?;
        if let UserClass::Vlen { base } = &class {
            check_items(self.model, *base, group)?;
        }
        refuse_if(size == 0 || u32::try_from(size).is_err(), NcError::Inval)?;
        self.check_link(group, &name)?;
        let ty = UserType { name, group, ..UserType::described(size, class) };
        let added = self.model.add_type(TypeEntry::declared(ty));
        let nc_type = added.ok_or(NcError::Internal)?;
        self.mark(ObjectKey::Type(nc_type));
        self.mark(ObjectKey::Group(group));
        Ok(nc_type)
    }

    /// The HDF5 type of a type that was defined since the file was opened: from now on it cannot be
    /// changed, and attributes that have it are known by it.
    ///
    /// # Errors
    /// `NC_EINVAL` for an enumeration without members, `NC_EHDFERR` for a compound without fields.
    pub(crate) fn settle_type(&mut self, nc_type: i32) -> Outcome<()> {
        let Typed { datatype, form } = Typed::of(self.model, nc_type, Endianness::Native)?;
        if let Some(ty) = self.model.user_type_mut(nc_type) {
            ty.settle(datatype);
        }
        self.model.forms.learn(nc_type, &form);
        Ok(())
    }
}

impl Definer<'_> {
    /// Checks that a type is of this class and can still be changed.
    fn growing(&mut self, nc_type: i32, is_class: impl FnOnce(&UserClass) -> bool) -> Coded<()> {
        refuse_if(nc_type < 0, NcError::Inval)?;
        let ty = match self.model.user_type(nc_type) {
            Some(ty) => ty,
            None if nc_type <= NC_STRING => return Err(NcError::BadType),
            None => return Err(NcError::BadTypId),
        };
        refuse_if(!is_class(&ty.class), NcError::BadType)?;
        refuse_if(ty.is_stored, NcError::TypDefined)?;
        self.writing()?;
        Ok(())
    }
}

/// Bytes of a field in memory; the type of its items may still be growing.
fn memory_size(model: &Model, nc_type: i32, dims: &[i32]) -> Coded<usize> {
    let times = |n: usize, &dim: &i32| {
        let dim = usize::try_from(dim).ok().filter(|&dim| dim > 0);
        n.checked_mul(dim?)
    };
    dims.iter().try_fold(item_size(model, nc_type)?, times).ok_or(NcError::HdfErr)
}

/// Bytes of an item of a type that other types may be made of.
fn item_size(model: &Model, nc_type: i32) -> Coded<usize> {
    let typed = match model.user_type(nc_type) {
        Some(ty) if ty.is_declared => return Ok(ty.size),
        _ => Typed::of(model, nc_type, Endianness::Native),
    };
    typed.map(|typed| typed.form.size).map_err(|_| NcError::BadType)
}

#[cfg(test)]
mod tests;
