//! The user-defined types of a file of a program's own format, as the walk through values needs them.

use std::ffi::c_int;
use std::ptr::null_mut;

use zonda::{Field, NcError, UserClass, UserType};

use super::MAX_DIMS;
use crate::types::{FIRST_USER_TYPE, NcType, VLEN};
use crate::user_types::{COMPOUND, nc_inq_compound_field, nc_inq_user_type};

/// The user-defined types that a type is made of, itself included, by their numbers; those in between
/// are unknown.
///
/// # Errors
/// The code of an inquiry.
pub(crate) fn types_of(ncid: c_int, xtype: NcType) -> Result<Vec<UserType>, c_int> {
    /// More user-defined types than a file can have.
    const TOO_MANY: usize = 1 << 16;
    let mut types: Vec<UserType> = Vec::new();
    let mut seen_types = std::collections::BTreeSet::new();
    let mut to_visit = vec![xtype];
    while let Some(number) = to_visit.pop() {
        let Ok(index) = usize::try_from(i64::from(number) - i64::from(FIRST_USER_TYPE)) else {
            continue;
        };
        if index >= TOO_MANY {
            return Err(NcError::BadType.code());
        }
        if !seen_types.insert(number) {
            continue;
        }
        let (mut size, mut n_fields, mut base, mut class) = (0_usize, 0_usize, 0, 0);
        let (name, class_at) = (null_mut(), &raw mut class);
        let (size_at, base_at, n_at) = (&raw mut size, &raw mut base, &raw mut n_fields);
        // SAFETY: the results go to locals.
        match unsafe { nc_inq_user_type(ncid, number, name, size_at, base_at, n_at, class_at) } {
            0 => {}
            code => return Err(code),
        }
        let class = match class {
            COMPOUND => UserClass::Compound(fields_of(ncid, number, n_fields)?),
            VLEN => UserClass::Vlen { base },
            // Their values own nothing.
            _ => UserClass::Opaque,
        };
        match &class {
            UserClass::Compound(fields) => {
                to_visit.extend(fields.iter().map(|field| field.nc_type))
            }
            _ => to_visit.push(base),
        }
        while types.len() <= index {
            types.push(UserType::described(0, UserClass::Unknown));
        }
        types[index] = UserType::described(size, class);
    }
    Ok(types)
}

fn fields_of(ncid: c_int, xtype: NcType, n: usize) -> Result<Vec<Field>, c_int> {
    let mut fields = Vec::new();
    for index in (0..n).map_while(|n| c_int::try_from(n).ok()) {
        let (mut offset, mut nc_type, mut n_dims) = (0_usize, 0, 0);
        let mut dims = vec![0; MAX_DIMS];
        let (offset_at, type_at, n_at) = (&raw mut offset, &raw mut nc_type, &raw mut n_dims);
        let (name, dims_at) = (null_mut(), dims.as_mut_ptr());
        // SAFETY: the results go to locals with room for them.
        match unsafe {
            nc_inq_compound_field(ncid, xtype, index, name, offset_at, type_at, n_at, dims_at)
        } {
            0 => {}
            code => return Err(code),
        }
        dims.truncate(usize::try_from(n_dims).unwrap_or(0));
        fields.push(Field { name: Box::default(), offset, nc_type, dims });
    }
    Ok(fields)
}
