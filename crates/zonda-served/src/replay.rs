//! What a server does with a definition: the same as the client did.

use zonda_format::{AttPut, DispatchWrite, OwnedValues, Result, Values};
use zonda_model::NcError;

use crate::call::{Call, ValuesForm};

/// Makes a definition, or sets or renames an attribute, with the values that came behind it.
///
/// # Errors
/// Those of the call; `NC_EINTERNAL` for one that is no definition, and for damaged values.
pub fn define(file: &mut dyn DispatchWrite, call: &Call, values: &[u8]) -> Result<()> {
    match call {
        Call::PutAtt { owner, name, nc_type, n_values, mem, form } => {
            let (owner, nc_type, n_values, mem) = (*owner, *nc_type, *n_values, *mem);
            let att = AttPut { owner, name, nc_type, n_values, mem };
            with_values(*form, values, |values| file.put_att(&att, values).map(drop))
        }
        Call::CheckPutAtt { owner, name, nc_type, n_values, mem } => {
            let (owner, nc_type, n_values, mem) = (*owner, *nc_type, *n_values, *mem);
            file.check_put_att(&AttPut { owner, name, nc_type, n_values, mem }).map(drop)
        }
        Call::DelAtt { owner, name } => file.del_att(*owner, name),
        Call::RenameAtt { owner, name, new_name } => file.rename_att(*owner, name, new_name),
        Call::DefDim { group, name, len } => file.def_dim(*group, name, *len).map(drop),
        Call::RenameDim { group, dim, name } => file.rename_dim(*group, *dim, name),
        Call::DefVar { group, name, nc_type, dims } => {
            file.def_var(*group, name, *nc_type, dims).map(drop)
        }
        Call::RenameVar { var, name } => file.rename_var(*var, name),
        Call::DefVarFill { var, no_fill, form: None } => file.def_var_fill(*var, *no_fill, None),
        Call::DefVarFill { var, no_fill, form: Some(form) } => {
            with_values(*form, values, |value| file.def_var_fill(*var, *no_fill, Some(value)))
        }
        Call::SetFill { mode } => file.set_fill(*mode).map(drop),
        Call::EndDefinitions => file.end_definitions(),
        _ => define_type(file, call),
    }
}

fn define_type(file: &mut dyn DispatchWrite, call: &Call) -> Result<()> {
    let types = file.types()?;
    match call {
        Call::DefGroup { parent, name } => types.def_group(*parent, name).map(drop),
        Call::RenameGroup { group, name } => types.rename_group(*group, name),
        Call::DefCompound { group, size, name } => {
            types.def_compound(*group, *size, name).map(drop)
        }
        Call::InsertField { compound, name, offset, field_type, dims } => {
            types.insert_field(*compound, name, *offset, *field_type, dims)
        }
        Call::DefVlen { group, name, base } => types.def_vlen(*group, name, *base).map(drop),
        Call::DefOpaque { group, size, name } => types.def_opaque(*group, *size, name).map(drop),
        Call::DefEnum { group, base, name } => types.def_enum(*group, *base, name).map(drop),
        Call::InsertMember { of, name, value } => types.insert_member(*of, name, value),
        Call::DefVarDeflate { var, shuffle, level } => {
            types.def_var_deflate(*var, *shuffle, *level)
        }
        Call::DefVarFletcher32 { var, on } => types.def_var_fletcher32(*var, *on),
        Call::DefVarFilter { var, filter } => types.def_var_filter(*var, filter.clone()),
        Call::DefVarChunking { var, storage, sizes } => {
            types.def_var_chunking(*var, *storage, sizes.as_deref())
        }
        Call::DefVarEndian { var, endianness } => types.def_var_endian(*var, *endianness),
        Call::DefVarQuantize { var, mode, kept } => types.def_var_quantize(*var, *mode, *kept),
        _ => Err(NcError::Internal.into()),
    }
}

/// Has a function use values that came behind a call.
///
/// # Errors
/// `NC_EINTERNAL` for damaged ones; what the function gives.
pub fn with_values<T>(
    form: ValuesForm,
    values: &[u8],
    f: impl FnOnce(Values<'_>) -> Result<T>,
) -> Result<T> {
    match form {
        ValuesForm::Plain => f(Values::plain(values)),
        ValuesForm::Owned => {
            let owned = OwnedValues::read_from(values).ok_or(NcError::Internal)?;
            let mut parts: &OwnedValues = &owned;
            f(Values { bytes: owned.bytes(), fetch: Some(&mut parts) })
        }
    }
}
