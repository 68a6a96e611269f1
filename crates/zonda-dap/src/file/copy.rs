//! The definitions of a dataset, in a file in memory that answers all inquiries.

use zonda_format::{
    AttPut, DispatchWrite, Error, FIRST_USER_TYPE, FillMode, GroupId, Reserve, Result, UserClass,
    UserType, Values, VarRef,
};
use zonda_model::{DimId, NcError};
use zonda_slab::Hyperslab;

use crate::model::{Att, Model};

/// Makes the definitions of a model in a file that has none, and ends define mode. Gives the variables as the file has them, in the order of the model.
///
/// # Errors
/// What netCDF refuses, with the name of the object; `NC_EVARSIZE` where the format has no place for variables so long.
pub fn define(model: &Model, file: &mut dyn DispatchWrite) -> Result<Vec<VarRef>> {
    if !model.is_netcdf4 {
        // Nothing is ever put into it.
        file.set_fill(FillMode::NoFill)?;
    }
    let groups = groups(model, file)?;
    let group = |at: usize| groups.get(at).copied().ok_or_else(|| no_place("group"));
    let mut dims: Vec<DimId> = Vec::new();
    for dim in &model.dims {
        let len = if dim.is_unlimited { Some(0) } else { usize::try_from(dim.len).ok() };
        let len = len.ok_or_else(|| named("dimension", &dim.name, NcError::DimSize.into()))?;
        let made = file.def_dim(group(dim.group)?, dim.name.as_bytes(), len);
        dims.push(made.map_err(|error| named("dimension", &dim.name, error))?);
    }
    for (at, of) in model.types.iter().enumerate() {
        let expected = i32::try_from(at).ok().and_then(|at| at.checked_add(FIRST_USER_TYPE));
        let name = String::from_utf8_lossy(&of.name);
        let made = define_type(of, group(usize::from(of.group.0))?, file);
        let made = made.map_err(|error| named("type", &name, error))?;
        if Some(made) != expected {
            return Err(no_place("type"));
        }
    }
    let mut vars = Vec::new();
    for var in &model.vars {
        let of = |error| named("variable", &var.name, error);
        let ids = var.dims.iter().map(|&at| dims.get(at).map(|dim| dim.0));
        let ids: Option<Vec<i32>> = ids.collect();
        let ids = ids.ok_or_else(|| no_place("dimension"))?;
        let group = group(var.group)?;
        let made = file.def_var(group, var.name.as_bytes(), var.nc_type, &ids).map_err(of)?;
        let made = VarRef { group, var: made };
        put_atts(file, made, &var.atts).map_err(of)?;
        vars.push(made);
    }
    for (at, of) in model.groups.iter().enumerate() {
        let done = put_atts(file, VarRef::group(group(at)?), &of.atts);
        done.map_err(|error| named("group", &of.name, error))?;
    }
    file.enddef(Reserve::Default)?;
    grow(model, file, &vars);
    Ok(vars)
}

fn groups(model: &Model, file: &mut dyn DispatchWrite) -> Result<Vec<GroupId>> {
    let mut made = vec![GroupId::ROOT];
    for group in model.groups.iter().skip(1) {
        let parent = group.parent.and_then(|at| made.get(at)).copied();
        let parent = parent.ok_or_else(|| no_place("group"))?;
        let id = file.types().and_then(|types| types.def_group(parent, group.name.as_bytes()));
        made.push(id.map_err(|error| named("group", &group.name, error))?);
    }
    Ok(made)
}

fn define_type(of: &UserType, group: GroupId, file: &mut dyn DispatchWrite) -> Result<i32> {
    let types = file.types()?;
    match &of.class {
        UserClass::Compound(fields) => {
            let made = types.def_compound(group, of.size, &of.name)?;
            for field in fields {
                let (name, offset) = (&field.name, field.offset);
                types.insert_field((group, made), name, offset, field.nc_type, &field.dims)?;
            }
            Ok(made)
        }
        UserClass::Enum { base, members } => {
            let made = types.def_enum(group, *base, &of.name)?;
            for (name, value) in members {
                types.insert_member((group, made), name, value)?;
            }
            Ok(made)
        }
        UserClass::Opaque => types.def_opaque(group, of.size, &of.name),
        UserClass::Vlen { base } => types.def_vlen(group, &of.name, *base),
        UserClass::String | UserClass::Unknown => Err(NcError::BadType.into()),
    }
}

fn put_atts(file: &mut dyn DispatchWrite, owner: VarRef, atts: &[Att]) -> Result<()> {
    for att in atts {
        let (name, nc_type) = (att.name.as_bytes(), att.nc_type);
        let put = AttPut { owner, name, nc_type, n_values: att.len, mem: None };
        let mut parts = &att.values;
        let values = Values { bytes: att.values.bytes(), fetch: Some(&mut parts) };
        let done = file.check_put_att(&put).and_then(|n_bytes| {
            let is_whole = n_bytes == att.values.bytes().len();
            if is_whole { file.put_att(&put, values).map(drop) } else { Err(no_place("value")) }
        });
        done.map_err(|error| named("attribute", &att.name, error))?;
    }
    Ok(())
}

/// Unlimited dimensions get the lengths that they have on the server.
fn grow(model: &Model, file: &mut dyn DispatchWrite, vars: &[VarRef]) {
    for (var, &made) in model.vars.iter().zip(vars) {
        let dims = || var.dims.iter().filter_map(|&at| model.dims.get(at));
        if !dims().any(|dim| dim.is_unlimited) || dims().any(|dim| dim.len == 0) {
            continue;
        }
        let count: Vec<usize> =
            dims().map(|dim| usize::try_from(dim.len).unwrap_or(usize::MAX)).collect();
        let start = vec![0; count.len()];
        file.note_reach(made, &Hyperslab { start: &start, count: &count, stride: None });
    }
}

fn named(what: &str, name: &str, error: Error) -> Error {
    let cause = error.cause();
    if cause.contains(name) {
        return error;
    }
    error.with_other_text(format!("{what} {name}: {cause}"))
}

/// The model refers to something that it does not have.
fn no_place(what: &str) -> Error {
    Error::with_text(NcError::Internal, format!("the model names a {what} that it does not have"))
}
